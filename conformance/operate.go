package conformance

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
)

// The operations of the model, each on the backend and on the reference.

func (m *machine) passSome(dice *rand.Rand) {
	d := time.Duration(1+dice.IntN(8))*m.Tick/4 + m.odd(dice)
	if dice.IntN(20) == 0 && m.ref.now.Year() < 2150 {
		d = time.Duration(dice.IntN(4000)) * 24 * time.Hour
	}
	for unsure := true; unsure; d = m.lag() {
		m.fake.Advance(d)
		unsure = m.ref.pass(d)
	}
}

func (m *machine) pushSome(dice *rand.Rand) {
	batch := make([]backend.Message, m.size(dice))
	for i := range batch {
		batch[i] = m.message(dice)
	}
	errs := m.q.Schedule(m.ctx, batch)
	m.outcomes(errs, len(batch), "pushing", func(i int) (string, error) {
		first := m.ref.state(batch[i].ID)
		err := m.ref.push(batch[i])
		if err == nil || errors.Is(err, backend.ErrInFlight) {
			return batch[i].ID, err
		}
		if m.has(backend.Getting) {
			if wrong := saysState(at(errs, i), first); wrong != nil {
				m.rt.Fatalf("pushing %s: %v", batch[i].ID, wrong)
			}
		}
		return batch[i].ID, backend.ErrDuplicate
	})
}

func (m *machine) message(dice *rand.Rand) backend.Message {
	id := m.pushedID(dice)
	msg := backend.Message{ID: id, Body: m.body(dice, id), Headers: m.headers("of", id), Due: m.due(dice)}
	if msg.Due.IsZero() {
		msg.Delay = m.delay(dice)
	}
	if m.has(backend.UniqueWindows) && dice.IntN(6) == 0 {
		msg.UniqueFor = m.leaseFor(dice)
	} else if m.has(backend.Replacing) && dice.IntN(4) == 0 {
		msg.Replace, msg.AfterInFlight = true, m.has(backend.ReplacingInFlight) && dice.IntN(2) == 0
		if dice.IntN(2) == 0 {
			msg.MaxWait = m.maxWait(dice)
		}
	}
	return msg
}

func (m *machine) maxWait(dice *rand.Rand) time.Duration {
	if m.fake == nil {
		return 500 * time.Hour // as far away as delays
	}
	return m.leaseFor(dice)
}

// body makes a body, most of them small, of sizes at which a store may begin to keep it in another
// way.
func (m *machine) body(dice *rand.Rand, id string) []byte {
	size := dice.IntN(200)
	if dice.IntN(8*m.scale) == 0 {
		size = 1<<(4+dice.IntN(13)) + dice.IntN(3) - 1
	}
	body := make([]byte, size, size+len(id))
	for i := range body {
		body[i] = byte(i*7 + size)
	}
	return append(body, id...)
}

func (m *machine) takeSome(dice *rand.Rand) {
	var ready []*refMessage
	for _, r := range m.ref.in("scheduled") {
		if m.ref.ready(r) && !m.ref.isPaused() {
			ready = append(ready, r)
		}
	}
	limit, lease := m.size(dice), m.leaseFor(dice)
	q, wait := m.q, m.Patience
	if len(ready) == 0 {
		wait = m.Quiet / 4
		if !m.inProcess() {
			// On a busy machine the claim may go on when this Receive has left, and lease for a moment what is
			// pushed next. Close waits for it.
			q = m.open(m.which())
			defer func() { _ = q.Close() }()
		}
	}
	ctx, cancel := context.WithTimeout(m.ctx, wait)
	defer cancel()
	ds, err := q.Receive(ctx, limit, lease)
	switch {
	case len(ready) == 0 && errors.Is(err, context.DeadlineExceeded):
	case err != nil:
		m.rt.Fatalf("taking up to %d while %d are ready: %v", limit, len(ready), err)
	case len(ds) == 0 || len(ds) > min(limit, len(ready)):
		m.rt.Fatalf("taking up to %d while %d are ready: got %d", limit, len(ready), len(ds))
	}
	for i, d := range ds {
		m.taken(ready[i], d, lease)
	}
}

func (m *machine) taken(next *refMessage, d backend.Delivery, lease time.Duration) {
	found := m.ref.ms[d.ID]
	if found == nil || !m.ref.ready(found) {
		m.rt.Fatalf("message %s was handed out, and is not ready", d.ID)
	}
	if m.fake != nil && m.has(backend.Ordering) && next.ID != d.ID {
		m.rt.Fatalf("message %s was handed out, %s is before it", d.ID, next.ID)
	}
	m.ref.take(found, d.Token, lease)
	if d.Attempt != found.attempt {
		m.rt.Fatalf("message %s was handed out at attempt %d; it is number %d", d.ID, d.Attempt, found.attempt)
	}
	m.dueIs(d.ID, d.Due, found)
	m.ends("the lease", d.ID, d.Until, lease)
	m.whole(d.ID, d.Body, d.Headers, found)
	m.given = append(m.given, given{d.Lease(), m.which()})
}

