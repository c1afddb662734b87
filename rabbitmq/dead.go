package rabbitmq

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// A deadLetter is an unacked delivery of a dead letter.
type deadLetter struct {
	backend.DeadLetter
	record
	tag uint64
	err error // of settling it
}

// allDead reads all dead letters instead of the first ones.
const allDead = math.MaxInt

// readDead reads up to limit dead letters, calls take with each, and then settle with the number of
// all, which returns how many it has acknowledged. The others are in the queue again when readDead
// returns. It is for thousands of letters, not millions: the broker shows messages only by handing
// them out. One call at a time reads, across processes, since other calls do not see the letters
// meanwhile.
func (q *queue) readDead(ctx context.Context, limit int, take func(*deadLetter), settle func(ch *amqp.Channel, count int) (acked int)) error {
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
	dead, err := inspectDead(ctx, ch, name)
	if err != nil && !refusedWith(err, amqp.NotFound) {
		return explain("looking at "+name, err)
	}
	if err != nil || dead.Messages == 0 { // an operator may have deleted it: the next dead letter declares it
		settle(ch, 0)
		return nil
	}
	wanted := min(dead.Messages, limit)
	n, err := readChunks(ctx, ch, name, wanted, q.b.chunk, deadQuietFor, func(d *amqp.Delivery) error {
		take(readDeadLetter(d))
		return nil
	})
	if err == nil && n < wanted {
		err = fmt.Errorf("%w: of %d dead letters only %d came: another program holds some", backend.ErrUnavailable, wanted, n)
	}
	if err != nil {
		_ = giveBackDead(ch, name, dead.Messages, n, 0) // the next reader finds all of them
		return err
	}
	return giveBackDead(ch, name, dead.Messages, n, settle(ch, dead.Messages))
}

// inspectDead counts dead letters. Those of a reader whose connection broke are in the queue again once
// the broker has noticed that, and has ended the reader's subscription. No other delayq reads them now.
func inspectDead(ctx context.Context, ch *amqp.Channel, name string) (dead amqp.Queue, err error) {
	retry := backoff{time.Millisecond, 100 * time.Millisecond}
	for end := time.Now().Add(deadQuietFor); ; {
		dead, err = inspect(ch, name)
		if err != nil || dead.Messages > 0 || dead.Consumers == 0 || time.Now().After(end) || !sleep(ctx, retry.next()) {
			return dead, err
		}
	}
}

// A deathClock gives each dead letter its own time of death. A cursor is that time and the id, and
// letters may share an id. It is safe for concurrent use.
type deathClock struct {
	mu   sync.Mutex
	last int64 // µs since 1970
}

// mostAhead bounds in µs how far times of death run ahead of the machine's clock, which may be set
// back.
const mostAhead = 1_000_000

// next returns µs since 1970.
func (c *deathClock) next(now time.Time) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := now.UnixMicro()
	if at <= c.last && c.last-at < mostAhead {
		at = c.last + 1
	}
	c.last = at
	return at
}

// byDeath puts the oldest death first.
func byDeath(a, b *deadLetter) int {
	return cmp.Or(a.Died.Compare(b.Died), cmp.Compare(a.id, b.id))
}

// deadQuietFor is how long the next dead letter may take to come.
const deadQuietFor = 5 * time.Second

// giveBackWaits bounds how long returned letters may take to be in the queue again. Until then the next
// reader would not find them. On a busy machine that takes seconds.
const giveBackWaits = 20 * time.Second

