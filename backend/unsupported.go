package backend

import (
	"context"
	"time"
)

// Unsupported is a queue that supports nothing: each method returns [ErrUnsupported], once for each
// message where it takes several. A backend's queue embeds it and overrides the methods that its
// store can keep, and [Traits.Lacks] declares the rest. A method that is added to [Queue] is added
// here too, so that a backend that embeds it still compiles.
//
// Close is left out. Each backend has something to release, and the compiler asks for it.
type Unsupported struct{}

// Schedule returns ErrUnsupported for each message.
func (Unsupported) Schedule(_ context.Context, ms []Message) []error { return unsupported(len(ms)) }

// Receive returns ErrUnsupported.
func (Unsupported) Receive(context.Context, int, time.Duration) ([]Delivery, error) {
	return nil, ErrUnsupported
}

// Ack returns ErrUnsupported for each lease.
func (Unsupported) Ack(_ context.Context, ls []Lease) []error { return unsupported(len(ls)) }

// Nack returns ErrUnsupported for each message.
func (Unsupported) Nack(_ context.Context, rs []Return) []error { return unsupported(len(rs)) }

// Extend returns ErrUnsupported for each lease.
func (Unsupported) Extend(_ context.Context, ls []Lease, _ time.Duration) ([]time.Time, []error) {
	return make([]time.Time, len(ls)), unsupported(len(ls))
}

// Dead returns ErrUnsupported for each message.
func (Unsupported) Dead(_ context.Context, bs []DeadLetterRequest) []error {
	return unsupported(len(bs))
}

// Cancel returns ErrUnsupported for each id.
func (Unsupported) Cancel(_ context.Context, ids []string) []error { return unsupported(len(ids)) }

// Reschedule returns ErrUnsupported for each message.
func (Unsupported) Reschedule(_ context.Context, ms []Move) []error { return unsupported(len(ms)) }

// Stats returns ErrUnsupported.
func (Unsupported) Stats(context.Context) (Stats, error) { return Stats{}, ErrUnsupported }

// Get returns ErrUnsupported for each id.
func (Unsupported) Get(_ context.Context, ids []string) ([]MessageInfo, []error) {
	return make([]MessageInfo, len(ids)), unsupported(len(ids))
}

// Peek returns ErrUnsupported.
func (Unsupported) Peek(context.Context, string, int) ([]Pending, string, error) {
	return nil, "", ErrUnsupported
}

// Purge returns ErrUnsupported.
func (Unsupported) Purge(context.Context) (int64, error) { return 0, ErrUnsupported }

// PauseAll returns ErrUnsupported.
func (Unsupported) PauseAll(context.Context, Pause) error { return ErrUnsupported }

// ResumeAll returns ErrUnsupported.
func (Unsupported) ResumeAll(context.Context) error { return ErrUnsupported }

// ListDead returns ErrUnsupported.
func (Unsupported) ListDead(context.Context, string, int) ([]DeadLetter, string, error) {
	return nil, "", ErrUnsupported
}

// ListDeadIDs returns ErrUnsupported.
func (Unsupported) ListDeadIDs(context.Context, string, int) ([]string, string, error) {
	return nil, "", ErrUnsupported
}

// Redrive returns ErrUnsupported for each id.
func (Unsupported) Redrive(_ context.Context, ids []string) []error { return unsupported(len(ids)) }

// DeleteDead returns ErrUnsupported for each id.
func (Unsupported) DeleteDead(_ context.Context, ids []string) []error {
	return unsupported(len(ids))
}

// TrimDead returns ErrUnsupported.
func (Unsupported) TrimDead(context.Context, Retention) (int, bool, error) {
	return 0, false, ErrUnsupported
}

// InTx returns ErrUnsupported.
func (Unsupported) InTx(any) (Queue, error) { return nil, ErrUnsupported }

func unsupported(n int) []error { return FailAll(n, ErrUnsupported) }
