package rabbitmq

import (
	"context"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// lookedAt is how many letters show whether some are too old. The broker gives letters that were
// read and given back in any order. So these need not be the oldest, and only their age counts.
const lookedAt = 500

// TrimDead is as in backend.Queue, by the clock of this machine. The broker cannot do it: what it
// takes off a queue by itself goes to the queue's dead-letter exchange. As in ListDead, all letters
// are read where some are to be deleted, and these are all deleted in one call.
func (q *queue) TrimDead(ctx context.Context, r backend.Retention) (removed int, more bool, err error) {
	if err := q.open(ctx); err != nil {
		return 0, false, err
	}
	type outcome struct {
		removed int
		err     error
	}
	got, left := within(ctx, func() (outcome, error) {
		removed, err := q.trimAll(ctx, r)
		return outcome{removed, err}, nil
	})
	if left != nil { // it goes on
		return 0, false, unknown(left)
	}
	return got.removed, false, got.err
}

func (q *queue) trimAll(ctx context.Context, r backend.Retention) (removed int, err error) {
	n, err := q.countDead(ctx)
	if err != nil || n == 0 {
		return 0, err
	}
	beyond := r.MaxCount > 0 && n > r.MaxCount
	if !beyond && r.MaxAge > 0 {
		removed, err = q.trimDead(ctx, backend.Retention{MaxAge: r.MaxAge}, lookedAt)
	}
	if beyond || err == nil && removed > 0 && n > lookedAt {
		var others int
		others, err = q.trimDead(ctx, r, allDead)
		removed += others
	}
	return removed, err
}

// trimDead looks at up to limit letters.
func (q *queue) trimDead(ctx context.Context, r backend.Retention, limit int) (removed int, err error) {
	var oldest []*deadLetter
	take := func(l *deadLetter) {
		l.body, l.Body = nil, nil // they are many
		oldest = append(oldest, l)
	}
	err = q.readDead(ctx, limit, take, func(ch *amqp.Channel, count int) (acked int) {
		q.listing.forget()
		slices.SortStableFunc(oldest, byDeath)
		for _, l := range oldest[:notKept(oldest, count, r, time.Now())] {
			if ch.Ack(l.tag, false) != nil {
				break // the channel is gone, and the letters are in the queue again
			}
			removed++
		}
		return removed
	})
	if err != nil && removed > 0 { // the acks were sent
		err = unknown(err)
	}
	return removed, err
}

// notKept returns how many of the oldest letters the retention does not keep.
func notKept(oldest []*deadLetter, count int, r backend.Retention, now time.Time) (n int) {
	if r.MaxCount > 0 {
		n = min(max(count-r.MaxCount, 0), len(oldest))
	}
	for r.MaxAge > 0 && n < len(oldest) && now.Sub(oldest[n].Died) >= r.MaxAge {
		n++
	}
	return n
}
