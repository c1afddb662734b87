package shard

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/internal/redis/store"
)

// A shard is a store, and what is known of its first message. The times are by the queue's clock.
type shard struct {
	*store.Store
	at      time.Time // when to claim from it; far ahead where nothing waits
	woken   time.Time // the same, of wake-ups since the claim began that is under way; zero for none
	claimed bool      // a claim is under way

	// A time on its server's clock, and when the queue's clock showed the same. The first is zero
	// before the first claim.
	server, local time.Time
}

// never is after every due time.
var never = backend.LatestDue.Add(time.Hour)

const (
	// leastShare is for how many messages a claim asks a shard at least, where as many are wanted: a
	// script costs as much as some messages.
	leastShare = 16

	// together is how long a claim waits for other shards when it has the messages of one, and
	// alone for the first. A shard whose server does not reply must not hold the others up.
	together = 250 * time.Millisecond
	alone    = time.Second

	// again is how long a shard is left alone after an error.
	again = 100 * time.Millisecond
)

type claimed struct {
	ds  []backend.Delivery
	err error
}

// Claim leases messages of the shards whose first messages were due first, up to limit in all. Messages
// of a shard that takes too long are given back when they come.
func (q *Queue) Claim(ctx context.Context, limit int, lease time.Duration, name string) (c script.Claim, err error) {
	chosen := q.choose(limit)
	claims := make(chan claimed, len(chosen))
	for i, s := range chosen {
		share := limit / len(chosen)
		if i < limit%len(chosen) {
			share++
		}
		q.Calls.Go(func() {
			ds, err := q.claimFrom(ctx, s, share, lease, name)
			claims <- claimed{ds, err}
		})
	}
	patience := time.NewTimer(alone)
	defer patience.Stop()
	for left := len(chosen); left > 0; left-- {
		select {
		case got := <-claims:
			c.Deliveries = append(c.Deliveries, got.ds...)
			err = cmp.Or(err, got.err)
			if len(c.Deliveries) > 0 {
				patience.Reset(together)
			}
			continue
		case <-patience.C:
			q.Calls.Go(func() { q.giveBack(claims, left) })
		}
		break
	}
	if len(c.Deliveries) > 0 {
		err = nil // the shard is asked again soon
	}
	c.Now, c.Next = q.next()
	return c, err
}

const giveBackWithin = 2 * time.Second

// giveBack gives back what claims bring that were not waited for. Where that fails, the leases end.
func (q *Queue) giveBack(claims <-chan claimed, n int) {
	for range n {
		got := <-claims
		if len(got.ds) > 0 {
			ctx, cancel := context.WithTimeout(context.Background(), giveBackWithin)
			rs := make([]backend.Return, len(got.ds))
			for i := range got.ds {
				rs[i] = backend.Return{Lease: got.ds[i].Lease(), Untouched: true}
			}
			_ = q.Nack(ctx, rs)
			cancel()
		}
		q.Wake(q.shards[0].Channels()[0]) // the handle may have to look sooner than it was told to
	}
}

// choose returns the shards to claim from: those whose first messages are due, the longest due first, as
// many as limit allows shares for. Where none is due, and once each Poll, it adds one in turn, since a
// wake-up can be lost.
func (q *Queue) choose(limit int) []*shard {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.Clock.Now()
	var due []*shard
	for _, s := range q.shards {
		if !s.claimed && !s.at.After(now) {
			due = append(due, s)
		}
	}
	slices.SortStableFunc(due, func(a, b *shard) int { return a.at.Compare(b.at) })
	due = due[:min(len(due), max(1, limit/leastShare))]
	if len(due) == 0 || now.Sub(q.looked) >= q.Poll {
		if s := q.inTurn(); s != nil && !slices.Contains(due, s) {
			q.looked = now
			due = append(due, s)
		}
	}
	due = due[max(0, len(due)-limit):]
	for _, s := range due {
		s.claimed, s.woken = true, time.Time{}
	}
	return due
}

// inTurn returns the next shard without a claim, or nil.
func (q *Queue) inTurn() *shard {
	for range q.shards {
		s := q.shards[q.turn%len(q.shards)]
		q.turn++
		if !s.claimed {
			return s
		}
	}
	return nil
}

func (q *Queue) claimFrom(ctx context.Context, s *shard, limit int, lease time.Duration, name string) ([]backend.Delivery, error) {
	c, err := s.Store.Claim(ctx, limit, lease, name)
	q.mu.Lock()
	defer q.mu.Unlock()
	s.claimed = false
	switch {
	case err != nil:
		s.at = q.Clock.Now().Add(again)
	case c.Next.IsZero():
		s.at = never
		s.server, s.local = c.Now, q.localTime(c.Now)
	default:
		s.server, s.local = c.Now, q.localTime(c.Now)
		s.at = s.localOf(c.Next)
	}
	if !s.woken.IsZero() && s.woken.Before(s.at) {
		s.at = s.woken
	}
	return c.Deliveries, err
}

// localTime returns what the queue's clock shows when a reply has come with the server's time. The
// server read its clock on the way: better late than early. A clock that was given is the server's too.
func (q *Queue) localTime(server time.Time) time.Time {
	if q.injected {
		return server
	}
	return q.Clock.Now()
}

func (s *shard) localOf(t time.Time) time.Time { return s.local.Add(t.Sub(s.server)) }

// next returns the time, and when a claim has to look again.
func (q *Queue) next() (now, next time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	next = never
	for _, s := range q.shards {
		if !s.claimed && s.at.Before(next) {
			next = s.at
		}
	}
	now = q.Clock.Now()
	switch {
	case next.Equal(never):
		return now, time.Time{}
	case next.Before(now):
		return now, now
	}
	return now, next
}

// lookNow is before every due time, and is not the zero time.
var lookNow = time.Unix(0, 1)

// Woken notes a wake-up of a shard, and returns its due time by the queue's clock.
func (q *Queue) Woken(channel string, due time.Time) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, s := range q.shards {
		if s.Channels()[0] != channel {
			continue
		}
		at := lookNow
		if !due.IsZero() && !s.server.IsZero() {
			at = s.localOf(due)
		}
		if at.Before(s.at) {
			s.at = at
		}
		if s.woken.IsZero() || at.Before(s.woken) {
			s.woken = at
		}
		return at
	}
	return due
}
