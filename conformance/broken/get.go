package broken

import (
	"context"
	"errors"
	"time"

	"github.com/delayq/delayq/backend"
)

var getFaults = []Fault{
	{Name: "shows due messages as scheduled", Rule: "get", breaks: func(q *queue) {
		q.onGet(func(m *backend.MessageInfo) {
			if m.State == backend.StateReady {
				m.State = backend.StateScheduled
			}
		})
	}},
	{Name: "shows when a lease would have ended without its extension", Rule: "get", breaks: func(q *queue) {
		ends := make(map[string]time.Time)
		q.onDelivery(func(d *backend.Delivery) { ends[d.ID] = d.Until })
		q.onGet(func(m *backend.MessageInfo) {
			if m.State == backend.StateInFlight {
				m.LeaseUntil = ends[m.ID]
			}
		})
	}},
	{Name: "shows a message in flight until the next Receive, though its lease has ended", Rule: "get", breaks: func(q *queue) {
		held := make(map[string]backend.Delivery)
		q.onDelivery(func(d *backend.Delivery) { held[d.ID] = *d })
		q.onNack(func(r *backend.Return) { delete(held, r.ID) })
		q.onGet(func(m *backend.MessageInfo) {
			if d, ok := held[m.ID]; ok && m.State == backend.StateReady {
				m.State, m.LeaseUntil = backend.StateInFlight, d.Until
			}
		})
	}},
	{Name: "shows the id of a message that is not there", Rule: "get", breaks: func(q *queue) {
		q.get = func(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
			ms, errs := q.Queue.Get(ctx, ids)
			for i := range ms {
				ms[i].ID = ids[i]
			}
			return ms, errs
		}
	}},
	{Name: "takes the messages that it gets, and gives them back", Rule: "get-changes-nothing", breaks: func(q *queue) {
		q.get = func(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
			ms, errs := q.Queue.Get(ctx, ids)
			ds, _ := q.now(1, time.Hour)
			for _, d := range ds {
				q.Queue.Nack(ctx, []backend.Return{{Lease: d.Lease()}})
			}
			return ms, errs
		}
	}},
	{Name: "returns no entry for an id that is not there", Rule: "get-many", breaks: func(q *queue) {
		q.get = func(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
			ms, errs := q.Queue.Get(ctx, ids)
			found := 0
			for i := range ms {
				if errs == nil || errs[i] == nil {
					ms[found], found = ms[i], found+1
				}
			}
			clear(ms[found:])
			return ms, errs
		}
	}},
	{Name: "knows no message that is done", Rule: "get-done", breaks: func(q *queue) {
		q.get = func(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
			ms, errs := q.Queue.Get(ctx, ids)
			for i := range ms {
				if ms[i].State == backend.StateDone {
					ms[i] = backend.MessageInfo{}
					if errs == nil {
						errs = make([]error, len(ms))
					}
					errs[i] = backend.ErrNotFound
				}
			}
			return ms, errs
		}
	}},
	{Name: "says of no duplicate in which state the first message is", Rule: "duplicate-says-state", breaks: func(q *queue) {
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			errs := q.Queue.Schedule(ctx, ms)
			for i, err := range errs {
				if errors.Is(err, backend.ErrDuplicate) {
					errs[i] = backend.ErrDuplicate
				}
			}
			return errs
		}
	}},
	{Name: "says that a dead message is scheduled", Rule: "duplicate-says-state", breaks: func(q *queue) {
		dead := backend.Duplicate(backend.StateDead).Error()
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			errs := q.Queue.Schedule(ctx, ms)
			for i, err := range errs {
				if err != nil && err.Error() == dead {
					errs[i] = backend.Duplicate(backend.StateScheduled)
				}
			}
			return errs
		}
	}},
}
