package judge

import (
	"cmp"
	"slices"
)

// delivery is one delivery of a message and what its worker did with it.
type delivery struct {
	step
	uses []step // by its token: acks, nacks, dead letters, extensions

	at       int64 // when the store made it, by the machine's clock
	since    int64 // the same, or before where that is not clear
	vague    bool  // its place among others is unknown: the clock showed its time twice, or was jumping
	inClocks bool  // the store's clock showed the claim's time at all

	ends  int64 // from when on the lease may have ended by itself, by the machine's clock
	free  int64 // the same, or when its worker settled it
	until int64 // when it ended at the latest, at least in its worker's eyes; by the store's clock

	settled step // the call that settled it, or may have; its Call is nil for none
}

// deliveries returns those of a message in the order in which the store made them.
func (m *message) deliveries() []*delivery {
	if m.leases != nil {
		return m.leases
	}
	for _, s := range m.steps {
		if s.Op == Receive {
			d := &delivery{step: s}
			d.place(m)
			d.follow(m)
			m.leases = append(m.leases, d)
		}
	}
	// Of two in one millisecond, the one that was free first came first.
	slices.SortStableFunc(m.leases, func(a, b *delivery) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.free, b.free)) })
	return m.leases
}

// place works out when the store made the delivery.
func (d *delivery) place(m *message) {
	d.at = d.end()
	for s := range m.h.spans(d.end(), d.end()) {
		if !s.frozen {
			d.at = d.claim() - s.shift
		}
	}
	d.since = d.at - grain
	if some := m.h.claimTimes(d.claim(), d.Call); len(some) > 0 {
		d.at, d.since, d.inClocks = some[len(some)-1].to, some[0].from, true
		d.vague = len(some) > 1 || m.h.jumped(d.at-grain, d.at)
	}
}

// start is since when the message may have been handed out. A claim that was made before the clock
// jumped may arrive when its lease has ended, and nothing tells how long it was on its way.
func (d *delivery) start(m *message) int64 {
	if m.h.jumped(d.since, d.Start) {
		return min(d.since, d.Start)
	}
	return d.Start
}

// claimedSince is since when the claim may have been made. It may have been made for an earlier Receive
// on the same handle, whose context ended.
func (d *delivery) claimedSince(m *message) int64 {
	if d.inClocks && d.at < d.Start {
		return d.since
	}
	return d.start(m)
}

// follow works out how long the lease was.
func (d *delivery) follow(m *message) {
	d.ends, d.until = m.h.firstShown(d.since, d.Until), d.Until
	for _, s := range m.steps {
		if s.Token != d.Token || s.Proc != d.Proc || s.Handle != d.Handle || !s.settles() && s.Op != Extend {
			continue
		}
		d.uses = append(d.uses, s)
		switch {
		case s.Op == Extend && s.Out == OK:
			d.ends, d.until = m.h.firstShown(s.Start, s.Until), s.Until
		case s.Op == Extend && s.Out == Unknown:
			d.ends = min(d.ends, m.h.firstShown(s.Start, saturate(m.least(s), s.Lease)))
			d.until = max(d.until, saturate(m.most(s), s.Lease+grain))
		case s.Out.may() && d.settled.Call == nil:
			d.settled = s
		}
	}
	d.free = d.ends
	if d.settled.Call != nil {
		d.free = min(d.free, d.settled.Start)
	}
}