// which is the number of the current handle.
func (m *machine) which() int {
	if m.q == m.qs[0] {
		return 0
	}
	return 1
}

func (m *machine) dueIs(id string, due time.Time, want *refMessage) {
	if want.exact && !due.Equal(want.due) {
		m.rt.Fatalf("message %s has the due time %v; want %v", id, due, want.due)
	}
}

func (m *machine) ends(what, id string, end time.Time, lease time.Duration) {
	until := m.ref.now.Add(lease)
	if m.fake != nil && (end.Before(until) || end.Sub(until) > m.traits.Resolution) {
		m.rt.Fatalf("%s of %s ends at %v; asked for was %v", what, id, end, until)
	}
}

func (m *machine) whole(id string, body []byte, headers map[string]string, want *refMessage) {
	if err := sameContent(backend.Delivery{ID: id, Body: body, Headers: headers}, want.Message); err != nil {
		m.rt.Fatalf("%v", err)
	}
}

func (m *machine) ackSome(dice *rand.Rand) {
	ls := m.leases(dice)
	m.outcomes(m.q.Ack(m.ctx, ls), len(ls), "acknowledging", func(i int) (string, error) {
		err := m.ref.holds(ls[i])
		if err == nil {
			m.ref.ack(m.ref.ms[ls[i].ID])
		}
		return ls[i].ID, err
	})
}

func (m *machine) nackSome(dice *rand.Rand) {
	ls := m.leases(dice)
	rs := make([]backend.Return, len(ls))
	for i := range rs {
		rs[i] = backend.Return{Lease: ls[i], Untouched: dice.IntN(2) == 0}
		if !rs[i].Untouched {
			rs[i].Delay = m.delay(dice)
			m.changeHeaders(dice, &rs[i])
		}
	}
	m.outcomes(m.q.Nack(m.ctx, rs), len(rs), "giving back", func(i int) (string, error) {
		err := m.ref.holds(ls[i])
		if err == nil {
			m.ref.nack(m.ref.ms[ls[i].ID], rs[i])
		}
		return ls[i].ID, err
	})
}

func (m *machine) changeHeaders(dice *rand.Rand, r *backend.Return) {
	if !m.has(backend.ChangingHeaders) || dice.IntN(3) > 0 {
		return
	}
	r.NewHeaders = true
	if n := dice.IntN(4); n > 0 {
		r.Headers = map[string]string{"of": r.ID, "nack": strings.Repeat("n", n*dice.IntN(100))}
	}
}

func (m *machine) extendSome(dice *rand.Rand) {
	ls, lease := m.leases(dice), m.leaseFor(dice)
	ends, errs := m.q.Extend(m.ctx, ls, lease)
	if len(ends) != len(ls) {
		m.rt.Fatalf("extending %d leases returned %d ends", len(ls), len(ends))
	}
	m.outcomes(errs, len(ls), "extending the lease of", func(i int) (string, error) {
		err := m.ref.holds(ls[i])
		switch {
		case err == nil:
			m.ref.ms[ls[i].ID].until = m.ref.now.Add(lease)
			m.ends("the extended lease", ls[i].ID, ends[i], lease)
		case !ends[i].IsZero():
			m.rt.Fatalf("the lease of %s, which was lost, ends at %v", ls[i].ID, ends[i])
		}
		return ls[i].ID, err
	})
}

func (m *machine) deadLetterSome(dice *rand.Rand) {
	ls := m.leases(dice)
	bs := make([]backend.DeadLetterRequest, len(ls))
	for i := range bs {
		bs[i] = backend.DeadLetterRequest{Lease: ls[i], Reason: strings.Repeat("of the check", dice.IntN(4))}
	}
	m.outcomes(m.q.Dead(m.ctx, bs), len(bs), "dead-lettering", func(i int) (string, error) {
		err := m.ref.holds(ls[i])
		if err == nil {
			m.ref.deadLetter(m.ref.ms[ls[i].ID], bs[i].Reason)
		}
		return ls[i].ID, err
	})
}

// onIDs makes a call on ids. The reference changes where it finds no error.
func (m *machine) onIDs(dice *rand.Rand, doing string, call func(context.Context, []string) []error, fails func(string) error, change func(string)) {
	ids := m.ids(dice)
	m.outcomes(call(m.ctx, ids), len(ids), doing, func(i int) (string, error) {
		err := fails(ids[i])
		if err == nil {
			change(ids[i])
		}
		return ids[i], err
	})
}

