package redisson_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

// unreadables are members that no version of Redisson reads.
var unreadables = []string{
	"", "\x00", "\x07", "\x08", "\xff", "garbage", strings.Repeat("z", 300), "\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00",
	"\x0812345678\x05\x00\x00\x00\x00\x00\x00\x00hell", "\x0812345678\x05\x00\x00\x00\x00\x00\x00\x00hello!", "\x0812345678\x05\x00\x00",
	announced(huge, "short"), announced(1<<63, "x"), announced(1<<64-1, ""), announced(1<<64-1, "hello"), announced(1<<53+1, "x"),
	"\x0012345678\x05\x00\x00\x00\x00\x00\x00\x00hello",
}

// litter writes good and unreadable members in turns, half of the latter without an entry in the
// index list; it returns the good ones' bodies.
func (p *place) litter(bad []string) (good []string) {
	due := time.Now().Add(-time.Minute)
	for i, b := range bad {
		good = append(good, fmt.Sprint("good ", i))
		due = due.Add(time.Millisecond)
		p.offer(javaMember([]redisson.MemberFormat{redisson.V1, redisson.V2}[i%2], good[i]), due)
		must(p.t, p.raw.ZAdd(p.ctx, p.times(), redis.Z{Score: float64(due.UnixMilli()), Member: b}).Err())
		if i%2 == 0 {
			must(p.t, p.raw.RPush(p.ctx, p.index(), b).Err())
		}
	}
	return good
}

func (p *place) quarantine(b *redisson.Backend, page int) (all []redisson.Quarantined) {
	p.t.Helper()
	pages := redistest.Pages(p.ctx, p.t, b.Quarantine(p.name).List, page)
	for _, some := range pages[:len(pages)-1] {
		if len(some) != page {
			p.t.Errorf("a page of %d, not %d, with a cursor", len(some), page)
		}
	}
	return slices.Concat(pages...)
}

// The server has no memory for the lengths that some members announce.
func TestQuarantine(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.MaxMemory("64mb", "noeviction"))
	for _, taker := range []string{"Go", "Java"} {
		t.Run("taken by "+taker, func(t *testing.T) {
			t.Parallel()
			p := on(t, server)
			good := p.litter(unreadables)
			b := p.backend()
			q := p.openOn(b)
			n := int64(len(unreadables))
			if taker == "Go" {
				p.takes(q, good...)
			} else {
				p.pops(good...)
			}
			await(t, "the quarantine", func() bool { return p.stats(q) == backend.Stats{Quarantined: n} })
			must(t, q.Close())
			p.checkQuarantined(b)
			p.restoreAndDelete(b)
			p.empty()
		})
	}
}

func (p *place) checkQuarantined(b *redisson.Backend) {
	p.t.Helper()
	things := p.quarantine(b, 4)
	var all []string
	for _, thing := range things {
		all = append(all, string(thing.Bytes))
		if thing.Place != redisson.InTimeouts || thing.Reason == "" || time.Since(thing.Due).Truncate(30*time.Second) != time.Minute-30*time.Second && time.Since(thing.Due) < 50*time.Second {
			p.t.Errorf("quarantined: %+v", thing)
		}
	}
	if !sameSet(all, unreadables) {
		p.t.Errorf("quarantined %q, want %q", all, unreadables)
	}
	if r, err := b.Inspect(p.ctx, p.name); err != nil || r.Quarantined != int64(len(all)) || r.Waiting+r.Indexed+r.Handed != 0 {
		p.t.Errorf("report %+v, error %v", r, err)
	}
}

func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

