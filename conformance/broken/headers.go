package broken

import (
	"context"
	"maps"
	"strings"

	"github.com/delayq/delayq/backend"
)

var headerFaults = []Fault{
	{Name: "loses the library's headers where a nack has new ones", Rule: "own-limits", breaks: func(q *queue) {
		q.onNack(func(r *backend.Return) { r.Headers = withoutReserved(r.Headers) })
	}},
	{Name: "loses the library's headers when it redrives", Rule: "own-limits", breaks: func(q *queue) {
		q.redrive = func(ctx context.Context, ids []string) []error {
			all, _, err := q.Queue.ListDead(ctx, "", len(ids))
			if err != nil || len(all) != 1 {
				return q.Queue.Redrive(ctx, ids)
			}
			q.Queue.DeleteDead(ctx, ids)
			return q.Queue.Schedule(ctx, []backend.Message{{ID: all[0].ID, Body: all[0].Body, Headers: withoutReserved(all[0].Headers)}})
		}
	}},
	{Name: "loses the library's headers of what is given back untouched", Rule: "expires", breaks: func(q *queue) {
		lost := make(map[string]bool)
		q.onNack(func(r *backend.Return) { lost[r.ID] = r.Untouched })
		q.onDelivery(func(d *backend.Delivery) {
			if lost[d.ID] {
				d.Headers = withoutReserved(d.Headers)
			}
		})
	}},
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

func withoutReserved(headers map[string]string) map[string]string {
	headers = maps.Clone(headers)
	maps.DeleteFunc(headers, func(key, _ string) bool { return strings.HasPrefix(key, "delayq-") })
	return headers
}
