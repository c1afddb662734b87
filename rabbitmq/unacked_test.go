package rabbitmq

import (
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

// leasedUntil returns the deliveries of a channel, of which n with tags from 1 on are leased until a
// time.
func leasedUntil(n uint64, until time.Time) (u unacked, ls []backend.Lease) {
	u = newUnacked()
	for tag := range n {
		leased := u.lease([]*delivery{{record: record{id: "id"}, tag: tag + 1}}, until)
		ls = append(ls, leased[0].Lease())
	}
	return u, ls
}

func TestDeliveriesBecomeDue(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var u unacked
	for wait, taken := range map[time.Duration]bool{-time.Second: true, 0: true, time.Millisecond: true, holdAtMost: true, holdAtMost + 1: false} {
		if u.add(&delivery{record: record{due: now.Add(wait)}}, now) != taken {
			t.Errorf("a delivery due in %v: taken %t, want %t", wait, !taken, taken)
		}
	}
	if len(u.due) != 2 || len(u.early) != 2 || !u.next().Equal(now.Add(time.Millisecond)) {
		t.Fatalf("%d are due and %d early, the next in %v", len(u.due), len(u.early), u.next().Sub(now))
	}
	if u.becomeDue(now.Add(time.Millisecond)); len(u.due) != 3 || len(u.early) != 1 {
		t.Errorf("a millisecond later %d are due and %d early", len(u.due), len(u.early))
	}
	if n := len(u.takeUnleased()); n != 4 || u.due != nil || u.early != nil {
		t.Errorf("took %d unleased deliveries, want 4", n)
	}
}

func TestLeaseIsInForce(t *testing.T) {
	t.Parallel()
	u, ls := leasedUntil(3, time.Now().Add(time.Minute))
	u.leased[ls[1].Token].busy = true
	u.leased[ls[2].Token].until = time.Now()
	other, another := ls[0], ls[0]
	other.ID = "other"
	another.Token.Hi++
	for what, c := range map[string]struct {
		lease backend.Lease
		want  bool
	}{
		"in force": {ls[0], true}, "being replaced": {ls[1], false}, "expired": {ls[2], false},
		"of another id": {other, false}, "of a lost channel": {another, false},
	} {
		if got := u.find(c.lease) != nil; got != c.want {
			t.Errorf("a lease %s: found %t, want %t", what, got, c.want)
		}
	}
}

func TestLeasesExpire(t *testing.T) {
	t.Parallel()
	now := time.Now()
	u, ls := leasedUntil(3, now.Add(time.Second))
	u.leased[ls[1].Token].busy = true
	u.extend(u.leased[ls[2].Token], now.Add(time.Minute))
	if got := u.takeExpired(now); len(got) > 0 || !u.next().Equal(now.Add(time.Second)) {
		t.Fatalf("%d leases expired at once, the next in %v", len(got), u.next().Sub(now))
	}
	got := u.takeExpired(now.Add(time.Second))
	if len(got) != 1 || got[0].tag != 1 || u.isLeased(1) || !u.isLeased(2) {
		t.Errorf("%d leases expired, want the first: the second is being replaced", len(got))
	}
	if !u.next().Equal(now.Add(time.Minute)) {
		t.Errorf("the next lease ends in %v, want a minute", u.next().Sub(now))
	}
	if n := len(u.untilLost()); n != 2 {
		t.Errorf("%d deliveries may be held, want 2", n)
	}
}

// Two processes, or one before and after a restart, may hand out the same message with the same
// delivery tag. The lease of one is not that of the other.
func TestLeasesOfTwoProcessesDiffer(t *testing.T) {
	t.Parallel()
	until := time.Now().Add(time.Minute)
	_, first := leasedUntil(1, until)
	second, _ := leasedUntil(1, until)
	if second.find(first[0]) != nil {
		t.Error("the lease of another process is in force")
	}
}
