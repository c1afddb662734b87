package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// marks are what the tombstone store knows of one queue. They are safe for concurrent use.
type marks struct {
	store  Tombstones
	queue  string
	keep   time.Duration // of cancellations
	recall time.Duration // of what was settled
	log    *slog.Logger
}

// newMarks returns nil where there is no store. The virtual host is part of the queue's name, since one store may serve several.
func newMarks(o *options, queue string, log *slog.Logger) *marks {
	if o.tombstones == nil {
		return nil
	}
	uri, _ := amqp.ParseURI(o.url) // New has checked it
	return &marks{store: o.tombstones, queue: uri.Vhost + ":" + queue, keep: o.keepCancelled, recall: o.keepSettled, log: log}
}

const (
	// askWithin bounds a question to the store that messages wait for.
	askWithin = 5 * time.Second

	// markWithin bounds what is told to the store on behalf of a message that is settled or given back already.
	markWithin = 2 * time.Second

	// markGrace is how much longer than its lease a message is held in the store: while the lease runs nobody can cancel it.
	markGrace = 2 * askWithin
)

// enroll stamps messages that are to be published for the first time.
func (m *marks) enroll(ctx context.Context, rs []record) error {
	if m == nil || len(rs) == 0 {
		return nil
	}
	ids := make([]string, len(rs))
	for i := range rs {
		ids[i] = rs[i].id
	}
	stamps, err := m.store.Enroll(ctx, m.queue, ids)
	if err == nil && len(stamps) != len(rs) {
		err = fmt.Errorf("%d stamps for %d messages", len(stamps), len(rs))
	}
	if err != nil {
		return fmt.Errorf("asking the tombstone store for stamps: %w", err)
	}
	for i := range rs {
		rs[i].stamp = stamps[i]
	}
	return nil
}

func (m *marks) cancel(ctx context.Context, ids []string) []error {
	errs := m.store.Cancel(ctx, m.queue, ids, m.keep)
	for i, err := range errs {
		if err != nil && !errors.Is(err, backend.ErrInFlight) && !errors.Is(err, backend.ErrNotFound) {
			errs[i] = fmt.Errorf("cancelling in the tombstone store: %w", err)
		}
	}
	return errs
}

// take holds messages for a lease, and says which are cancelled instead. What it holds is held until end.
func (m *marks) take(ctx context.Context, hs []Hold, lease time.Duration) (cancelled []bool, end time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	asked := time.Now() // the store counts from later on
	cancelled, err = m.store.Take(ctx, m.queue, hs, lease+markGrace)
	if err == nil && len(cancelled) != len(hs) {
		err = fmt.Errorf("%d answers for %d messages", len(cancelled), len(hs))
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("asking the tombstone store: %w", err)
	}
	return cancelled, asked.Add(lease + markGrace), nil
}

// release and settle tell the store what has happened. If that fails, the holds end by themselves, and until then Cancel answers
// backend.ErrInFlight.
func (m *marks) release(ctx context.Context, hs []Hold) { m.tell(ctx, "release", hs, m.store.Release) }

func (m *marks) settle(ctx context.Context, hs []Hold) {
	m.tell(ctx, "settle", hs, func(ctx context.Context, queue string, hs []Hold) error {
		return m.store.Settle(ctx, queue, hs, m.recall)
	})
}

func (m *marks) tell(ctx context.Context, what string, hs []Hold, call func(context.Context, string, []Hold) error) {
	ctx, cancel := context.WithTimeout(ctx, markWithin)
	defer cancel()
	if err := call(ctx, m.queue, hs); err != nil {
		m.log.Debug("delayq: the tombstone store could not be told; Cancel answers ErrInFlight for a while", "call", what, "messages", len(hs), "err", err)
	}
}

// Cancel is as in backend.Queue, without backend.CancelNotFound. It takes a tombstone store.
func (q *queue) Cancel(ctx context.Context, ids []string) []error {
	if q.marks == nil {
		return q.Unsupported.Cancel(ctx, ids)
	}
	return q.guarded(ctx, len(ids), func() []error { return q.marks.cancel(ctx, ids) })
}

// telling is one of release and settle.
type telling func(context.Context, []Hold)

// tell tells the store what has become of messages, but for those where it failed.
func (d *desk) tell(ctx context.Context, told telling, hs []*holding, errs []error) {
	if d.gate == nil {
		return
	}
	var holds []Hold
	for i, h := range hs {
		if h != nil && errs[i] == nil {
			holds = append(holds, h.hold())
		}
	}
	if len(holds) > 0 {
		told(ctx, holds)
	}
}
