package redisson_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/redisson"
)

// A peeker is a queue, or its store alone.
type peeker interface {
	Peek(context.Context, string, int) ([]backend.Pending, string, error)
}

// peeks reads all pages.
func (p *place) peeks(q peeker, limit int) (all []backend.Pending) {
	p.t.Helper()
	return slices.Concat(redistest.Pages(p.ctx, p.t, q.Peek, limit)...)
}

func textsOf(ps []backend.Pending) []string {
	texts := make([]string, len(ps))
	for i, w := range ps {
		texts[i] = string(w.Body)
	}
	return texts
}

// Messages handed over to Java count as waiting: first those in the destination, then those due
// later.
func TestPeekShowsHandedOverMessages(t *testing.T) {
	t.Parallel()
	each(t, formats, func(t *testing.T, p *place, f redisson.MemberFormat) {
		q := p.open(redisson.Format(f))
		ids := p.push(q, 0, numbered(30)...)
		await(t, "the hand-over", func() bool { return p.raw.LLen(p.ctx, p.name).Val() == 30 })
		must(t, p.raw.RPush(p.ctx, p.name, "moved by Java").Err())
		ids = append(append(ids, ""), p.push(q, time.Hour, "x", "y", "z")...)
		want := append(append(numbered(30), "moved by Java"), "x", "y", "z")
		for _, limit := range []int{1, 7, 31, 1000} {
			all := p.peeks(q, limit)
			if got := textsOf(all); !slices.Equal(got, want) {
				t.Fatalf("pages of %d: got %q", limit, got)
			}
			for i, w := range all {
				if w.ID != ids[i] || w.Due.IsZero() != (w.ID == "") || w.Err != nil || w.Attempts != 0 {
					t.Errorf("pages of %d: message %d is %+v, want the id %s", limit, i, w, ids[i])
				}
			}
		}
		if n, err := q.Purge(p.ctx); err != nil || n != 34 {
			t.Errorf("purged %d, %v", n, err)
		}
		p.empty()
	})
}

// Before messages that were handed over come those that are due before them, as for workers, and
// between them those that are due between them. Of equal bodies each page tells which message it has.
func TestPeekMergesDestination(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.store(p.backend())
	now := time.Now()
	first := p.pushAgo(q, now, 9, 5, 5, 1)
	must(t, q.Maintain(p.ctx))
	if got := idsOf(p.peeks(q, 1)); !slices.Equal(got, first) {
		t.Errorf("in the destination: got %q, want %q", got, first)
	}
	second := p.pushAgo(q, now, 10, 9, 5, 3, 0, -3600)
	must(t, p.raw.RPush(p.ctx, p.name, "moved by Java").Err())
	want := []string{second[0], first[0], second[1], first[1], first[2], second[2], second[3], first[3], "", second[4], second[5]}
	for limit := range len(want) + 1 {
		if got := idsOf(p.peeks(q, limit+1)); !slices.Equal(got, want) {
			t.Errorf("pages of %d: got %q, want %q", limit+1, got, want)
		}
	}
	must(t, p.raw.RPop(p.ctx, p.name).Err(), p.raw.LPop(p.ctx, p.name).Err())
	want = slices.Delete(slices.Delete(want, 8, 9), 1, 2)
	if got := idsOf(p.peeks(q, 100)); !slices.Equal(got, want) {
		t.Errorf("when Java has taken one: got %q, want %q", got, want)
	}
}

// Where the destination is not in order, a page lists all the same what is there.
func TestPeekAtUnsortedDestination(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.store(p.backend())
	push := func(text string, ago time.Duration) {
		must(t, q.Schedule(p.ctx, []backend.Message{{Body: []byte(text), Delay: -ago}})...)
	}
	for i, text := range []string{"a", "b", "c"} {
		push(text, time.Hour-time.Duration(i)*time.Minute)
		must(t, q.Maintain(p.ctx))
	}
	must(t, p.raw.LRem(p.ctx, p.name, 1, "a").Err(), p.raw.LInsertAfter(p.ctx, p.name, "b", "a").Err())
	if got := textsOf(p.peeks(q, 2)); !slices.Equal(got, []string{"b", "a", "c"}) {
		t.Errorf("got %q", got)
	}
	push("before b", 59*time.Minute+30*time.Second)
	if got := textsOf(p.peeks(q, 10)); !slices.Equal(got, []string{"before b", "b", "a", "c"}) {
		t.Errorf("got %q", got)
	}
}

