package broken

import (
	"context"
	"errors"

	"github.com/delayq/delayq/backend"
)

var replaceFaults = []Fault{
	{Name: "replaces only what is not due yet", Rule: "replace", breaks: func(q *queue) {
		q.onReplace(func(m *backend.Message, old backend.MessageInfo) { m.Replace = old.State != backend.StateReady })
	}},
	{Name: "keeps the due time of the message that it replaces", Rule: "replace", breaks: func(q *queue) {
		q.onReplace(func(m *backend.Message, old backend.MessageInfo) {
			if old.State == backend.StateScheduled {
				m.Due, m.Delay = old.Due, 0
			}
		})
	}},
	{Name: "keeps the headers of the message that it replaces", Rule: "replace", breaks: func(q *queue) {
		q.onReplace(func(m *backend.Message, old backend.MessageInfo) {
			if old.State != 0 {
				m.Headers = old.Headers
			}
		})
	}},
	{Name: "keeps the attempts of the message that it replaces", Rule: "replace", breaks: func(q *queue) {
		before := make(map[string]int)
		q.onReplace(func(m *backend.Message, old backend.MessageInfo) { before[m.ID] = old.Attempts })
		q.onDelivery(func(d *backend.Delivery) {
			d.Attempt += before[d.ID]
			delete(before, d.ID)
		})
	}},
	{Name: "says ErrDuplicate of a message in flight that it cannot replace", Rule: "replace-refused", breaks: func(q *queue) {
		q.onReplace(func(m *backend.Message, old backend.MessageInfo) { m.Replace = old.State != backend.StateInFlight })
	}},
	{Name: "replaces dead letters", Rule: "replace-refused", breaks: func(q *queue) {
		q.onReplace(func(m *backend.Message, old backend.MessageInfo) {
			if old.State == backend.StateDead {
				_ = q.Queue.DeleteDead(context.Background(), []string{m.ID})
			}
		})
	}},
	{Name: "puts a replacement ahead of all messages of its due time", Rule: "replace-order", breaks: func(q *queue) {
		q.onReplace(func(m *backend.Message, _ backend.MessageInfo) {
			if !m.Due.IsZero() {
				m.Due = m.Due.Add(-1)
			}
		})
	}},
	{Name: "counts MaxWait from the last push", Rule: "max-wait", breaks: func(q *queue) {
		q.onReplace(func(m *backend.Message, _ backend.MessageInfo) {
			if m.MaxWait > 0 {
				m.Delay, m.MaxWait = min(m.Delay, m.MaxWait), 0
			}
		})
	}},
	{Name: "counts MaxWait from the redrive of a message", Rule: "max-wait", breaks: func(q *queue) {
		redriven := make(map[string]bool)
		q.redrive = func(ctx context.Context, ids []string) []error {
			q.mu.Lock()
			defer q.mu.Unlock()
			for _, id := range ids {
				redriven[id] = true
			}
			return q.Queue.Redrive(ctx, ids)
		}
		q.onReplace(func(m *backend.Message, _ backend.MessageInfo) {
			if redriven[m.ID] {
				m.Delay, m.MaxWait = min(m.Delay, m.MaxWait), 0
			}
		})
	}},
	{Name: "counts MaxWait from a push without it", Rule: "max-wait", breaks: func(q *queue) {
		q.onReplace(func(m *backend.Message, _ backend.MessageInfo) {
			if m.MaxWait == 0 {
				m.MaxWait = backend.MaxDelay
			}
		})
	}},
	{Name: "sends a push again after another one", Rule: "replace-race", breaks: func(q *queue) {
		last := make(map[string]backend.Message)
		q.schedule = func(ctx context.Context, ms []backend.Message) []error {
			errs := q.Queue.Schedule(ctx, ms)
			q.mu.Lock()
			defer q.mu.Unlock()
			for _, m := range ms {
				if old, again := last[m.ID]; again && m.Replace {
					_ = q.Queue.Schedule(ctx, []backend.Message{old})
				}
				last[m.ID] = m
			}
			return errs
		}
	}},
}

// onReplace changes pushes with Replace one by one, each with the message that it finds.
func (q *queue) onReplace(change func(m *backend.Message, old backend.MessageInfo)) {
	q.schedule = func(ctx context.Context, ms []backend.Message) []error {
		return backend.Each(len(ms), func(i int) error {
			q.mu.Lock()
			defer q.mu.Unlock()
			m := ms[i]
			if m.Replace {
				infos, _ := q.Queue.Get(ctx, []string{m.ID})
				change(&m, infos[0])
			}
			return errors.Join(q.Queue.Schedule(ctx, []backend.Message{m})...)
		})
	}
}