// giveBackDead returns the letters that were not acknowledged, and waits until they are in the
// queue again: the broker does not reply to a nack. n is how many letters there are, and read how
// many of them the reader has. One whose context has ended waits, too: its caller has returned, and
// it still holds the lock.
func giveBackDead(ch *amqp.Channel, name string, n, read, acked int) error {
	if acked > 0 {
		if err := passOnAcks(ch, name, func(*amqp.Delivery) { read++ }); err != nil {
			return explain("giving dead letters back", err)
		}
		n = max(n, read) // letters beyond n came later
	}
	if err := ch.Nack(0, true, true); err != nil {
		return explain("giving dead letters back", err)
	}
	for end := time.Now().Add(giveBackWaits); time.Now().Before(end); {
		dead, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		if err != nil || dead.Messages >= n-acked {
			return explain("giving dead letters back", err)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// lockDead locks the dead letters against other connections. The lock is an exclusive queue, which
// the broker deletes with the connection that has declared it.
func (q *queue) lockDead(ctx context.Context, s *session) (release func(), err error) {
	name := q.names.lock(q.name)
	for retry := (backoff{time.Millisecond, 20 * time.Millisecond}); ; {
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
		if !sleep(ctx, retry.next()) {
			return nil, fmt.Errorf("another process reads the dead letters: %w", ctx.Err())
		}
	}
}

// A keyedLock has a lock for each key. The zero value is ready.
type keyedLock struct{ locks sync.Map }

// lock waits for a key's lock until the context ends.
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

func readDeadLetter(d *amqp.Delivery) *deadLetter {
	r := readRecord(d, false) // its attempts are those until its death
	return &deadLetter{
		record: r, tag: d.DeliveryTag,
		DeadLetter: backend.DeadLetter{
			ID: r.id, State: backend.StateDead, Body: r.body, Headers: r.headers, Due: r.due, Attempts: count(d.Headers[attemptsHeader]),
			Reason: text(d.Headers[reasonHeader]), Died: time.UnixMicro(max(number(d.Headers[diedHeader]), 0)).UTC(),
		},
	}
}

func cursorOf(l *deadLetter) string { return fmt.Sprintf("%019d %s", l.Died.UnixMicro(), l.id) }

func parseCursor(cursor string) (string, error) {
	if cursor == "" {
		return "", nil
	}
	if len(cursor) > 19 && cursor[19] == ' ' {
		if _, err := strconv.ParseUint(cursor[:19], 10, 63); err == nil {
			return cursor, nil
		}
	}
	return "", backend.Invalid("cursor", cursor, "one that a listing returned")
}

// Redrive is as in backend.Queue: it publishes copies, then acknowledges the dead letters.
func (q *queue) Redrive(ctx context.Context, ids []string) []error {
	return q.settleDead(ctx, ids, func(ls []*deadLetter) {
		rs := make([]record, len(ls))
		for i, l := range ls {
			rs[i] = l.record
			rs[i].attempts, rs[i].due = 0, ceil(time.Now())
		}
		for i, err := range q.push(ctx, rs, time.Now()) {
			ls[i].err = err
		}
	})
}

// DeleteDead is as in backend.Queue.
func (q *queue) DeleteDead(ctx context.Context, ids []string) []error {
	return q.settleDead(ctx, ids, func([]*deadLetter) {})
}

// settleDead acknowledges the dead letters of some ids, except those to which before gives an
// error. Of letters with the same id it takes the oldest.
func (q *queue) settleDead(ctx context.Context, ids []string, before func([]*deadLetter)) []error {
	ids = slices.Clone(ids) // it may go on after it has returned
	return q.guardedWithin(ctx, len(ids), func() []error {
		wanted := make(map[string][]*deadLetter, len(ids))
		for _, id := range ids {
			wanted[id] = nil
		}
		take := func(l *deadLetter) {
			if same, ok := wanted[l.id]; ok {
				wanted[l.id] = append(same, l)
			}
		}
		asked := make([]*deadLetter, len(ids)) // nil for an id without a letter
		err := q.readDead(ctx, allDead, take, func(ch *amqp.Channel, _ int) (acked int) {
			q.listing.forget()
			for _, same := range wanted {
				slices.SortStableFunc(same, byDeath)
			}
			var found []*deadLetter
			for i, id := range ids {
				if same := wanted[id]; len(same) > 0 {
					asked[i], wanted[id] = same[0], same[1:]
					found = append(found, same[0])
				}
			}
			before(found)
			for _, l := range found {
				if l.err != nil {
					continue
				}
				acked++
				if err := ch.Ack(l.tag, false); err != nil { // a copy may be in the queue
					l.err = unknown(explain("acknowledging a dead letter", err))
				}
			}
			return acked
		})
		errs := make([]error, len(ids))
		for i, l := range asked {
			switch {
			case l != nil && l.err != nil:
				errs[i] = l.err
			case l != nil && err != nil:
				errs[i] = unknown(err) // the ack was sent
			case err != nil:
				errs[i] = err
			case l == nil:
				errs[i] = backend.ErrNotFound
			}
		}
		return errs
	})
}
