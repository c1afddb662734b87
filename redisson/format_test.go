package redisson_test

import (
	"errors"
	"fmt"
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

// pops takes messages as Java's workers do, and checks them in that order.
func (p *place) pops(want ...string) {
	p.t.Helper()
	for i, w := range want {
		if got := p.blpop(); got != w {
			p.t.Fatalf("Java's item %d is %q, want %q", i, got, w)
		}
	}
}
