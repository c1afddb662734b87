package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/schedule"
)

// A stallCall is one public call. prepare readies the queue while the server still replies.
type stallCall struct {
	prepare func(*stallRound) error
	do      func(context.Context, *stallRound) error
	after   func(*stallRound) error // runs when the server replies again after a call that failed; may be nil

	// untouched returns an error when the call has changed something. It runs when the server
	// replies again, after an error that does not match ErrOutcomeUnknown. It is nil for a call
	// that changes nothing that can be read.
	untouched func(*stallRound) error

	opens bool // it needs no queue
	waits bool // it returns when its context ends, though the server replies
}

// A stallRound is one call on a queue of its own. Its clean-ups run after the call.
type stallRound struct {
	*testing.T
	store    stallStore
	server   *stallServer
	name     string
	q        delayq.Queue
	ids      []string
	ds       []*delayq.Delivery
	cleanups []func()
}

func (r *stallRound) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *stallRound) end() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}

func stallCalls() map[string]stallCall {
	opens := func(do func(context.Context, *stallRound) error) stallCall { return stallCall{do: do, opens: true} }
	fresh := func(do func(context.Context, *stallRound) error) stallCall { return stallCall{do: do} }
	waits := func(do func(context.Context, *stallRound) error) stallCall {
		return stallCall{prepare: (*stallRound).later, do: do}
	}
	pushes := func(do func(context.Context, *stallRound) error) stallCall {
		return stallCall{do: do, untouched: (*stallRound).empty}
	}
	takes := func(do func(context.Context, *stallRound) error) stallCall {
		return stallCall{prepare: (*stallRound).push, do: do, after: (*stallRound).comesAgain}
	}
	// once fails the second time.
	once := func(prepare func(*stallRound) error, do func(context.Context, *stallRound) error) stallCall {
		return stallCall{prepare: prepare, do: do, untouched: func(r *stallRound) error { return do(r.Context(), r) }}
	}
	settles := func(do func(context.Context, *stallRound) error) stallCall { return once((*stallRound).receive, do) }
	one := func(do func(context.Context, *delayq.Delivery) error) stallCall {
		return settles(func(ctx context.Context, r *stallRound) error { return do(ctx, r.ds[0]) })
	}
	dead := func(do func(context.Context, *stallRound, delayq.DeadLetters) error) stallCall {
		return once((*stallRound).deadLetter, func(ctx context.Context, r *stallRound) error { return do(ctx, r, r.q.Dead()) })
	}
	return map[string]stallCall{
		"New":  opens(func(ctx context.Context, r *stallRound) error { return r.new(ctx) }),
		"Open": opens(func(ctx context.Context, r *stallRound) error { return r.open(ctx) }),
		"Push": pushes(func(ctx context.Context, r *stallRound) error { return second(r.q.Push(ctx, []byte("x"))) }),
		"PushBatch": pushes(func(ctx context.Context, r *stallRound) error {
			return second(r.q.PushBatch(ctx, make([]delayq.Message, 3)))
		}),
		"Stats": fresh(func(ctx context.Context, r *stallRound) error { return second(r.q.Stats(ctx)) }),
		"Purge": once((*stallRound).later, func(ctx context.Context, r *stallRound) error { return single(r.q.Purge(ctx)) }),
		"PauseAll": fresh(func(ctx context.Context, r *stallRound) error {
			return r.q.PauseAll(ctx, delayq.PauseFor(time.Millisecond))
		}),
		"ResumeAll": fresh(func(ctx context.Context, r *stallRound) error { return r.q.ResumeAll(ctx) }),
		"Cancel":    once((*stallRound).later, func(ctx context.Context, r *stallRound) error { return r.q.Cancel(ctx, r.ids[0]) }),
		"Reschedule": {prepare: (*stallRound).later, untouched: (*stallRound).dueInAnHour, do: func(ctx context.Context, r *stallRound) error {
			return r.q.Reschedule(ctx, r.ids[0], time.Now().Add(2*time.Hour))
		}},
		"RescheduleAfter": {prepare: (*stallRound).later, untouched: (*stallRound).dueInAnHour, do: func(ctx context.Context, r *stallRound) error {
			return r.q.RescheduleAfter(ctx, r.ids[0], 2*time.Hour)
		}},
		"RescheduleBatch": {prepare: (*stallRound).later, untouched: (*stallRound).dueInAnHour, do: func(ctx context.Context, r *stallRound) error {
			return r.q.RescheduleBatch(ctx, []delayq.Move{{ID: r.ids[0], Delay: 2 * time.Hour}})
		}},
		"CancelBatch":   once((*stallRound).later, func(ctx context.Context, r *stallRound) error { return r.q.CancelBatch(ctx, r.ids) }),
		"Peek":          waits(func(ctx context.Context, r *stallRound) error { _, _, err := r.q.Peek(ctx, "", 10); return err }),
		"Receive":       takes(func(ctx context.Context, r *stallRound) error { return second(r.q.Receive(ctx)) }),
		"Receive, none": {waits: true, do: func(ctx context.Context, r *stallRound) error { return second(r.q.Receive(ctx)) }},
		"ReceiveBatch":  takes(func(ctx context.Context, r *stallRound) error { return second(r.q.ReceiveBatch(ctx, 10)) }),
		"AckBatch":      settles(func(ctx context.Context, r *stallRound) error { return r.q.AckBatch(ctx, r.ds) }),
		"Ack":           one(func(ctx context.Context, d *delayq.Delivery) error { return d.Ack(ctx) }),
		"Nack":          one(func(ctx context.Context, d *delayq.Delivery) error { return d.Nack(ctx, time.Hour) }),
		"Nack, headers": one(func(ctx context.Context, d *delayq.Delivery) error {
			return d.Nack(ctx, time.Hour, delayq.NackHeaders(map[string]string{"tries": "1"}))
		}),
		"NackBatch":       settles(func(ctx context.Context, r *stallRound) error { return r.q.NackBatch(ctx, r.ds, time.Hour) }),
		"Release":         one(func(ctx context.Context, d *delayq.Delivery) error { return d.Release(ctx) }),
		"ReleaseBatch":    settles(func(ctx context.Context, r *stallRound) error { return r.q.ReleaseBatch(ctx, r.ds) }),
		"ExtendBatch":     settles(func(ctx context.Context, r *stallRound) error { return r.q.ExtendBatch(ctx, r.ds, time.Minute) }),
		"DeadLetterBatch": settles(func(ctx context.Context, r *stallRound) error { return r.q.DeadLetterBatch(ctx, r.ds, "reason") }),
		"Extend":          one(func(ctx context.Context, d *delayq.Delivery) error { return d.Extend(ctx, time.Minute) }),
		"DeadLetter":      one(func(ctx context.Context, d *delayq.Delivery) error { return d.DeadLetter(ctx, "reason") }),
		"Repeat": {waits: true, do: func(ctx context.Context, r *stallRound) error {
			return schedule.Repeat(ctx, r.q, "hourly", schedule.Every(time.Hour), []byte("x"))
		}},
		"Dead.List": dead(func(ctx context.Context, _ *stallRound, l delayq.DeadLetters) error {
			_, _, err := l.List(ctx, "", 10)
			return err
		}),
		"Dead.Redrive": dead(func(ctx context.Context, r *stallRound, l delayq.DeadLetters) error {
			return l.Redrive(ctx, r.ds[0].ID)
		}),
		"Dead.Delete":     dead(func(ctx context.Context, r *stallRound, l delayq.DeadLetters) error { return l.Delete(ctx, r.ds[0].ID) }),
		"Dead.RedriveAll": dead(func(ctx context.Context, _ *stallRound, l delayq.DeadLetters) error { return single(l.RedriveAll(ctx)) }),
	}
}

