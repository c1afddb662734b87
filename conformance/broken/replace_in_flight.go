package broken

import (
	"context"
	"time"

	"github.com/delayq/delayq/backend"
)

var replaceInFlightFaults = []Fault{
	{Name: "acknowledges away what has replaced a message in flight", Rule: "replace-in-flight", breaks: func(q *queue) {
		q.ack = func(ctx context.Context, ls []backend.Lease) []error {
			return q.settlingReplaced(ctx, ls, q.Queue.Ack, func(id string) { _ = q.Queue.Cancel(ctx, []string{id}) })
		}
	}},
	{Name: "delays what has replaced a message in flight by the delay of its nack", Rule: "replace-in-flight", breaks: func(q *queue) {
		q.nack = func(ctx context.Context, rs []backend.Return) []error {
			return backend.Each(len(rs), func(i int) error {
				nack := func(ctx context.Context, _ []backend.Lease) []error { return q.Queue.Nack(ctx, rs[i:i+1]) }
				return first(q.settlingReplaced(ctx, []backend.Lease{rs[i].Lease}, nack, func(id string) {
					_ = q.Queue.Reschedule(ctx, []backend.Move{{ID: id, Delay: rs[i].Delay}})
				}))
			})
		}
	}},
	{Name: "makes a message due at once that has replaced one in flight", Rule: "replace-in-flight", breaks: func(q *queue) {
		q.ack = func(ctx context.Context, ls []backend.Lease) []error {
			return q.settlingReplaced(ctx, ls, q.Queue.Ack, func(id string) {
				_ = q.Queue.Reschedule(ctx, []backend.Move{{ID: id}})
			})
		}
	}},
	{Name: "gives what has replaced a message in flight a new place when it is given back", Rule: "replace-in-flight", breaks: func(q *queue) {
		q.nack = func(ctx context.Context, rs []backend.Return) []error {
			return backend.Each(len(rs), func(i int) error {
				nack := func(ctx context.Context, _ []backend.Lease) []error { return q.Queue.Nack(ctx, rs[i:i+1]) }
				return first(q.settlingReplaced(ctx, []backend.Lease{rs[i].Lease}, nack, func(id string) {
					infos, _ := q.Queue.Get(ctx, []string{id})
					m := backend.Message{ID: id, Body: infos[0].Body, Headers: infos[0].Headers, Due: infos[0].Due}
					_ = q.Queue.Cancel(ctx, []string{id})
					_ = q.Queue.Schedule(ctx, []backend.Message{m})
				}))
			})
		}
	}},
	{Name: "keeps the first of two messages that replace one in flight", Rule: "replace-in-flight", breaks: func(q *queue) {
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			return backend.Each(len(ms), func(i int) error {
				if ms[i].AfterInFlight && q.replacedInFlight(ctx, ms[i].ID) {
					return nil
				}
				return first(q.Queue.Schedule(ctx, ms[i:i+1]))
			})
		}
	}},
	{Name: "counts an attempt of what has replaced a message in flight", Rule: "replace-in-flight-until-then", breaks: func(q *queue) {
		q.get = func(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
			infos, errs := q.Queue.Get(ctx, ids)
			for i := range infos {
				if infos[i].State == backend.StateInFlight {
					infos[i].Attempts = max(infos[i].Attempts, 1)
				}
			}
			return infos, errs
		}
	}},
	{Name: "cannot extend the lease of a message that was replaced", Rule: "replace-in-flight-until-then", breaks: func(q *queue) {
		q.extend = func(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
			if q.replacedInFlight(ctx, ls[0].ID) {
				return make([]time.Time, len(ls)), backend.FailAll(len(ls), backend.ErrLeaseLost)
			}
			return q.Queue.Extend(ctx, ls, lease)
		}
	}},
	{Name: "counts MaxWait from the push of what is in flight", Rule: "replace-in-flight-max-wait", breaks: func(q *queue) {
		q.onReplace(func(m *backend.Message, old backend.MessageInfo) {
			if m.AfterInFlight && old.State == backend.StateInFlight {
				*m = m.Bounded(old.Headers, q.clock().Now())
			}
		})
	}},
	{Name: "misses the ack of a message that was replaced in flight", Rule: "replace-in-flight-wake-up", breaks: lookOnce},
	{Name: "misses the dead letter of a message that was replaced in flight", Rule: "replace-in-flight-wake-up", breaks: wakeByAck},
	{Name: "looks whether a message was replaced before it acknowledges it", Rule: "replace-in-flight-race", breaks: func(q *queue) {
		q.ack = func(ctx context.Context, ls []backend.Lease) []error {
			return backend.Each(len(ls), func(i int) error {
				replaced := q.replacedInFlight(ctx, ls[i].ID)
				time.Sleep(time.Millisecond) // so that few rounds show it
				err := first(q.Queue.Ack(ctx, ls[i:i+1]))
				if err == nil && !replaced {
					_ = q.Queue.Cancel(ctx, []string{ls[i].ID})
				}
				return err
			})
		}
	}},
}

func first(errs []error) error {
	if errs == nil {
		return nil
	}
	return errs[0]
}

// replacedInFlight reports whether a message was replaced under the lease that it has.
func (q *queue) replacedInFlight(ctx context.Context, id string) bool {
	infos, _ := q.Queue.Get(ctx, []string{id})
	return infos[0].State == backend.StateInFlight && infos[0].Attempts == 0
}

// settlingReplaced settles leases, and then spoils the messages that had been replaced under them.
func (q *queue) settlingReplaced(ctx context.Context, ls []backend.Lease, settle func(context.Context, []backend.Lease) []error, spoil func(id string)) []error {
	return backend.Each(len(ls), func(i int) error {
		replaced := q.replacedInFlight(ctx, ls[i].ID)
		err := first(settle(ctx, ls[i:i+1]))
		if err == nil && replaced {
			spoil(ls[i].ID)
		}
		return err
	})
}
