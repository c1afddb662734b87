package rabbitmq

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/delayq/delayq/backend"
)

// A delivery is a message that the broker has sent and the handle has not acknowledged.
type delivery struct {
	record
	tag   uint64
	sub   *subscription // nil if a get brought it
	until time.Time     // end of the lease
	again time.Time     // when to give it back again if it is still too early; zero for never
	busy  bool          // a copy of it is being published
	token string        // that identifies it in the tombstone store; empty if the store has no hold
}

func (d *delivery) hold() Hold { return Hold{ID: d.id, Stamp: d.stamp, Token: d.token} }

// unacked are the unacked deliveries of one channel. Each is early (it came before its due time),
// due or leased. A lease's token has a random number of the channel, so that a lease of a lost channel
// settles nothing of the next one, which may be that of another process: leases travel as text.
type unacked struct {
	channel uint64
	early   []*delivery
	due     []*delivery
	leased  map[backend.Token]*delivery
	soonest time.Time // no lease ends before
}

func newUnacked() unacked {
	return unacked{channel: rand.Uint64(), leased: make(map[backend.Token]*delivery)}
}

// holdAtMost is how early a message may come to wait in the handle. Levels are some tenths of a
// millisecond early. A message that is earlier than this has a delay longer than the levels', and
// passes them once more.
const holdAtMost = time.Second

// add takes a delivery in. It returns false for a delivery that comes too early to wait here.
func (u *unacked) add(d *delivery, now time.Time) bool {
	switch wait := d.due.Sub(now); {
	case wait <= 0:
		u.due = append(u.due, d)
	case wait <= holdAtMost:
		u.early = append(u.early, d)
	default:
		return false
	}
	return true
}

// takeFar removes the early deliveries that are to be given back again, and returns them.
func (u *unacked) takeFar(now time.Time) (far []*delivery) {
	u.early = slices.DeleteFunc(u.early, func(d *delivery) bool {
		if d.again.IsZero() || now.Before(d.again) {
			return false
		}
		d.again = time.Time{}
		if d.due.Sub(now) <= holdAtMost {
			return false
		}
		far = append(far, d)
		return true
	})
	return far
}

// becomeDue moves early deliveries that have become due.
func (u *unacked) becomeDue(now time.Time) {
	rest := u.early[:0]
	for _, d := range u.early {
		if d.due.After(now) {
			rest = append(rest, d)
		} else {
			u.due = append(u.due, d)
		}
	}
	clear(u.early[len(rest):])
	u.early = rest
}

// lease leases deliveries until a time.
func (u *unacked) lease(ds []*delivery, until time.Time) []backend.Delivery {
	leased := make([]backend.Delivery, len(ds))
	for i, d := range ds {
		u.extend(d, until)
		d.attempts++
		token := u.tokenOf(d.tag)
		u.leased[token] = d
		leased[i] = backend.Delivery{
			ID: d.id, Body: bytes.Clone(d.body), Headers: maps.Clone(d.headers), Due: d.due, Attempt: d.attempts, Token: token, Until: until,
		}
	}
	return leased
}

func (u *unacked) tokenOf(tag uint64) backend.Token { return backend.Token{Hi: u.channel, Lo: tag} }

func (u *unacked) isLeased(tag uint64) bool { return u.leased[u.tokenOf(tag)] != nil }

// find returns the delivery of a lease in force, and nil if the lease is not.
func (u *unacked) find(l backend.Lease) *delivery {
	d := u.leased[l.Token]
	if d == nil || d.busy || d.id != l.ID || !time.Now().Before(d.until) {
		return nil
	}
	return d
}

func (u *unacked) extend(d *delivery, until time.Time) {
	d.until = until
	u.noteEnd(until)
}

func (u *unacked) noteEnd(t time.Time) {
	if u.soonest.IsZero() || t.Before(u.soonest) {
		u.soonest = t
	}
}

// takeExpired removes the deliveries whose lease has ended, and returns them.
func (u *unacked) takeExpired(now time.Time) (expired []*delivery) {
	if now.Before(u.soonest) {
		return nil // this runs at each event, and there may be thousands of leases
	}
	u.soonest = now.Add(time.Hour)
	for token, d := range u.leased {
		switch {
		case d.busy:
		case now.Before(d.until):
			u.noteEnd(d.until)
		default:
			delete(u.leased, token)
			expired = append(expired, d)
		}
	}
	return expired
}

// takeUnleased removes the deliveries that are not leased, and returns them.
func (u *unacked) takeUnleased() []*delivery {
	ds := slices.Concat(u.due, u.early)
	u.due, u.early = nil, nil
	return ds
}

// untilLost returns the deliveries that the tombstone store may hold: those that are due or leased.
func (u *unacked) untilLost() []*delivery {
	return slices.AppendSeq(slices.Clone(u.due), maps.Values(u.leased))
}

// next returns when a delivery becomes due or is to be given back, or a lease may end, and zero if
// none comes.
func (u *unacked) next() (t time.Time) {
	if len(u.leased) > 0 {
		t = u.soonest
	}
	for _, d := range u.early {
		at := d.due
		if !d.again.IsZero() && d.again.Before(at) {
			at = d.again
		}
		if t.IsZero() || at.Before(t) {
			t = at
		}
	}
	return t
}
