package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// newID returns an id that sorts after those before it.
func (t *testRun) newID() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ids++
	return fmt.Sprintf("m%06d", t.ids)
}

// after makes a message due that long from now.
func (t *testRun) after(d time.Duration) backend.Message {
	id := t.newID()
	return backend.Message{ID: id, Body: []byte("body of " + id), Headers: t.headers("of", id), Delay: d}
}

// headers makes the headers of a message, none where the store keeps none.
func (t *testRun) headers(key, value string) map[string]string {
	if !t.has(backend.KeepingHeaders) {
		return nil
	}
	return map[string]string{key: value}
}

// at makes a message due at a time.
func (t *testRun) at(due time.Time) backend.Message {
	m := t.after(0)
	m.Due = due
	return m
}

// push schedules messages and expects them.
func (t *testRun) push(ms ...backend.Message) {
	t.expect(ms...)
	for i, err := range t.q.Schedule(t.ctx, ms) {
		if refusesBody(err) {
			panic(unsuited{fmt.Errorf("the store rejects the body of the check: %w", err)})
		}
		t.must(err, "scheduling message %s", ms[i].ID)
	}
}

// refusesBody reports whether a store rejects a body. A store that other clients read may have a
// format for bodies that not all bytes have. The check then cannot go on, and proves nothing.
func refusesBody(err error) bool {
	var refused *backend.InvalidError
	return errors.As(err, &refused) && refused.What == "body"
}

// pushAfter schedules a message and returns its id.
func (t *testRun) pushAfter(d time.Duration) string {
	m := t.after(d)
	t.push(m)
	return m.ID
}

// expect notes that messages may be handed out when they are due.
func (t *testRun) expect(ms ...backend.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range ms {
		due := m.Due.Add(-t.Skew)
		if m.Due.IsZero() {
			due = t.now().Add(m.Delay)
		}
		t.pushed[m.ID] = &expectation{Message: m, notBefore: due}
	}
}

// expectAgain notes that a message may be handed out again from notBefore on.
func (t *testRun) expectAgain(id string, notBefore time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pushed[id].notBefore, t.pushed[id].over = notBefore, ""
}

// expectNoMore notes that a message may not be handed out any more.
func (t *testRun) expectNoMore(id, because string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.pushed[id]; e != nil {
		e.over = because
	}
}

// leased notes that a message may not be handed out while its lease lasts. The lease began after
// the Receive did, and not before the message was due.
func (t *testRun) leased(d backend.Delivery, asked time.Time, lease time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.pushed[d.ID]
	if e.notBefore.After(asked) {
		asked = e.notBefore
	}
	e.notBefore = asked.Add(lease)
}

// taken compares a delivery with the expectation of its message.
func (t *testRun) taken(d backend.Delivery) error {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.pushed[d.ID]
	switch {
	case !ok:
		return fmt.Errorf("message %q was handed out, and was never pushed", d.ID)
	case e.over != "":
		return fmt.Errorf("message %s was handed out at attempt %d, though it was %s", d.ID, d.Attempt, e.over)
	case judge.Late(e.notBefore, now) < 0:
		return fmt.Errorf("message %s was handed out %v early", d.ID, -judge.Late(e.notBefore, now))
	case d.Token == backend.Token{}:
		return fmt.Errorf("message %s was handed out without a lease token", d.ID)
	}
	return sameContent(d, e.Message)
}

// receive receives up to limit messages within the patience, and checks each.
func (t *testRun) receive(q backend.Queue, limit int, lease time.Duration) ([]backend.Delivery, error) {
	ctx, cancel := context.WithTimeout(t.ctx, t.Patience)
	defer cancel()
	asked := t.now()
	ds, err := q.Receive(ctx, limit, lease)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("no message was handed out within %v, though one was due", t.Patience)
	case err != nil:
		return nil, fmt.Errorf("receiving: %w", err)
	case len(ds) == 0 || len(ds) > limit:
		return nil, fmt.Errorf("Receive returned %d messages; want 1 to %d", len(ds), limit)
	}
	for _, d := range ds {
		if err := t.taken(d); err != nil {
			return nil, err
		}
		t.leased(d, asked, lease)
	}
	return ds, nil
}