func (m *machine) cancelSome(dice *rand.Rand) {
	m.onIDs(dice, "cancelling", m.q.Cancel, m.ref.waiting, func(id string) { delete(m.ref.ms, id) })
}

func (m *machine) moveSome(dice *rand.Rand) {
	ids := m.ids(dice)
	moves := make([]backend.Move, len(ids))
	for i, id := range ids {
		moves[i] = backend.Move{ID: id, Due: m.due(dice)}
		if moves[i].Due.IsZero() {
			moves[i].Delay = m.delay(dice)
		}
	}
	m.outcomes(m.q.Reschedule(m.ctx, moves), len(moves), "rescheduling", func(i int) (string, error) {
		err := m.ref.waiting(ids[i])
		if err == nil {
			m.ref.schedule(m.ref.ms[ids[i]], moves[i].Due, moves[i].Delay)
		}
		return ids[i], err
	})
}

func (m *machine) redriveSome(dice *rand.Rand) {
	m.onIDs(dice, "redriving", m.q.Redrive, m.ref.dead, func(id string) { m.ref.redrive(m.ref.ms[id]) })
}

func (m *machine) deleteSome(dice *rand.Rand) {
	m.onIDs(dice, "deleting the dead letter", m.q.DeleteDead, m.ref.dead, func(id string) { delete(m.ref.ms, id) })
}

// trimSome deletes the oldest dead letters.
func (m *machine) trimSome(dice *rand.Rand) {
	var keep backend.Retention
	if dice.IntN(2) == 0 {
		keep.MaxCount = 1 + dice.IntN(4)
	} else {
		keep.MaxAge = m.delay(dice)
	}
	before := m.ref.in("dead")
	n, err := trimAll(m.ctx, m.q, keep)
	if want := m.ref.trim(keep); err != nil || n != want {
		m.rt.Fatalf("TrimDead of %+v returns %d and %v; want %d", keep, n, err, want)
	}
	if !m.has(backend.Ordering) && keep.MaxCount > 0 {
		m.trimmedAny(before, len(before)-n)
	}
}

// trimmedAny takes over which dead letters are left of those before. A store without an order may choose
// among letters of the same time.
func (m *machine) trimmedAny(before []*refMessage, want int) {
	left := make(map[string]bool)
	oldest := time.Time{}
	for cursor := ""; ; {
		page, next, err := m.q.ListDead(m.ctx, cursor, 100)
		if err != nil {
			m.rt.Fatalf("ListDead: %v", err)
		}
		for _, l := range page {
			if left[l.ID] = true; oldest.IsZero() || l.Died.Before(oldest) {
				oldest = l.Died
			}
		}
		if cursor = next; next == "" {
			break
		}
	}
	if len(left) != want {
		m.rt.Fatalf("after TrimDead %d letters are left; want %d", len(left), want)
	}
	for _, letter := range before {
		if left[letter.ID] {
			m.ref.ms[letter.ID] = letter
			continue
		}
		delete(m.ref.ms, letter.ID)
		if m.fake != nil && want > 0 && letter.died.Truncate(max(m.traits.Resolution, 1)).After(oldest) {
			m.rt.Fatalf("TrimDead deletes %s, which died at %v, and keeps one that died at %v", letter.ID, letter.died, oldest)
		}
	}
}

// purgeSome purges seldom: most runs would otherwise see little but a new queue.
func (m *machine) purgeSome(dice *rand.Rand) {
	if dice.IntN(4) > 0 {
		return
	}
	n, err := m.q.Purge(m.ctx)
	if want := int64(len(m.ref.ms)); err != nil || n != want {
		m.rt.Fatalf("Purge returns %d and %v; there were %d messages", n, err, want)
	}
	m.ref.purge()
}

// pauseSome pauses seldom: nothing is handed out until a resume.
func (m *machine) pauseSome(dice *rand.Rand) {
	var p backend.Pause
	switch dice.IntN(8) {
	case 0, 1: // without an end
	case 2:
		p.For = m.delay(dice)
	case 3:
		p.Until = m.due(dice)
	default:
		return
	}
	if err := m.q.PauseAll(m.ctx, p); err != nil {
		m.rt.Fatalf("PauseAll: %v", err)
	}
	m.ref.pause(p)
}

func (m *machine) resume() {
	if err := m.q.ResumeAll(m.ctx); err != nil {
		m.rt.Fatalf("ResumeAll: %v", err)
	}
	m.ref.paused = false
}
