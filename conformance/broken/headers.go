package broken

import (
	"context"
	"maps"

	"github.com/delayq/delayq/backend"
)

var headerFaults = []Fault{
	{Name: "keeps the old headers where a nack has new ones", Rule: "nack-headers", breaks: func(q *queue) {
		q.onNack(func(r *backend.Return) { r.NewHeaders = false })
	}},
	{Name: "adds the headers of a nack to the old ones", Rule: "nack-headers", breaks: func(q *queue) {
		old := make(map[string]map[string]string) // as last delivered, by id
		q.onDelivery(func(d *backend.Delivery) { old[d.ID] = maps.Clone(d.Headers) })
		q.onNack(func(r *backend.Return) {
			headers := make(map[string]string)
			maps.Copy(headers, old[r.ID])
			maps.Copy(headers, r.Headers)
			r.Headers = headers
		})
	}},
	{Name: "keeps the old headers where a nack has none", Rule: "nack-headers", breaks: func(q *queue) {
		q.onNack(func(r *backend.Return) { r.NewHeaders = len(r.Headers) > 0 })
	}},
	{Name: "takes away the headers where a nack has no new ones", Rule: "nack-headers", breaks: func(q *queue) {
		q.onNack(func(r *backend.Return) { r.NewHeaders = !r.Untouched })
	}},
	{Name: "forgets the delay of a nack that has headers", Rule: "nack-headers", breaks: func(q *queue) {
		q.onNack(func(r *backend.Return) {
			if r.NewHeaders {
				r.Delay = 0
			}
		})
	}},
	{Name: "changes the headers under a stale lease", Rule: "nack-headers", breaks: func(q *queue) { q.showHeadersOfNack(false) }},
	{Name: "keeps the memory of a nack's headers", Rule: "nack-headers", breaks: func(q *queue) { q.showHeadersOfNack(true) }},
}

// showHeadersOfNack shows the headers of the last nack that succeeded, or of the last one that
// failed, instead of those of the message.
func (q *queue) showHeadersOfNack(success bool) {
	last := make(map[string]map[string]string)
	q.nack = func(ctx context.Context, rs []backend.Return) []error {
		q.mu.Lock()
		defer q.mu.Unlock()
		errs := q.Queue.Nack(ctx, rs)
		for i, r := range rs {
			if succeeded := errs == nil || errs[i] == nil; r.NewHeaders && succeeded == success {
				last[r.ID] = r.Headers
			}
		}
		return errs
	}
	q.onDelivery(func(d *backend.Delivery) {
		if headers, ok := last[d.ID]; ok {
			d.Headers = maps.Clone(headers)
		}
	})
}
