// Package settle settles the deliveries of a queue and extends their leases, one delivery or many by
// one call. It records each call.
package settle

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/batcher"
	"github.com/delayq/delayq/internal/lease"
	"github.com/delayq/delayq/internal/telemetry"
)

// A Settler makes the calls on one queue. Its methods are safe for concurrent use, and return
// [lease.ErrSettled] for a delivery that is settled already.
type Settler struct {
	Store     backend.Queue
	Batch     batcher.Store
	Telemetry *telemetry.Recorder // nil for none
	Clock     clockwork.Clock
	Log       *slog.Logger
	Died      func(n int) // is told of new dead letters
}

// Ack has the store delete a message that is done.
func (s *Settler) Ack(ctx context.Context, l *lease.Lease) error {
	return s.one(ctx, telemetry.Ack, l, func() error { return s.Batch.Acks.Do(ctx, &[1]backend.Lease{l.Token()}) })
}

// Return gives a message back. how says everything but the lease.
func (s *Settler) Return(ctx context.Context, l *lease.Lease, how backend.Return) error {
	how.Lease = l.Token()
	return s.one(ctx, returnOp(how), l, func() error { return s.Batch.Nacks.Do(ctx, &[1]backend.Return{how}) })
}

// Dead makes a message a dead letter.
func (s *Settler) Dead(ctx context.Context, l *lease.Lease, reason string) error {
	return s.one(ctx, telemetry.Dead, l, func() error {
		return cmp.Or(s.dead(ctx, []backend.Lease{l.Token()}, reason)...)
	})
}

// AckInTx is Ack by the queue's view inside a transaction.
func (s *Settler) AckInTx(ctx context.Context, l *lease.Lease, tx backend.Queue) error {
	ack := func() error { return cmp.Or(tx.Ack(ctx, []backend.Lease{l.Token()})...) }
	return s.record(ctx, telemetry.Ack, func() error { return l.SettleInTx(ack) })
}

// one makes the call that settles a delivery.
func (s *Settler) one(ctx context.Context, op string, l *lease.Lease, call func() error) error {
	return s.record(ctx, op, func() error { return l.Settle(ctx, call) })
}

func (s *Settler) record(ctx context.Context, op string, settle func() error) error {
	began, settled := s.Telemetry.Start(), 0
	err := settle()
	if err == nil {
		settled = 1
	}
	s.Telemetry.Settled(ctx, op, settled, began, err)
	return err
}

func returnOp(how backend.Return) string {
	if how.Untouched {
		return telemetry.Release
	}
	return telemetry.Nack
}

func (s *Settler) dead(ctx context.Context, ls []backend.Lease, reason string) []error {
	requests := make([]backend.DeadLetterRequest, len(ls))
	for i, l := range ls {
		requests[i] = backend.DeadLetterRequest{Lease: l, Reason: reason}
	}
	errs := s.Store.Dead(ctx, requests)
	s.Died(Succeeded(len(ls), errs))
	return errs
}

// AckAll is Ack for many messages. It returns an outcome for each, as the other methods for many do.
func (s *Settler) AckAll(ctx context.Context, ls []*lease.Lease) []error {
	return s.all(ctx, telemetry.Ack, ls, func(ls []backend.Lease) []error { return s.Store.Ack(ctx, ls) })
}

// ReturnAll gives many messages back in the same way.
func (s *Settler) ReturnAll(ctx context.Context, ls []*lease.Lease, how backend.Return) []error {
	return s.all(ctx, returnOp(how), ls, func(ls []backend.Lease) []error {
		rs := make([]backend.Return, len(ls))
		for i, l := range ls {
			rs[i] = how
			rs[i].Lease = l
		}
		return s.Store.Nack(ctx, rs)
	})
}

// DeadAll makes many messages dead letters for one reason.
func (s *Settler) DeadAll(ctx context.Context, ls []*lease.Lease, reason string) []error {
	return s.all(ctx, telemetry.Dead, ls, func(ls []backend.Lease) []error { return s.dead(ctx, ls, reason) })
}

// all has one call settle the deliveries that are not settled yet.
func (s *Settler) all(ctx context.Context, op string, ls []*lease.Lease, call func([]backend.Lease) []error) []error {
	began := s.Telemetry.Start()
	errs := lease.Settle(ctx, ls, call)
	s.Telemetry.Settled(ctx, op, Succeeded(len(ls), errs), began, errors.Join(errs...))
	return errs
}

// Extend makes leases end that long from now.
func (s *Settler) Extend(ctx context.Context, ls []*lease.Lease, length time.Duration) []error {
	began := s.Telemetry.Start()
	errs := lease.Extend(ctx, s.Store, ls, length, s.Clock.Now())
	s.Telemetry.Operation(ctx, telemetry.Extend, began, cmp.Or(errs...))
	return errs
}

// Expired are messages of one claim that nobody gets.
type Expired struct {
	drop, dead []backend.Lease
}

// Add adds a message to delete, or one to become a dead letter.
func (e *Expired) Add(l backend.Lease, deadLetter bool) {
	if deadLetter {
		e.dead = append(e.dead, l)
	} else {
		e.drop = append(e.drop, l)
	}
}

// Expired deletes expired messages, or makes them dead letters with a reason. Those for which it
// fails come again when their leases end.
func (s *Settler) Expired(ctx context.Context, e Expired, reason string, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if len(e.drop) > 0 {
		began := s.Telemetry.Start()
		s.expired(ctx, telemetry.Ack, len(e.drop), began, s.Store.Ack(ctx, e.drop))
	}
	if len(e.dead) > 0 {
		began := s.Telemetry.Start()
		s.expired(ctx, telemetry.Dead, len(e.dead), began, s.dead(ctx, e.dead, reason))
	}
}

func (s *Settler) expired(ctx context.Context, op string, n int, began time.Time, errs []error) {
	settled, err := Succeeded(n, errs), cmp.Or(errs...)
	s.Telemetry.Settled(ctx, op, settled, began, err)
	s.Telemetry.Expired(ctx, settled)
	if err != nil {
		s.Telemetry.Failed(ctx, telemetry.FailedSettle, n-settled)
	}
	s.Log.Debug("delayq: messages expired", "messages", settled, "dead", op == telemetry.Dead, "err", err)
}

// Succeeded returns for how many of n messages a call has succeeded.
func Succeeded(n int, errs []error) int {
	for _, err := range errs {
		if err != nil {
			n--
		}
	}
	return n
}