// pushAgo pushes messages of one body that were due so many seconds before a time, and returns their ids.
func (p *place) pushAgo(q redisson.Store, from time.Time, before ...int) []string {
	p.t.Helper()
	ms := make([]backend.Message, len(before))
	for i, s := range before {
		ms[i] = backend.Message{Body: []byte("body"), Due: from.Add(-time.Duration(s) * time.Second)}
	}
	must(p.t, q.Schedule(p.ctx, ms)...)
	ids := make([]string, len(ms))
	for i, m := range ms {
		ids[i] = m.ID
	}
	return ids
}

func idsOf(ps []backend.Pending) []string {
	ids := make([]string, len(ps))
	for i, w := range ps {
		ids[i] = w.ID
	}
	return ids
}

// Whatever is pushed, handed over and taken by Java between the pages, each message that stays is
// listed, and none is listed twice.
func TestPeekWhileMessagesMove(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.store(p.backend())
	for seed := range uint64(30) {
		dice := rand.New(rand.NewPCG(seed, 1))
		due := func() time.Time { return time.Now().Add(time.Duration(dice.IntN(4000)-3000) * time.Millisecond) }
		push := func(n int) {
			ms := make([]backend.Message, n)
			for i := range ms {
				ms[i] = backend.Message{Body: fmt.Append(nil, dice.Uint64()), Due: due()}
			}
			must(t, q.Schedule(p.ctx, ms)...)
		}
		push(20)
		must(t, q.Maintain(p.ctx))
		push(20)
		before, listed := textsOf(p.peeks(q, 100)), make(map[string]int)
		for cursor, more := "", true; more; more = cursor != "" {
			page, next, err := q.Peek(p.ctx, cursor, 1+dice.IntN(4))
			must(t, err)
			for _, text := range textsOf(page) {
				listed[text]++
			}
			switch cursor = next; dice.IntN(5) {
			case 0:
				must(t, q.Maintain(p.ctx))
			case 1:
				push(2)
			case 2:
				if err := p.raw.LPopCount(p.ctx, p.name, 1+dice.IntN(3)).Err(); !errors.Is(err, redis.Nil) {
					must(t, err)
				}
			case 3:
				if len(page) > 0 {
					must(t, p.raw.LRem(p.ctx, p.name, 1, page[0].Body).Err())
				}
			}
		}
		after := textsOf(p.peeks(q, 100))
		for _, text := range slices.Concat(before, after) {
			stays := slices.Contains(before, text) && slices.Contains(after, text)
			if n := listed[text]; n > 1 || n == 0 && stays {
				t.Errorf("seed %d: %q was listed %d times", seed, text, n)
			}
		}
		p.wipe()
	}
}

// Pages go on behind what was listed, wherever that is by then. Java moves items of its own to the
// destination, and takes from all of it.
func TestPeekWhileJavaTakes(t *testing.T) {
	t.Parallel()
	p := setup(t)
	for between, c := range map[string]struct {
		dest  []string // x is of Java's
		first []string
		does  func() error
		rest  []string
	}{
		"nothing": {[]string{"a", "x", "b"}, []string{"a", "x"}, func() error { return nil }, []string{"b"}},
		"one at the head, one added": {[]string{"a", "b", "c"}, []string{"a", "b"}, func() error {
			return errors.Join(p.raw.LPop(p.ctx, p.name).Err(), p.raw.RPush(p.ctx, p.name, "x").Err())
		}, []string{"c", "x"}},
		"its own at the head":     {[]string{"x", "a", "b"}, []string{"x", "a"}, func() error { return p.raw.LPop(p.ctx, p.name).Err() }, []string{"b"}},
		"its own behind the last": {[]string{"a", "x", "b"}, []string{"a", "x"}, func() error { return p.raw.LRem(p.ctx, p.name, 1, "x").Err() }, []string{"b"}},
		"the last":                {[]string{"a", "b", "c"}, []string{"a", "b"}, func() error { return p.raw.LRem(p.ctx, p.name, 1, "b").Err() }, []string{"c"}},
		"all that were listed":    {[]string{"a", "x", "b"}, []string{"a", "x"}, func() error { return p.raw.LPopCount(p.ctx, p.name, 2).Err() }, []string{"b"}},
	} {
		q := p.store(p.backend())
		for _, text := range c.dest {
			if text == "x" {
				must(t, p.raw.RPush(p.ctx, p.name, text).Err())
			} else {
				must(t, errors.Join(q.Schedule(p.ctx, []backend.Message{{Body: []byte(text)}})...), q.Maintain(p.ctx))
			}
		}
		page, next, err := q.Peek(p.ctx, "", len(c.first))
		must(t, err, c.does())
		rest, _, err := q.Peek(p.ctx, next, 10)
		must(t, err)
		if !slices.Equal(textsOf(page), c.first) || !slices.Equal(textsOf(rest), c.rest) {
			t.Errorf("%s: got %q and %q; want %q and %q", between, textsOf(page), textsOf(rest), c.first, c.rest)
		}
		p.wipe()
	}
}

