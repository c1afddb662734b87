package redisson_test

import (
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

// eachFormat runs f for the members that each version of Redisson reads.
func eachFormat(t *testing.T, f func(p *place, ours, javas redisson.MemberFormat)) {
	for _, tt := range []struct {
		name        string
		ours, javas redisson.MemberFormat
	}{
		{"V1", redisson.V1, redisson.V1}, {"V2", redisson.V2, redisson.V2},
		{"Both to V1", redisson.Both, redisson.V1}, {"Both to V2", redisson.Both, redisson.V2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f(setup(t), tt.ours, tt.javas)
		})
	}
}

func TestLeasedMessageStaysAMember(t *testing.T) {
	t.Parallel()
	eachFormat(t, func(p *place, ours, javas redisson.MemberFormat) {
		q := p.open(redisson.Format(ours))
		p.push(q, 0, "held")
		held := p.take(q, 1, time.Minute)[0]
		p.rescued(ours, held.Until)
		if n := p.transfer(javas, time.Now()); n != 0 {
			p.t.Errorf("Java moved %d messages", n)
		}
		if n := p.transfer(javas, held.Until.Add(grace-time.Millisecond)); n != 0 {
			p.t.Errorf("Java moved %d messages in the time of grace", n)
		}
		ends, errs := q.Extend(p.ctx, []backend.Lease{held.Lease()}, time.Hour)
		must(p.t, errs...)
		p.rescued(ours, ends[0])
		ends, errs = q.Extend(p.ctx, []backend.Lease{held.Lease()}, 10*time.Second)
		must(p.t, errs...)
		p.rescued(ours, ends[0])
		must(p.t, q.Ack(p.ctx, []backend.Lease{held.Lease()})...)
		p.empty()
	})
}

// Java sees messages that were given back, in front of those pushed later, and no dead ones.
func TestJavaSeesSettledMessages(t *testing.T) {
	t.Parallel()
	eachFormat(t, func(p *place, ours, javas redisson.MemberFormat) {
		q := p.open(redisson.Format(ours))
		p.push(q, 0, "back", "dead")
		ds := p.take(q, 2, time.Minute)
		p.push(q, time.Hour, "one", "two")
		must(p.t, q.Nack(p.ctx, []backend.Return{{Lease: ds[0].Lease(), Delay: time.Hour}})...)
		must(p.t, q.Dead(p.ctx, []backend.DeadLetterRequest{{Lease: ds[1].Lease()}})...)
		var seen []string
		for _, item := range p.list(p.index()) {
			m, err := redisson.ParseMember([]byte(item))
			must(p.t, err)
			seen = append(seen, string(m.Payload))
		}
		if !slices.Equal(seen, []string{"back", "one", "two"}) {
			p.t.Errorf("Java sees %q", seen)
		}
		if n := p.transfer(javas, time.Now().Add(2*time.Hour)); n != 3 {
			p.t.Errorf("Java moved %d messages", n)
		}
		must(p.t, q.DeleteDead(p.ctx, []string{ds[1].ID})...)
		if got := p.list(p.name); !sameSet(got, seen) {
			p.t.Errorf("Java hands %q out", got)
		}
	})
}

// rescued checks that one member represents a lease until then, and is in no list.
func (p *place) rescued(f redisson.MemberFormat, until time.Time) {
	p.t.Helper()
	members, items := p.members(), p.list(p.index())
	if len(members) != 1 || len(items)+len(p.list(p.name)) > 0 || int64(members[0].Score) != until.Add(grace).UnixMilli() {
		p.t.Errorf("members %v, in the lists %q; the lease ends at %d", members, items, until.UnixMilli())
		return
	}
	m, err := redisson.ParseMember([]byte(members[0].Member.(string)))
	if err != nil || m.Format != f || string(m.Payload) != "held" {
		p.t.Errorf("member %+v, error %v", m, err)
	}
}

// No Go process runs any more: Java hands the message out when lease and grace are over.
func TestJavaTakesALeaseOver(t *testing.T) {
	t.Parallel()
	eachFormat(t, func(p *place, ours, javas redisson.MemberFormat) {
		b := p.backend(redisson.Format(ours))
		q := p.openOn(b)
		p.push(q, 0, "held")
		held := p.take(q, 1, time.Minute)[0]
		must(p.t, b.Close())
		if n := p.transfer(javas, held.Until.Add(grace)); n != 1 {
			p.t.Errorf("Java moved %d messages", n)
		}
		if got := p.blpop(); got != "held" {
			p.t.Errorf("Java got %q", got)
		}
		p.open(redisson.Format(ours)) // and it comes no second time
		p.wornOut(held)
	})
}

// wornOut waits until a lease that Java has taken over is forgotten, as when its end comes.
func (p *place) wornOut(held backend.Delivery) {
	p.t.Helper()
	leases, err := p.raw.ZRange(p.ctx, p.own("leases"), 0, -1).Result()
	must(p.t, err)
	if len(leases) != 1 {
		p.t.Fatalf("leases %q, want the lease of %s", leases, held.ID)
	}
	must(p.t, p.raw.ZIncrBy(p.ctx, p.own("leases"), -3600_000, leases[0]).Err())
	p.empty()
}

// Java's clock is fast by more than lease and grace: Java gets the message, and the worker gets
// ErrLeaseLost.
func TestFastJavaClockEndsALease(t *testing.T) {
	t.Parallel()
	eachFormat(t, func(p *place, ours, javas redisson.MemberFormat) {
		q := p.open(redisson.Format(ours))
		for settle := range settlements {
			p.push(q, 0, "held")
			held := p.take(q, 1, time.Minute)[0]
			if n := p.transfer(javas, held.Until.Add(grace)); n != 1 {
				p.t.Errorf("Java moved %d messages", n)
			}
			wants(p.t, settlements[settle](p, q, held.Lease()), backend.ErrLeaseLost)
			if got := p.blpop(); got != "held" {
				p.t.Errorf("%s: Java got %q", settle, got)
			}
			if n := p.raw.ZCard(p.ctx, p.own("leases")).Val(); n > 0 {
				p.wornOut(held)
			}
		}
		p.empty()
	})
}

var settlements = map[string]func(*place, backend.Queue, backend.Lease) []error{
	"ack": func(p *place, q backend.Queue, l backend.Lease) []error { return q.Ack(p.ctx, []backend.Lease{l}) },
	"nack": func(p *place, q backend.Queue, l backend.Lease) []error {
		return q.Nack(p.ctx, []backend.Return{{Lease: l}})
	},
	"dead": func(p *place, q backend.Queue, l backend.Lease) []error {
		return q.Dead(p.ctx, []backend.DeadLetterRequest{{Lease: l}})
	},
	"extend": func(p *place, q backend.Queue, l backend.Lease) []error {
		ends, errs := q.Extend(p.ctx, []backend.Lease{l}, time.Hour)
		if len(ends) != 1 || !ends[0].IsZero() {
			p.t.Errorf("the lease ends at %v", ends)
		}
		return errs
	},
}