func (p *place) restoreAndDelete(b *redisson.Backend) {
	p.t.Helper()
	things := p.quarantine(b, 1000)
	ids := make([]string, len(things))
	for i, thing := range things {
		ids[i] = thing.ID
	}
	quarantine := b.Quarantine(p.name)
	must(p.t, quarantine.Restore(p.ctx, ids[:3])...)
	wants(p.t, quarantine.Restore(p.ctx, ids[:3]), backend.ErrNotFound)
	for _, thing := range things[:3] {
		score, err := p.raw.ZScore(p.ctx, p.times(), string(thing.Bytes)).Result()
		if err != nil || int64(score) != thing.Due.UnixMilli() {
			p.t.Errorf("%q is restored with the score %v, %v; want %v", thing.Bytes, score, err, thing.Due)
		}
	}
	q := p.openOn(b) // it is unreadable still
	await(p.t, "the quarantine", func() bool { return p.stats(q).Quarantined == int64(len(ids)) })
	must(p.t, q.Close())
	must(p.t, quarantine.Delete(p.ctx, ids)...)
	wants(p.t, quarantine.Delete(p.ctx, ids[:2]), backend.ErrNotFound)
	wants(p.t, quarantine.Restore(p.ctx, []string{"", "none"}), backend.ErrNotFound)
}

// A member that is not due yet stays where it is, readable or not: Java finds it first if no Go
// process runs.
func TestOnlyDueMembersAreQuarantined(t *testing.T) {
	t.Parallel()
	p := setup(t)
	must(t, p.raw.ZAdd(p.ctx, p.times(), redis.Z{Score: float64(time.Now().Add(time.Hour).UnixMilli()), Member: "garbage"}).Err())
	b := p.backend()
	q := p.openOn(b)
	p.push(q, 0, "a")
	p.takes(q, "a")
	if s := p.stats(q); s.Quarantined != 0 || s.Scheduled != 1 {
		t.Errorf("stats %+v", s)
	}
	page, _, err := b.Pending(p.ctx, p.name, "", 10)
	if err != nil || len(page) != 1 || page[0].ID != "" || page[0].Err == nil || string(page[0].Member) != "garbage" {
		t.Errorf("pending %+v, %v", page, err)
	}
}

// In an envelope's queue a payload without an envelope is unreadable, and goes back where it was.
func TestQuarantineOfEnvelopes(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.backend(redisson.WithCodec(redisson.Envelope))
	q := p.openOn(b)
	foreign := javaMember(redisson.V2, "foreign")
	p.offer(foreign, time.Now().Add(-time.Second))
	must(t, p.raw.RPush(p.ctx, p.name, "handed").Err())
	p.push(q, 0, "a")
	p.takes(q, "a")
	things := p.quarantine(b, 10)
	if len(things) != 2 || string(things[0].Bytes) != foreign || things[0].Place != redisson.InTimeouts ||
		string(things[1].Bytes) != "handed" || things[1].Place != redisson.InDestination {
		t.Fatalf("quarantined: %+v", things)
	}
	must(t, b.Quarantine(p.name).Restore(p.ctx, []string{things[0].ID, things[1].ID})...)
	p.handed("handed")
	if got := p.members(); len(got) != 1 || got[0].Member != foreign {
		t.Errorf("restored %v", got)
	}
}

// Unreadable members in the middle of a long index list are taken out a few at a time, since each
// means a walk.
func TestQuarantineFillsInSteps(t *testing.T) {
	t.Parallel()
	p := setup(t)
	const bad = 20
	p.lengthen(45_000)
	for i := range bad {
		p.offer(fmt.Sprint("garbage ", i), time.Now().Add(-time.Second))
	}
	p.lengthen(45_000)
	b := p.backend()
	p.openOn(b)
	steps := make(map[int64]bool)
	await(t, "the quarantine", func() bool {
		n := p.raw.ZCard(p.ctx, p.own("quarantine")).Val()
		steps[n] = true
		return n == bad
	})
	if len(steps) < 3 {
		t.Errorf("it had %v entries", steps)
	}
}

// lengthen adds entries to the index list that represent no message.
func (p *place) lengthen(n int) {
	p.t.Helper()
	entries := make([]any, n)
	for i := range entries {
		entries[i] = "stale"
	}
	must(p.t, p.raw.RPush(p.ctx, p.index(), entries...).Err())
}