// While Java takes and moves as much as a page has, the pages come to an end once it stops.
func TestPeekWhileJavaIsBusy(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.store(p.backend())
	p.pushAgo(q, time.Now(), slices.Repeat([]int{1}, 100)...)
	must(t, q.Maintain(p.ctx))
	pages := 0
	for cursor, more := "", true; more; pages++ {
		_, next, err := q.Peek(p.ctx, cursor, 10)
		must(t, err)
		if pages < 30 {
			must(t, p.raw.LPopCount(p.ctx, p.name, 5).Err(), p.raw.RPush(p.ctx, p.name, "1", "2", "3", "4", "5").Err())
		}
		cursor, more = next, next != "" && pages < 1000
	}
	if pages > 1000 {
		t.Error("the pages do not come to an end")
	}
}

// Java's members of one due time are told apart where those before them have gone; scores may be
// any numbers, and a cursor too.
func TestPeekAtForeignScores(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.store(p.backend())
	far := float64(time.Now().Add(time.Hour).UnixMilli())
	scores := []float64{far, far, far + 0.25, far + 0.75, far + 0.8, math.MaxInt64, 1e300, math.Inf(1)}
	for i, score := range scores {
		must(t, p.raw.ZAdd(p.ctx, p.times(), redis.Z{Score: score, Member: fmt.Appendf(nil, "\x08%08d\x01\x00\x00\x00\x00\x00\x00\x00%d", i, i)}).Err())
	}
	if got := textsOf(p.peeks(q, 1)); !slices.Equal(got, []string{"0", "1", "2", "3", "4", "5", "6", "7"}) {
		t.Errorf("got %q", got)
	}
	for _, cursor := range []string{"0_5____", "7_5_9223372036854775807___", "4294967295_4294967295_1e+300_-inf_00_00"} {
		if _, _, err := q.Peek(p.ctx, cursor, 1); err != nil {
			t.Errorf("%s: %v", cursor, err)
		}
	}
	_, _, err := q.Peek(p.ctx, "0_0_nan___", 1)
	wants(t, []error{err}, backend.ErrInvalid)
}

// An envelope that Java has moved says itself which message it is.
func TestPeekAtEnvelopesThatJavaMoved(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open(redisson.WithCodec(redisson.Envelope))
	must(t, q.Schedule(p.ctx, []backend.Message{
		{ID: "mine", Body: []byte("body"), Headers: map[string]string{"k": "v"}, Delay: time.Hour},
		{ID: "other", Delay: 2 * time.Hour},
	})...)
	_, next, err := q.Peek(p.ctx, "", 1)
	must(t, err)
	member := p.members()[0].Member.(string)
	m, err := redisson.ParseMember([]byte(member))
	must(t, err)
	must(t, p.raw.ZRem(p.ctx, p.times(), member).Err(), p.raw.RPush(p.ctx, p.name, m.Payload).Err())
	all := p.peeks(q, 10)
	if len(all) != 2 || all[0].ID != "mine" || string(all[0].Body) != "body" || all[0].Headers["k"] != "v" {
		t.Errorf("got %+v", all)
	}
	rest, _, err := q.Peek(p.ctx, next, 10)
	must(t, err)
	if ids := idsOf(rest); !slices.Equal(ids, []string{"other"}) {
		t.Errorf("the second page has %q", ids)
	}
}