func second[T any](_ T, err error) error { return err }

// single rejects the success of a call that found another number of messages than one.
func single[T int | int64](n T, err error) error {
	if err == nil && n != 1 {
		err = fmt.Errorf("it found %d messages, want 1", n)
	}
	return err
}

func (r *stallRound) push() error {
	id, err := r.q.Push(r.Context(), []byte("x"))
	r.ids = append(r.ids, id)
	return stored(err)
}

func (r *stallRound) later() error {
	id, err := r.q.Push(r.Context(), []byte("x"), delayq.After(time.Hour))
	r.ids = append(r.ids, id)
	return stored(err)
}

// stored accepts a push that no replica has confirmed: there is none.
func stored(err error) error {
	if errors.Is(err, delayq.ErrUnconfirmed) {
		return nil
	}
	return err
}

func (r *stallRound) receive() error {
	if err := r.push(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
	defer cancel()
	d, err := r.q.Receive(ctx)
	r.ds = append(r.ds, d)
	return err
}

// comesAgain wants the message that a Receive may have claimed after it had returned.
func (r *stallRound) comesAgain() error {
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	d, err := r.q.Receive(ctx)
	if err == nil && (d.ID != r.ids[0] && r.ids[0] != "" || r.store.keeps && d.Attempt != 1) {
		err = fmt.Errorf("attempt %d of %q came, want attempt 1 of %q", d.Attempt, d.ID, r.ids[0])
	}
	return err
}

// empty wants no message in the queue.
func (r *stallRound) empty() error {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	if d, err := r.q.Receive(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("received %v, with: %w", d, err)
	}
	return nil
}

// dueInAnHour wants the message of later where it was.
func (r *stallRound) dueInAnHour() error {
	page, _, err := r.q.Peek(r.Context(), "", 1)
	if err == nil && (len(page) != 1 || time.Until(page[0].Due) > time.Hour) {
		err = fmt.Errorf("the queue has %v", page)
	}
	return err
}

func (r *stallRound) deadLetter() error {
	if err := r.receive(); err != nil {
		return err
	}
	return r.ds[0].DeadLetter(r.Context(), "reason")
}

func (r *stallRound) new(ctx context.Context) error {
	b := r.store.open(r, r.server)
	r.Cleanup(func() { _ = b.Close() })
	return r.on(ctx, b)
}

// on opens the round's queue. It is closed and removed when the server replies again.
func (r *stallRound) on(ctx context.Context, b backend.Backend) error {
	q, err := delayq.New(ctx, r.name, delayq.WithBackend(b), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	r.q = q
	r.Cleanup(func() {
		if err == nil {
			_ = q.Close()
		}
		_ = b.(admin.Remover).Remove(context.WithoutCancel(r.Context()), r.name)
	})
	return cmp.Or(err, ctx.Err())
}

func (r *stallRound) open(ctx context.Context) error {
	if r.store.url == nil {
		return nil
	}
	q, err := delayq.Open(ctx, r.store.url(r, r.server, r.name), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	r.Cleanup(func() {
		b := r.store.open(r.T, r.server)
		if err == nil {
			_ = q.Close()
		}
		_ = errors.Join(b.(admin.Remover).Remove(context.WithoutCancel(r.Context()), r.name), b.Close())
	})
	return cmp.Or(err, ctx.Err())
}
