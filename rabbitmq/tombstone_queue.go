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

// queueTombstones is the tombstone store as one queue uses it. It is safe for concurrent use.
type queueTombstones struct {
	store         Tombstones
	queue         string
	keepCancelled time.Duration
	keepSettled   time.Duration
	log           *slog.Logger
}

// newQueueTombstones returns nil without a store. The virtual host is part of the queue's name,
// since one store may serve several.
func newQueueTombstones(o *options, queue string, log *slog.Logger) *queueTombstones {
	if o.tombstones == nil {
		return nil
	}
	uri, _ := amqp.ParseURI(o.url) // New has checked it
	return &queueTombstones{
		store: o.tombstones, queue: uri.Vhost + ":" + queue, keepCancelled: o.keepCancelled, keepSettled: o.keepSettled, log: log,
	}
}

const (
	// askWithin bounds a query to the store that messages wait for.
	askWithin = 5 * time.Second

	// reportWithin bounds a report to the store about messages that are settled or given back.
	reportWithin = 2 * time.Second

	// holdGrace is how much longer than its lease a message is held in the store. Without it the
	// message could be cancelled at the end of the lease, while the worker still has it.
	holdGrace = 2 * askWithin
)

// enroll stamps messages before they are published for the first time.
func (t *queueTombstones) enroll(ctx context.Context, rs []record) error {
	if t == nil || len(rs) == 0 {
		return nil
	}
	ids := make([]string, len(rs))
	for i := range rs {
		ids[i] = rs[i].id
	}
	stamps, err := t.store.Enroll(ctx, t.queue, ids)
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

func (t *queueTombstones) cancel(ctx context.Context, ids []string) []error {
	errs := t.store.Cancel(ctx, t.queue, ids, t.keepCancelled)
	for i, err := range errs {
		if err != nil && !errors.Is(err, backend.ErrInFlight) && !errors.Is(err, backend.ErrNotFound) {
			errs[i] = fmt.Errorf("cancelling in the tombstone store: %w", err)
		}
	}
	return errs
}

// take holds the messages that are not cancelled for a lease, until end.
func (t *queueTombstones) take(ctx context.Context, hs []Hold, lease time.Duration) (cancelled []bool, end time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	asked := time.Now() // the store counts from later on
	cancelled, err = t.store.Take(ctx, t.queue, hs, lease+holdGrace)
	if err == nil && len(cancelled) != len(hs) {
		err = fmt.Errorf("%d replies for %d messages", len(cancelled), len(hs))
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("asking the tombstone store: %w", err)
	}
	return cancelled, asked.Add(lease + holdGrace), nil
}

// release and settle report to the store. If that fails, the holds end by themselves, and Cancel
// returns backend.ErrInFlight until then.
func (t *queueTombstones) release(ctx context.Context, hs []Hold) {
	t.report(ctx, "release", hs, t.store.Release)
}

func (t *queueTombstones) settle(ctx context.Context, hs []Hold) {
	t.report(ctx, "settle", hs, func(ctx context.Context, queue string, hs []Hold) error {
		return t.store.Settle(ctx, queue, hs, t.keepSettled)
	})
}

func (t *queueTombstones) report(ctx context.Context, what string, hs []Hold, call func(context.Context, string, []Hold) error) {
	ctx, cancel := context.WithTimeout(ctx, reportWithin)
	defer cancel()
	if err := call(ctx, t.queue, hs); err != nil {
		t.log.Debug("delayq: the tombstone store does not reply; Cancel returns ErrInFlight for a while", "call", what, "messages", len(hs), "err", err)
	}
}

// Cancel is as in backend.Queue, without backend.CancelNotFound. It takes a tombstone store.
func (q *queue) Cancel(ctx context.Context, ids []string) []error {
	if q.tombstones == nil {
		return q.Unsupported.Cancel(ctx, ids)
	}
	return q.guarded(ctx, len(ids), func() []error { return q.tombstones.cancel(ctx, ids) })
}
