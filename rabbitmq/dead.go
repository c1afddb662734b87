package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// A grave is a dead letter in hand.
type grave struct {
	backend.DeadLetter
	record
	tag uint64
}

// exhume gets all dead letters, oldest death first, and lets f settle some of them. The others return when the channel
// closes. It is for thousands of them, not millions: the broker shows messages in no other way than by handing them out.
func (q *queue) exhume(ctx context.Context, f func(*amqp.Channel, []grave) error) error {
	s, err := q.b.sub.session(ctx)
	if err != nil {
		return err
	}
	ch, err := s.conn.Channel()
	if err != nil {
		return explain("opening a channel", err)
	}
	defer func() { _ = ch.Close() }()
	var all []grave
	for ctx.Err() == nil {
		d, ok, err := ch.Get(q.names.dead(q.name), false)
		if err != nil {
			return explain("reading dead letters", err)
		}
		if !ok {
			break
		}
		all = append(all, readGrave(&d))
	}
	slices.SortStableFunc(all, func(a, b grave) int { return cmp.Or(a.Died.Compare(b.Died), cmp.Compare(a.ID, b.ID)) })
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(f(ch, all), giveBackGraves(ch))
}

// giveBackGraves returns what was not acknowledged. What a closing channel returns may be missing for some ms more.
func giveBackGraves(ch *amqp.Channel) error {
	return explain("giving dead letters back", errors.Join(ch.Nack(0, true, true), ch.Confirm(false)))
}

func readGrave(d *amqp.Delivery) grave {
	attempts := count(d.Headers[attemptsHeader])
	r := readRecord(d)
	return grave{
		record: r, tag: d.DeliveryTag,
		DeadLetter: backend.DeadLetter{
			ID: r.id, Body: r.body, Headers: r.headers, Due: r.due, Attempts: attempts,
			Reason: text(d.Headers[reasonHeader]), Died: time.UnixMicro(max(number(d.Headers[diedHeader]), 0)).UTC(),
		},
	}
}

// ListDead is as in backend.DeadLetters. The cursor is the time of death and the id of the last one. While it reads, others
// do not see the letters.
func (q *queue) ListDead(ctx context.Context, cursor string, limit int) (ls []backend.DeadLetter, next string, err error) {
	if err := q.open(ctx); err != nil {
		return nil, "", err
	}
	after, err := parseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	err = q.exhume(ctx, func(_ *amqp.Channel, all []grave) error {
		for _, g := range all {
			if cursorOf(g) <= after {
				continue
			}
			if len(ls) == limit {
				next = cursorOf(grave{DeadLetter: ls[limit-1]})
				break
			}
			ls = append(ls, g.DeadLetter)
		}
		return nil
	})
	return ls, next, err
}

func cursorOf(g grave) string { return fmt.Sprintf("%019d %s", g.Died.UnixMicro(), g.DeadLetter.ID) }

func parseCursor(cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	if len(cursor) < 20 || cursor[19] != ' ' {
		return "", backend.Invalid("cursor", cursor, "one that a listing returned")
	}
	if _, err := strconv.ParseUint(cursor[:19], 10, 63); err != nil {
		return "", backend.Invalid("cursor", cursor, "one that a listing returned")
	}
	return cursor, nil
}

// Redrive is as in backend.DeadLetters: published, then acknowledged.
func (q *queue) Redrive(ctx context.Context, ids []string) []error {
	return q.disinter(ctx, ids, func(ch *amqp.Channel, gs []grave) []error {
		rs := make([]record, len(gs))
		for i, g := range gs {
			rs[i] = g.record
			rs[i].attempts, rs[i].due = 0, ceil(time.Now())
		}
		return q.push(ctx, rs, time.Now())
	})
}

// DeleteDead is as in backend.DeadLetters.
func (q *queue) DeleteDead(ctx context.Context, ids []string) []error {
	return q.disinter(ctx, ids, func(_ *amqp.Channel, gs []grave) []error { return make([]error, len(gs)) })
}

// disinter acknowledges the dead letters of some ids after before has done its part. Of letters with one id the oldest goes.
func (q *queue) disinter(ctx context.Context, ids []string, before func(*amqp.Channel, []grave) []error) []error {
	return q.guarded(ctx, len(ids), func() []error {
		errs := make([]error, len(ids))
		err := q.exhume(ctx, func(ch *amqp.Channel, all []grave) error {
			found, at := match(all, ids, errs)
			for i, err := range before(ch, found) {
				if errs[at[i]] = err; err == nil {
					_ = ch.Ack(found[i].tag, false)
				}
			}
			return nil
		})
		if err != nil {
			return backend.FailAll(len(ids), err)
		}
		return errs
	})
}

// match finds the letters of ids, and where in ids each was asked for.
func match(all []grave, ids []string, errs []error) (found []grave, at []int) {
	taken := make(map[uint64]bool)
	for i, id := range ids {
		j := slices.IndexFunc(all, func(g grave) bool { return g.DeadLetter.ID == id && !taken[g.tag] })
		if j < 0 {
			errs[i] = backend.ErrNotFound
			continue
		}
		taken[all[j].tag] = true
		found, at = append(found, all[j]), append(at, i)
	}
	return found, at
}