// Leased messages are in the sorted set too, among the scheduled ones: they are skipped, and pages
// go on.
func TestPeekPassesLeasesOver(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open()
	p.push(q, 0, numbered(25)...)
	held := p.take(q, 25, time.Minute)
	p.push(q, time.Hour, "far")
	for _, limit := range []int{1, 10, 100} {
		if got := textsOf(p.peeks(q, limit)); !slices.Equal(got, []string{"far"}) {
			t.Errorf("pages of %d: got %q", limit, got)
		}
	}
	n, err := q.Purge(p.ctx)
	if err != nil || n != 26 {
		t.Errorf("purged %d, %v; want 26, those in flight included", n, err)
	}
	wants(t, q.Ack(p.ctx, leases(held[:1])), backend.ErrLeaseLost)
	p.empty()
}

// Two of Java's members may have one id. The pages of such a queue come to an end too.
func TestPeekOfOneIDTwice(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.store(p.backend())
	now := time.Now()
	for _, m := range []struct {
		id      int
		payload string
		due     time.Duration
	}{{2, "Q", -5 * time.Second}, {1, "C", -time.Second}, {1, "A", -9 * time.Second}, {3, "F", time.Hour}} {
		p.offer(fmt.Sprintf("\x08%08d\x01\x00\x00\x00\x00\x00\x00\x00%s", m.id, m.payload), now.Add(m.due))
		must(t, q.Maintain(p.ctx))
	}
	seen := make(map[string]bool)
	pages := 0
	for cursor, more := "", true; more; pages++ {
		page, next, err := q.Peek(p.ctx, cursor, 1)
		must(t, err)
		for _, text := range textsOf(page) {
			seen[text] = true
		}
		cursor, more = next, next != "" && pages < 100
	}
	if len(seen) != 4 || pages > 100 {
		t.Errorf("after %d pages %v", pages, seen)
	}
}

// Unreadable members, and payloads that the codec cannot read, are shown as they are.
func TestPeekShowsUnreadableEntries(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open()
	far := float64(time.Now().Add(time.Hour).UnixMilli())
	for i, m := range []string{"no member", "\x08\x01\x02\x03\x04\x05\x06\x07\x08\x02\x00\x00\x00\x00\x00\x00\x00\xff\xfe"} {
		must(t, p.raw.ZAdd(p.ctx, p.times(), redis.Z{Score: far + float64(i), Member: m}).Err())
	}
	all := p.peeks(q, 1)
	var bad *redisson.UnreadableError
	for _, m := range []string{"", "x", "xy"} {
		must(t, p.raw.ZAdd(p.ctx, p.times(), redis.Z{Score: far + 2, Member: m}).Err())
	}
	if got := textsOf(p.peeks(q, 1))[2:]; !slices.Equal(got, []string{"", "x", "xy"}) {
		t.Errorf("got %q", got)
	}
	if len(all) != 2 || all[0].ID != "" || string(all[0].Body) != "no member" || !errors.As(all[0].Err, &bad) {
		t.Fatalf("got %+v", all)
	}
	if want := fmt.Sprintf("080102030405060708-%.0f", far+1); all[1].ID != want || string(all[1].Body) != "\xff\xfe" || all[1].Err == nil {
		t.Errorf("got %+v, want %s", all[1], want)
	}
}

// After a purge Java's offers, and ours, find a queue like a new one.
func TestPurgeDeletesTheQuarantine(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open()
	must(t, p.raw.ZAdd(p.ctx, p.times(), redis.Z{Score: 1, Member: "no member"}).Err())
	p.push(q, time.Hour, "far")
	await(t, "the quarantine", func() bool { return p.stats(q).Quarantined == 1 })
	if n, err := q.Purge(p.ctx); err != nil || n != 2 {
		t.Errorf("purged %d, %v", n, err)
	}
	if s := p.stats(q); s != (backend.Stats{}) {
		t.Errorf("left: %+v", s)
	}
	p.push(q, 0, "again")
	p.takes(q, "again")
	p.empty()
}