// lease is the length of leases that outlast a check, in real time on a busy machine too.
func (t *testRun) lease() time.Duration {
	if t.fake != nil {
		return 10*t.Tick + 2*t.late()
	}
	return checkTime
}

// take receives one message.
func (t *testRun) take() backend.Delivery { return t.takeFor(t.lease()) }

func (t *testRun) takeFor(lease time.Duration) backend.Delivery {
	ds, err := t.receive(t.q, 1, lease)
	t.must(err, "taking a message")
	return ds[0]
}

// takeID receives one message, which must have the id.
func (t *testRun) takeID(id string) backend.Delivery {
	d := t.take()
	if d.ID != id {
		t.fail("message %s was handed out; want %s", d.ID, id)
	}
	return d
}

// takeAll receives n messages, up to limit in a call.
func (t *testRun) takeAll(n, limit int) []backend.Delivery { return t.takeAllFor(n, limit, t.lease()) }

func (t *testRun) takeAllFor(n, limit int, lease time.Duration) []backend.Delivery {
	var all []backend.Delivery
	for len(all) < n {
		ds, err := t.receive(t.q, min(limit, n-len(all)), lease)
		t.must(err, "taking message %d of %d", len(all)+1, n)
		all = append(all, ds...)
	}
	return all
}

// nothing fails when a message is handed out. In real time a machine that stood still may have
// slept until the message was due: the message is given back then.
func (t *testRun) nothing(because string) { t.nothingOn(t.q, because) }

func (t *testRun) nothingOn(q backend.Queue, because string) { t.nothingFor(t.Quiet, q, because) }

func (t *testRun) nothingFor(d time.Duration, q backend.Queue, because string) {
	ctx, cancel := context.WithTimeout(t.ctx, d)
	defer cancel()
	ds, err := q.Receive(ctx, 1, t.lease())
	if err == nil && len(ds) > 0 {
		if t.fake == nil && q == t.q && t.taken(ds[0]) == nil {
			t.untouched(ds[0])
			return
		}
		t.fail("message %s was handed out at attempt %d, though %s", ds[0].ID, ds[0].Attempt, because)
	}
	t.want(err, context.DeadlineExceeded, "receiving while %s", because)
}

// sleeper is a Receive that waits.
type sleeper struct {
	t      *testRun
	q      backend.Queue
	asked  time.Time
	at     time.Time // when it returned
	got    chan result
	cancel context.CancelFunc
}

type result struct {
	ds  []backend.Delivery
	err error
	at  time.Time
}

// sleep starts a Receive of one message and returns when it is likely to wait.
func (t *testRun) sleep(q backend.Queue) *sleeper {
	s := t.asleep(q)
	t.settleDown()
	return s
}

// asleep starts a Receive of one message.
func (t *testRun) asleep(q backend.Queue) *sleeper {
	ctx, cancel := context.WithCancel(t.ctx)
	s := &sleeper{t: t, q: q, asked: t.now(), got: make(chan result, 1), cancel: cancel}
	go func() {
		ds, err := q.Receive(ctx, 1, t.lease())
		s.got <- result{ds, err, t.now()}
	}()
	return s
}

// result waits until the Receive has returned after an event.
func (s *sleeper) result(event string) (r result) {
	select {
	case r = <-s.got:
		s.at = r.at
	case <-time.After(s.t.Patience):
		s.t.fail("a waiting Receive slept on for %v after %s", s.t.Patience, event)
	}
	return r
}

// woken waits until the sleeper has the message, which must have the id.
func (s *sleeper) woken(id, event string) backend.Delivery {
	d := s.wokenBy(event)
	if d.ID != id {
		s.t.fail("message %s was handed out; want %s", d.ID, id)
	}
	return d
}

