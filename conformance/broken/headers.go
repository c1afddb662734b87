package broken

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
)

var headerFaults = []Fault{
	{Name: "keeps the old headers where a nack has new ones", Rule: "nack-headers", wrap: func(q *queue) backend.Queue {
		return newReheader(q, func(_ map[string]string, r *backend.Return) { r.NewHeaders = false })
	}},
	{Name: "adds the headers of a nack to the old ones", Rule: "nack-headers", wrap: func(q *queue) backend.Queue {
		return newReheader(q, func(old map[string]string, r *backend.Return) {
			headers := maps.Clone(r.Headers)
			if headers == nil {
				headers = make(map[string]string)
			}
			maps.Copy(headers, old)
			maps.Copy(headers, r.Headers)
			r.Headers = headers
		})
	}},
	{Name: "keeps the old headers where a nack has none", Rule: "nack-headers", wrap: func(q *queue) backend.Queue {
		return newReheader(q, func(_ map[string]string, r *backend.Return) { r.NewHeaders = len(r.Headers) > 0 })
	}},
	{Name: "takes away the headers where a nack has no new ones", Rule: "nack-headers", wrap: func(q *queue) backend.Queue {
		return newReheader(q, func(_ map[string]string, r *backend.Return) { r.NewHeaders = !r.Untouched })
	}},
	{Name: "forgets the delay of a nack that has headers", Rule: "nack-headers", wrap: func(q *queue) backend.Queue {
		return newReheader(q, func(_ map[string]string, r *backend.Return) {
			if r.NewHeaders {
				r.Delay = 0
			}
		})
	}},
	{Name: "changes the headers under a stale lease", Rule: "nack-headers", wrap: func(q *queue) backend.Queue { return newForged(q, false) }},
	{Name: "keeps the memory of a nack's headers", Rule: "nack-headers", wrap: func(q *queue) backend.Queue { return newForged(q, true) }},
}

// reheader changes nacks, and knows the headers with which their messages were handed out.
type reheader struct {
	*queue
	change func(old map[string]string, r *backend.Return)
	mu     sync.Mutex
	old    map[string]map[string]string
}

func newReheader(q *queue, change func(map[string]string, *backend.Return)) *reheader {
	return &reheader{queue: q, change: change, old: make(map[string]map[string]string)}
}

func (q *reheader) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	return q.handed(ctx, limit, lease, func(d *backend.Delivery) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.old[d.ID] = maps.Clone(d.Headers)
	})
}

func (q *reheader) Nack(ctx context.Context, rs []backend.Return) []error {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := make([]backend.Return, len(rs))
	for i, r := range rs {
		q.change(q.old[r.ID], &r)
		out[i] = r
	}
	return q.Queue.Nack(ctx, out)
}

// forged shows the headers of the last nack instead of those of the message: of one that succeeded, or of one that failed.
type forged struct {
	*queue
	good bool
	mu   sync.Mutex
	last map[string]map[string]string
}

func newForged(q *queue, good bool) *forged {
	return &forged{queue: q, good: good, last: make(map[string]map[string]string)}
}

func (q *forged) Nack(ctx context.Context, rs []backend.Return) []error {
	q.mu.Lock()
	defer q.mu.Unlock()
	errs := q.Queue.Nack(ctx, rs)
	for i, r := range rs {
		if succeeded := errs == nil || errs[i] == nil; r.NewHeaders && succeeded == q.good {
			q.last[r.ID] = r.Headers
		}
	}
	return errs
}

func (q *forged) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	return q.handed(ctx, limit, lease, func(d *backend.Delivery) {
		q.mu.Lock()
		defer q.mu.Unlock()
		if headers, ok := q.last[d.ID]; ok {
			d.Headers = maps.Clone(headers)
		}
	})
}
