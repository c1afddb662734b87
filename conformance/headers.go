package conformance

import (
	"errors"
	"maps"
	"strings"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

func nackHeaders(t *testRun) {
	_, all := t.awkward()
	all = append(all, map[string]string{}, map[string]string{"plain": "other"}, map[string]string{"more": "text", "plain": ""})
	for _, body := range []int{0, 100, 20 << 10, 1 << 20} {
		m := t.after(0)
		m.Body = make([]byte, body)
		t.push(m)
		t.changesHeaders(m, all)
	}
	t.headersAreTimely()
	t.staleHeaders()
	t.headersInBatch()
	t.badHeaders()
	t.nothing("all are done")
}

// changesHeaders gives a message back with one set of headers after another, and checks it wherever
// it is shown.
func (t *testRun) changesHeaders(m backend.Message, all []map[string]string) {
	for i, headers := range all {
		d := t.takeID(m.ID)
		t.attemptIs(d, i+1)
		t.nackWith(d, headers)
		m.Headers = headers
		t.peekAndSpoil(m)
	}
	d := t.takeID(m.ID)
	t.expectAgain(m.ID, t.now())
	t.must(outcome(t.q.Nack(t.ctx, []backend.Return{{Lease: d.Lease(), Headers: map[string]string{"to be": "ignored"}}})), "giving message %s back", m.ID)
	t.untouched(t.takeID(m.ID))
	d = t.takeID(m.ID)
	t.attemptIs(d, len(all)+2)
	if !t.has(backend.Redriving) {
		t.ack(d)
		return
	}
	t.must(t.deadLetter(d, "of the check"), "Dead")
	l := t.theLetter()
	t.must(sameContent(backend.Delivery{ID: l.ID, Body: l.Body, Headers: l.Headers}, m), "ListDead")
	t.expectAgain(m.ID, t.now())
	t.must(outcome(t.q.Redrive(t.ctx, []string{m.ID})), "Redrive")
	d = t.takeID(m.ID)
	t.attemptIs(d, 1)
	t.nackWith(d, map[string]string{"once": "more"})
	t.ack(t.takeID(m.ID))
}

// nackWith gives a message back with headers, which it expects from then on, and changes the
// caller's copy.
func (t *testRun) nackWith(d backend.Delivery, headers map[string]string) {
	mine := maps.Clone(headers)
	t.expectHeaders(d.ID, headers)
	t.expectAgain(d.ID, t.now())
	t.must(t.tryNackWith(d, mine), "giving message %s back with %d headers", d.ID, len(headers))
	t.spoil(nil, mine)
}

func (t *testRun) tryNackWith(d backend.Delivery, headers map[string]string) error {
	return outcome(t.q.Nack(t.ctx, []backend.Return{{Lease: d.Lease(), NewHeaders: true, Headers: headers}}))
}

// expectHeaders notes the headers that a message has from now on.
func (t *testRun) expectHeaders(id string, headers map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pushed[id].Headers = headers
}

func (t *testRun) attemptIs(d backend.Delivery, want int) {
	exact := t.has(backend.CountingAttempts) && t.has(backend.ExactAttempts)
	if exact && d.Attempt != want {
		t.fail("message %s was handed out at attempt %d; it is number %d", d.ID, d.Attempt, want)
	}
}

// headersAreTimely gives a message back with new headers and a delay.
func (t *testRun) headersAreTimely() {
	id := t.pushAfter(0)
	d := t.takeID(id)
	headers := map[string]string{"later": "yes"}
	t.expectHeaders(id, headers)
	due := t.now().Add(2 * t.Tick)
	t.expectAgain(id, due)
	t.must(outcome(t.q.Nack(t.ctx, []backend.Return{{Lease: d.Lease(), Delay: 2 * t.Tick, NewHeaders: true, Headers: headers}})), "giving message %s back", id)
	t.pass(2 * t.Tick)
	d = t.takeID(id)
	t.isDue(timed{id, "given back with headers and a delay", due}, d.Due)
	t.ack(d)
}

// staleHeaders gives back under leases that have ended.
func (t *testRun) staleHeaders() {
	id := t.pushAfter(0)
	other := map[string]string{"of a": "stale lease"}
	old := t.takeIDFor(id, t.Tick)
	t.pass(t.Tick + t.traits.Resolution)
	t.want(t.tryNackWith(old, other), backend.ErrLeaseLost, "Nack with headers after the lease ended")
	t.pass(t.traits.Sweep)
	holder := t.takeID(id)
	t.want(t.tryNackWith(old, other), backend.ErrLeaseLost, "Nack with headers while another worker holds the message")
	t.nackWith(holder, map[string]string{"of the": "holder"})
	t.want(t.tryNackWith(holder, other), backend.ErrLeaseLost, "a second Nack with headers")
	d := t.takeID(id)
	t.ack(d)
	t.want(t.tryNackWith(d, other), backend.ErrLeaseLost, "Nack with headers after the message is done")
}

// headersInBatch gives back a batch in which some have new headers, some are stale and one is there
// twice.
func (t *testRun) headersInBatch() {
	for range 4 {
		t.pushAfter(0)
	}
	ds := t.takeAll(4, 4)
	t.ack(ds[3])
	rs := make([]backend.Return, 5)
	for i := range rs {
		d := ds[i%4]
		rs[i] = backend.Return{Lease: d.Lease(), NewHeaders: i != 1, Headers: map[string]string{"number": strings.Repeat("i", i)}}
		if i == 0 || i == 2 {
			t.expectHeaders(d.ID, rs[i].Headers)
		}
		if i < 3 {
			t.expectAgain(d.ID, t.now())
		}
	}
	t.outcomes(t.q.Nack(t.ctx, rs), len(rs), "giving back with headers", func(i int) error {
		if i > 2 {
			return backend.ErrLeaseLost
		}
		return nil
	})
	t.ack(t.takeAll(3, 4)...)
}

// badHeaders uses the library's queue, which checks input.
func (t *testRun) badHeaders() {
	q := t.portable(delayq.Require(delayq.ChangingHeaders))
	id := t.pushAfter(0)
	d, err := q.Receive(t.ctx)
	t.must(err, "Receive")
	for what, m := range badMessages(1) {
		if len(m.Headers) > 0 {
			t.refused(d.Nack(t.ctx, 0, delayq.NackHeaders(m.Headers)), what)
		}
	}
	t.expectHeaders(id, map[string]string{"good": ""})
	t.must(d.Nack(t.ctx, 0, delayq.NackHeaders(map[string]string{"good": ""})), "Nack with headers")
	if err := d.Nack(t.ctx, 0, delayq.NackHeaders(nil)); !errors.Is(err, delayq.ErrSettled) {
		t.fail("a second Nack with headers returns %v", err)
	}
	t.ack(t.takeID(id))
}
