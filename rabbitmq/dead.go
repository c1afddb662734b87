package rabbitmq

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
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

// exhume reads all dead letters, has take see each, and then lets f settle some of them. It is for thousands of them, not
// millions: the broker shows messages in no other way than by handing them out. The others return before it does. One reads at a time, in this process and
// in others, since nobody else sees the letters meanwhile.
func (q *queue) exhume(ctx context.Context, take func(grave), f func(ch *amqp.Channel, count int) (acked int)) error {
	unlock, err := q.b.dead.lock(ctx, q.name)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := q.sub.session(ctx)
	if err != nil {
		return err
	}
	release, err := q.lockDead(ctx, s)
	if err != nil {
		return err
	}
	defer release()
	ch, err := s.conn.Channel()
	if err != nil {
		return explain("opening a channel", err)
	}
	defer func() { _ = ch.Close() }()
	name := q.names.dead(q.name)
	dead, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
	if err != nil {
		return explain("looking at "+name, err)
	}
	if dead.Messages == 0 {
		f(ch, 0)
		return nil
	}
	n, err := readQueue(ctx, ch, name, dead.Messages, deadQuietFor, func(d *amqp.Delivery) error {
		take(readGrave(d))
		return nil
	})
	if err == nil && n < dead.Messages {
		err = fmt.Errorf("%w: of %d dead letters only %d came: another program has some in hand", backend.ErrUnavailable, dead.Messages, n)
	}
	if err != nil {
		return err
	}
	return giveBackGraves(ctx, ch, name, dead.Messages, f(ch, dead.Messages))
}

// byDeath puts the oldest death first.
func byDeath(a, b grave) int {
	return cmp.Or(a.Died.Compare(b.Died), cmp.Compare(a.DeadLetter.ID, b.DeadLetter.ID))
}

// deadQuietFor is for how long dead letters that are there may not come.
const deadQuietFor = 5 * time.Second

// giveBackWaits bounds how long letters that were given back may take to be there again.
const giveBackWaits = 2 * time.Second

// giveBackGraves returns what was not acknowledged of n letters, and waits until it is there again: the broker does not reply to that. A quorum queue's channel holds
// acks back beyond some dozens, and forgets them when it closes: it sends them before it replies to the second get.
func giveBackGraves(ctx context.Context, ch *amqp.Channel, name string, n, acked int) error {
	for range 2 * min(acked, 1) {
		_, some, err := ch.Get(name, false)
		if err != nil {
			return explain("giving dead letters back", err)
		}
		if some {
			n++
		}
	}
	if err := ch.Nack(0, true, true); err != nil {
		return explain("giving dead letters back", err)
	}
	for end := time.Now().Add(giveBackWaits); time.Now().Before(end); {
		dead, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		if err != nil || dead.Messages >= n-acked || !sleep(ctx, time.Millisecond) {
			return explain("giving dead letters back", err)
		}
	}
	return nil
}

// lockDead keeps other connections from the dead letters. An exclusive queue is the lock: the broker deletes it with the connection that has declared it.
func (q *queue) lockDead(ctx context.Context, s *session) (release func(), err error) {
	name := q.names.lock(q.name)
	for pause := time.Millisecond; ; pause = min(2*pause, maxLockPause) {
		ch, err := s.conn.Channel()
		if err != nil {
			return nil, explain("opening a channel", err)
		}
		if _, err = ch.QueueDeclare(name, false, false, true, false, amqp.Table{"x-queue-type": "classic"}); err == nil {
			return func() {
				_, _ = ch.QueueDelete(name, false, false, false)
				_ = ch.Close()
			}, nil
		}
		if !refusedWith(err, amqp.ResourceLocked) {
			return nil, explain("declaring queue "+name, err)
		}
		if !sleep(ctx, pause/2+rand.N(pause)) {
			return nil, fmt.Errorf("another process reads the dead letters: %w", ctx.Err())
		}
	}
}

const maxLockPause = 20 * time.Millisecond

// A keyedLock has a lock for each key, for which its users wait as long as their contexts let them. The zero value is ready.
type keyedLock struct{ locks sync.Map }

func (k *keyedLock) lock(ctx context.Context, key string) (unlock func(), err error) {
	l, _ := k.locks.LoadOrStore(key, make(chan struct{}, 1))
	held := l.(chan struct{})
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
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

// Redrive is as in backend.Queue: published, then acknowledged.
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

// DeleteDead is as in backend.Queue.
func (q *queue) DeleteDead(ctx context.Context, ids []string) []error {
	return q.disinter(ctx, ids, func(_ *amqp.Channel, gs []grave) []error { return make([]error, len(gs)) })
}

// disinter acknowledges the dead letters of some ids after before has done its part. Of letters with one id the oldest goes.
func (q *queue) disinter(ctx context.Context, ids []string, before func(*amqp.Channel, []grave) []error) []error {
	wanted := make(map[string]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	return q.guardedWithin(ctx, len(ids), func() []error {
		var all []grave
		take := func(g grave) {
			if wanted[g.DeadLetter.ID] {
				all = append(all, g)
			}
		}
		errs := make([]error, len(ids))
		err := q.exhume(ctx, take, func(ch *amqp.Channel, _ int) (acked int) {
			q.listing.forget()
			slices.SortStableFunc(all, byDeath)
			found, at := match(all, ids, errs)
			for i, err := range before(ch, found) {
				if err == nil {
					err = explain("acknowledging a dead letter", ch.Ack(found[i].tag, false))
					acked++
				}
				errs[at[i]] = err
			}
			return acked
		})
		if err != nil {
			fill(errs, err)
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
