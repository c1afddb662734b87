package redisson_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

// pushOne is the outcome of one push.
func (p *place) pushOne(q backend.Queue) error {
	return errors.Join(q.Schedule(p.ctx, []backend.Message{{Body: []byte("ours"), Delay: time.Hour}})...)
}

func TestPushInAFormatThatJavaLacks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ ours, theirs redisson.MemberFormat }{{redisson.V2, redisson.V1}, {redisson.V1, redisson.V2}} {
		for _, index := range [][]redisson.Option{nil, {redisson.NoIndex()}} {
			t.Run(fmt.Sprint(tt.ours, " on ", tt.theirs, len(index)), func(t *testing.T) {
				t.Parallel()
				p := setup(t)
				theirs := javaMember(tt.theirs, "theirs")
				p.offer(theirs, time.Now().Add(time.Hour))
				err := p.pushOne(p.open(append(index, redisson.Format(tt.ours))...))
				if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), fmt.Sprintf(
					"invalid member format %v: allowed is Both, which every version of Redisson reads, or %v: ", tt.ours, tt.theirs)) {
					t.Errorf("got %v", err)
				}
				if members, items := p.members(), p.list(p.index()); len(members) != 1 || len(items) != 1 || len(p.keys()) != 2 {
					t.Errorf("%v and %q after a refusal; keys %q", members, items, p.keys())
				}
				must(t, p.pushOne(p.open(append(index, redisson.Format(tt.theirs))...)))
				must(t, p.pushOne(p.open(append(index, redisson.Format(redisson.Both))...)))
				must(t, p.pushOne(p.open(append(index, redisson.Format(tt.ours), redisson.AnyFormat())...)))
			})
		}
	}
}

// A push into an empty queue, with nothing to tell of Java's readers, stalls neither kind of them.
func TestDefaultFormatStallsNoReader(t *testing.T) {
	t.Parallel()
	each(t, javas, func(t *testing.T, p *place, theirs redisson.MemberFormat) {
		due := time.Now().Add(time.Hour)
		p.at(p.open(), due, "ours")
		j := p.java(theirs)
		p.offer(javaMember(theirs, "theirs"), due.Add(time.Second))
		if j.sees("ours", "theirs"); !j.contains("ours") || !j.contains("theirs") {
			t.Error("Java does not see both")
		}
		if n := j.transfer(due.Add(time.Minute)); n != 2 {
			t.Errorf("Java handed %d messages over, want 2", n)
		}
		p.pops("ours", "theirs")
	})
}

// A member that both kinds of reader understand does not tell which kind there is.
func TestMembersForBothRejectNoFormat(t *testing.T) {
	t.Parallel()
	each(t, javas, func(t *testing.T, p *place, f redisson.MemberFormat) {
		p.offer(memberOf(redisson.Both, "\x07123456\xff", "theirs"), time.Now().Add(time.Hour))
		p.push(p.open(redisson.Format(redisson.Both)), time.Hour, "a", "b")
		must(t, p.pushOne(p.open(redisson.Format(f))))
	})
}

// A member that represents a lease tells no version either.
func TestLeasesRejectNoFormat(t *testing.T) {
	t.Parallel()
	each(t, javas, func(t *testing.T, p *place, f redisson.MemberFormat) {
		q := p.open(redisson.Format(f))
		p.push(q, 0, "held")
		held := p.take(q, 1, time.Minute)
		must(t, p.pushOne(q))
		must(t, q.Ack(p.ctx, leases(held))...)
	})
}

// Two versions of Redisson write to one queue, which stops both. No Go process is there.
func TestMixedFormats(t *testing.T) {
	t.Parallel()
	for name, gap := range map[string]time.Duration{"20ms apart": 20 * time.Millisecond, "at once": 0} {
		for _, taker := range []string{"Go", "Java"} {
			t.Run(name+" to "+taker, func(t *testing.T) {
				t.Parallel()
				p := setup(t)
				q := p.open()
				due := time.Now().Add(50 * time.Millisecond)
				want := make([]string, 25)
				for i := range want {
					want[i] = fmt.Sprint("body ", i)
					p.offer(javaMember([]redisson.MemberFormat{redisson.V2, redisson.V1}[i%2], want[i]), due.Add(time.Duration(i)*gap))
				}
				got := p.takenBy(taker, q, len(want))
				if gap == 0 && !sameSet(got, want) || gap > 0 && !slices.Equal(got, want) {
					// at once: part of them may be handed over before the others are there
					t.Errorf("got  %q\nwant %q", got, want)
				}
				if s := p.stats(q); s != (backend.Stats{}) {
					t.Errorf("left: %+v", s)
				}
				p.empty()
			})
		}
	}
}

// takenBy takes n messages as one side does.
func (p *place) takenBy(taker string, q backend.Queue, n int) (texts []string) {
	p.t.Helper()
	if taker == "Java" {
		for range n {
			texts = append(texts, p.blpop())
		}
		return texts
	}
	ds := p.take(q, n, time.Minute)
	must(p.t, q.Ack(p.ctx, leases(ds))...)
	return bodies(ds)
}

// pops takes messages as Java's workers do, and checks them in that order.
func (p *place) pops(want ...string) {
	p.t.Helper()
	for i, w := range want {
		if got := p.blpop(); got != w {
			p.t.Fatalf("Java's item %d is %q, want %q", i, got, w)
		}
	}
}