// wokenBy waits until the sleeper has a message.
func (s *sleeper) wokenBy(event string) backend.Delivery {
	defer s.cancel()
	r := s.result(event)
	s.t.must(r.err, "receiving")
	s.t.must(s.t.taken(r.ds[0]), "receiving")
	s.t.leased(r.ds[0], s.asked, s.t.lease())
	return r.ds[0]
}

// stop ends the sleeper's context and returns the result of its Receive.
func (s *sleeper) stop() ([]backend.Delivery, error) {
	s.cancel()
	return s.ended()
}

// ended returns the result of a Receive that has been ended.
func (s *sleeper) ended() ([]backend.Delivery, error) {
	defer s.cancel()
	r := s.result("it was ended")
	return r.ds, r.err
}

// outcome returns the outcome of a call on one message.
func outcome(errs []error) error {
	if errs == nil {
		return nil
	}
	return errs[0]
}

func (t *testRun) ack(ds ...backend.Delivery) { t.ackOn(t.q, ds...) }

func (t *testRun) ackOn(q backend.Queue, ds ...backend.Delivery) {
	for _, d := range ds {
		t.must(outcome(q.Ack(t.ctx, []backend.Lease{d.Lease()})), "acknowledging message %s", d.ID)
		t.expectNoMore(d.ID, "acknowledged")
	}
}

// nack gives a message back and expects it after the delay.
func (t *testRun) nack(d backend.Delivery, delay time.Duration) {
	t.expectAgain(d.ID, t.now().Add(delay))
	t.must(t.tryNack(d, delay), "giving message %s back", d.ID)
}

func (t *testRun) tryNack(d backend.Delivery, delay time.Duration) error {
	return outcome(t.q.Nack(t.ctx, []backend.Return{{Lease: d.Lease(), Delay: delay}}))
}

func (t *testRun) untouched(d backend.Delivery) {
	r := backend.Return{Lease: d.Lease(), Untouched: true}
	t.expectAgain(d.ID, time.Time{})
	t.must(outcome(t.q.Nack(t.ctx, []backend.Return{r})), "giving message %s back untouched", d.ID)
}

func (t *testRun) extend(d backend.Delivery, lease time.Duration) (time.Time, error) {
	asked := t.now()
	ends, errs := t.q.Extend(t.ctx, []backend.Lease{d.Lease()}, lease)
	if err := outcome(errs); err != nil {
		return time.Time{}, err
	}
	t.expectAgain(d.ID, asked.Add(lease))
	return ends[0], nil
}

func (t *testRun) deadLetter(d backend.Delivery, reason string) error {
	err := outcome(t.q.Dead(t.ctx, []backend.DeadLetterRequest{{Lease: d.Lease(), Reason: reason}}))
	if err == nil {
		t.expectNoMore(d.ID, "dead-lettered")
	}
	return err
}

func (t *testRun) cancelID(id string) error {
	err := outcome(t.q.Cancel(t.ctx, []string{id}))
	if err == nil {
		t.expectNoMore(id, "cancelled")
	}
	return err
}

// ends fails unless a lease that was asked for at a time ends when it should: to the resolution on
// the fake clock, else to the machine's noise.
func (t *testRun) ends(end, asked time.Time, lease time.Duration) {
	first, last := asked.Add(lease), asked.Add(lease+t.traits.Resolution)
	if t.fake == nil {
		first, last = first.Add(-t.Skew-t.traits.Resolution), t.now().Add(lease+t.traits.Resolution+t.Skew+t.Slack)
	}
	if end.Before(first) || end.After(last) {
		t.fail("the lease ends at %v; asked for was %v, and the resolution is %v", end, asked.Add(lease), t.traits.Resolution)
	}
}

// move reschedules a message to that long from now.
func (t *testRun) move(id string, delay time.Duration) error {
	return outcome(t.q.Reschedule(t.ctx, []backend.Move{{ID: id, Delay: delay}}))
}
