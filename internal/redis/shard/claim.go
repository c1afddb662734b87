package shard

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/internal/redis/store"
)

// A position tells a shard from the others, of all generations.
type position struct {
	generation int64
	shard      int
}

func (p position) compare(other position) int {
	return cmp.Or(cmp.Compare(p.generation, other.generation), cmp.Compare(p.shard, other.shard))
}

// A shard is a store, and what is known of its first message. The times are by the queue's clock.
type shard struct {
	*store.Store
	position

	at      time.Time // when to claim from it; far ahead where nothing waits
	rest    time.Time // until when it is left alone after an error
	woken   time.Time // the same, of wake-ups since the claim began that is under way; zero for none
	claimed bool      // a claim is under way
	many    bool      // the last claim got as many messages as it asked for

	// A time on its server's clock, and when the queue's clock showed the same. The first is zero
	// before the first claim.
	server, local time.Time
}

// never is after every due time.
var never = backend.LatestDue.Add(time.Hour)

const (
	// For so many messages a claim asks a shard at least, where as many are wanted: one that has many,
	// since a script costs as much as some messages, and one of which only the first is known.
	manyAtLeast, fewAtLeast = 256, 2

	// alone is how long a claim waits for the first shard that has messages, or longer where Patience is.
	alone = time.Second

	// again is how long a shard is left alone after an error.
	again = 100 * time.Millisecond

	// soon is by how much the clocks of a master and of this process may be told wrong.
	soon = 10 * time.Millisecond
)

// Patience is how long a claim waits for other shards when it has the messages of one. A shard whose server
// does not reply must not hold the others up. Messages of a slower one come out of order, so tests of the
// order have more of it: their machines are busy.
var Patience = 250 * time.Millisecond

type claimed struct {
	ds  []backend.Delivery
	err error
}

// Claim leases messages of the shards whose first messages were due first, up to limit in all. Messages
// of a shard that takes too long are given back when they come.
func (q *Queue) Claim(ctx context.Context, limit int, lease time.Duration, name string) (c script.Claim, err error) {
	if s := q.whole(); s != nil {
		c, err = s.Claim(ctx, limit, lease, name)
		if !errors.Is(err, store.ErrSplit) {
			return c, err
		}
		if err = q.refresh(ctx); err != nil {
			return c, err
		}
	}
	chosen, failing := q.choose(limit)
	claims, room := make(chan claimed, len(chosen)), store.Room/max(len(chosen), 1)
	for _, s := range chosen {
		q.Calls.Go(func() { claims <- q.claimFrom(ctx, s, room, lease, name) })
	}
	for _, s := range failing { // nobody waits for them
		look := make(chan claimed, 1)
		q.Calls.Go(func() { look <- q.claimFrom(ctx, s, room, lease, name) })
		q.Calls.Go(func() { q.await(look, 1, lease) })
	}
	patience := time.NewTimer(max(alone, Patience))
	defer patience.Stop()
	for left := len(chosen); left > 0; left-- {
		select {
		case got := <-claims:
			if len(c.Deliveries) == 0 && len(got.ds) > 0 {
				patience.Reset(min(Patience, lease/4))
			}
			c.Deliveries, err = append(c.Deliveries, got.ds...), cmp.Or(err, got.err)
			continue
		case <-patience.C:
			q.Calls.Go(func() { q.await(claims, left, lease) })
		}
		break
	}
	c.Now, c.Next = q.nextEvent()
	return c, q.total(err)
}

// total returns the error of a claim, or of one that was not waited for, if no shard can be claimed from. Else
// the workers would pause, and the messages of the other shards would wait: a shard that failed is asked
// again soon.
func (q *Queue) total(err error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	err, q.late = cmp.Or(err, q.late), nil
	if slices.ContainsFunc(q.shardsLocked(), func(s *shard) bool { return !s.claimed && s.rest.IsZero() }) {
		return nil
	}
	return err
}

// await gives back what claims bring that were not waited for.
func (q *Queue) await(claims <-chan claimed, n int, lease time.Duration) {
	for range n {
		got := <-claims
		if len(got.ds) > 0 {
			q.Calls.Go(func() { q.giveBack(got.ds, lease) })
		}
		if got.err != nil {
			q.mu.Lock()
			q.late = got.err
			q.mu.Unlock()
		}
		q.Wake(lookNow) // the handle may have to look sooner than it was told to
	}
}

// giveBackFor bounds how long messages are given back. The ends of their leases do the rest.
const giveBackFor = 30 * time.Second

// giveBack tries for a while, and no more once the handle is closed. A client that has met a server without a
// reply may be slow with the others too, while it looks for the masters anew.
func (q *Queue) giveBack(ds []backend.Delivery, lease time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), min(lease, giveBackFor))
	defer cancel()
	rs := make([]backend.Return, len(ds))
	for i := range ds {
		rs[i] = backend.Return{Lease: ds[i].Lease(), Untouched: true}
	}
	passes := func(err error) bool {
		return errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrOutcomeUnknown)
	}
	for slices.ContainsFunc(q.Nack(ctx, rs), passes) {
		select {
		case <-time.After(again): // a server that fails is not flooded
		case <-q.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

// Disorder is by how much due times of messages of different shards may be out of order.
const Disorder = time.Second

// A share is the part that a shard has in a claim: up to limit messages that are due up to a time by its
// server's clock.
type share struct {
	*shard
	latest time.Time
	limit  int
}

// choose returns the shards to claim from: those whose first messages are due, the longest due first, as
// many as limit allows shares for. Messages that are due more than Disorder after the first are left out.
// Shards of which that is not known are looked at before. Where none is due, and once each Poll, it looks
// at one in turn, since a wake-up can be lost. Shards whose last claim failed are apart: they must not hold
// the others up.
func (q *Queue) choose(limit int) (chosen, failing []share) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.Clock.Now()
	all := q.shardsLocked()
	var due []*shard
	for _, s := range all {
		switch {
		case s.claimed || s.at.After(now) || s.rest.After(now):
		case !s.rest.IsZero():
			failing = append(failing, s.share(time.Time{}, 1))
		case !s.at.After(lookNow):
			chosen = append(chosen, s.share(time.Time{}, 1))
		default:
			due = append(due, s)
		}
	}
	if len(chosen) > 0 {
		return chosen, failing
	}
	slices.SortStableFunc(due, func(a, b *shard) int { return a.at.Compare(b.at) })
	rest := limit
	for _, s := range due {
		least := fewAtLeast
		if s.many {
			least = manyAtLeast
		}
		// No shard has a whole claim, since its master may not reply.
		if least = min(least, max(limit/2, fewAtLeast), limit); least > rest || s.at.Sub(due[0].at) > Disorder {
			break
		}
		rest -= least
		chosen = append(chosen, s.share(s.serverOf(due[0].at.Add(Disorder)), least))
	}
	for i := range chosen { // the rest in equal parts
		part := rest / (len(chosen) - i)
		chosen[i].limit += part
		rest -= part
	}
	idle := len(due) == 0 && !slices.ContainsFunc(all, func(s *shard) bool { return !s.rest.IsZero() })
	if idle || now.Sub(q.looked) >= q.Poll { // wake-ups of shards that fail are no reason
		q.looked = now
		if q.turns++; q.turns%readEvery == 0 && !q.busy {
			q.busy = true
			q.Calls.Go(q.maintainOnce)
		} else if s := q.inTurn(all); s != nil {
			chosen = append(chosen, s.share(time.Time{}, 1))
		}
	}
	return chosen, failing
}

func (s *shard) share(latest time.Time, limit int) share {
	s.claimed, s.woken = true, time.Time{}
	return share{s, latest, limit}
}

// inTurn returns the next shard without a claim whose last one has not failed, or nil.
func (q *Queue) inTurn(shards []*shard) *shard {
	for range shards {
		q.turn++
		if s := shards[q.turn%len(shards)]; !s.claimed && s.rest.IsZero() {
			return s
		}
	}
	return nil
}

// readEvery is after how many turns one is for the note instead of a shard.
const readEvery = 5

// Sweep returns how long it takes until each of n shards has been looked at without a reason.
func Sweep(poll time.Duration, n int) time.Duration {
	return poll * time.Duration(n) * readEvery / (readEvery - 1)
}

func (q *Queue) maintainOnce() {
	for again := true; again; {
		err := q.maintain(context.Background())
		if failed := q.failed.Swap(err != nil); err != nil && !failed {
			q.Log.Warn("delayq: looking for changes of a queue's shards failed; it is tried again soon", "err", err)
		}
		q.mu.Lock()
		again = q.again
		q.busy, q.again = again, false
		q.mu.Unlock()
	}
}

func (q *Queue) claimFrom(ctx context.Context, s share, room int, lease time.Duration, name string) claimed {
	c, err := s.ClaimUpTo(ctx, s.latest, s.limit, room, lease, name)
	if errors.Is(err, store.ErrSplit) { // an old generation, which is known
		err = nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil && s.rest.IsZero() && ctx.Err() == nil {
		q.Log.Warn("delayq: claiming from a shard failed; its messages wait", "shard", s.Channel(), "err", err)
	}
	s.claimed, s.many, s.rest = false, len(c.Deliveries) >= s.limit, time.Time{}
	for i := range c.Deliveries {
		c.Deliveries[i].Token.Hi |= uint64(byte(s.generation)) << 56
	}
	switch {
	case err != nil:
		s.at, s.rest = lookNow, q.Clock.Now().Add(again)  // what has happened there meanwhile is unknown
		time.AfterFunc(again, func() { q.Wake(lookNow) }) // a handle may sleep until something wakes it
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
	return claimed{c.Deliveries, err}
}

// localTime returns what the queue's clock shows when a reply has come with the server's time. The
// server read its clock on the way: better late than early. A clock that was given is the server's too.
func (q *Queue) localTime(server time.Time) time.Time {
	if q.given != nil {
		return server
	}
	return q.Clock.Now()
}

// localOf returns what the queue's clock shows at a time of the server's, or the earliest due time.
func (s *shard) localOf(t time.Time) time.Time {
	local := s.local.Add(t.Sub(s.server))
	if local.Before(backend.EarliestDue) {
		return backend.EarliestDue
	}
	return local
}

// serverOf returns a time of the server's clock, or the zero time before the first claim.
func (s *shard) serverOf(t time.Time) time.Time {
	if s.server.IsZero() {
		return s.server
	}
	return s.server.Add(t.Sub(s.local))
}

// nextEvent returns the time, and when a claim has to look again.
func (q *Queue) nextEvent() (now, next time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	next = never
	for _, s := range q.shardsLocked() {
		at := s.at
		if s.rest.After(at) {
			at = s.rest
		}
		if !s.claimed && at.Before(next) {
			next = at
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
var lookNow = backend.EarliestDue.Add(-time.Hour)

// Woken notes a wake-up of a shard, and returns its due time by the queue's clock. On the queue's own
// channel it reads the note.
func (q *Queue) Woken(channel string, due time.Time) time.Time {
	if q.whole() != nil {
		return due
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	changed := due.IsZero() || due.Equal(time.UnixMilli(0)) // the subscription or the note, not a claim that failed
	if channel == q.base.Channel() && changed {
		if q.again = q.busy; !q.busy {
			q.busy = true
			q.Calls.Go(q.maintainOnce)
		}
	}
	at := lookNow
	for _, s := range q.shardsLocked() {
		if s.Channel() == channel {
			now := q.Clock.Now()
			switch known := !s.server.IsZero(); {
			case known && !due.IsZero():
				at = s.localOf(due)
			case known && s.at.After(lookNow) && s.at.Before(now.Add(soon)): // the key of its first message has expired
				at = now
			}
			s.lower(at)
		}
	}
	return at
}

// lower notes that a message is due at a time of the queue's clock.
func (s *shard) lower(at time.Time) {
	if at.Before(s.at) {
		s.at = at
	}
	if s.woken.IsZero() || at.Before(s.woken) {
		s.woken = at
	}
}

// pushed notes messages that this program has pushed, since their wake-ups come later: they may be due
// before all others. Those with a delay are not.
func (q *Queue) pushed(s *shard, ms []backend.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range ms {
		switch due := ms[i].Due; {
		case due.IsZero():
		case s.server.IsZero():
			s.lower(lookNow)
		default:
			s.lower(s.localOf(due))
		}
	}
}
