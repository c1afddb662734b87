package conformance

import (
	"bytes"
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/delayq/delayq/backend"
)

// Contents of all sizes, on every method that returns one.
var everywhereChecks = []Check{
	{
		Name: "content-everywhere", Invariant: 3,
		Rule: "Bodies, headers, ids and reasons of every size that the limits allow are the same, byte for byte, wherever a message is shown; the caller owns the returned copy.",
		run:  contentEverywhere,
	},
}

// sizes returns the sizes at which a store may begin to keep bodies in another way, up to the
// largest.
func (t *testRun) sizes() []int {
	largest := cmp.Or(t.traits.MaxBody, backend.MaxBody)
	sizes := []int{0, 1, 255, 256, 1<<16 - 1, 1 << 16}
	if t.inProcess() {
		for bits := range 21 {
			sizes = append(sizes, 1<<bits-1, 1<<bits, 1<<bits+1)
		}
		sizes = append(sizes, 4<<20+1, largest-1)
	}
	sizes = slices.DeleteFunc(sizes, func(n int) bool { return n > largest })
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

func contentEverywhere(t *testRun) {
	r := rand.NewChaCha8([32]byte{1})
	_, headers := t.awkward()
	reasons := reasonsOfAllSizes()
	few := headers // with bodies of all sizes
	if !t.inProcess() {
		headers, reasons = headers[len(headers)-min(2, len(headers)):], reasons[:4]
		few = headers[:1]
	}
	for i, size := range t.sizes() {
		m := t.after(0)
		m.Body, m.Headers = make([]byte, size), few[i%len(few)]
		_, _ = r.Read(m.Body)
		if lengths := []int{backend.MaxID, backend.MaxID - 1, 1, 26, 128}; t.has(backend.OwnIDs) {
			m.ID = strings.Repeat(string(rune('a'+i%26)), lengths[i%len(lengths)])
		}
		t.showsEverywhere(m, reasons[i%len(reasons)])
	}
	for i := range max(len(headers), t.scaled(0, len(reasons))) {
		m := t.after(0)
		m.Headers = headers[i%len(headers)]
		t.showsEverywhere(m, reasons[i%len(reasons)])
	}
	m := t.after(0)
	m.Body = make([]byte, min(cmp.Or(t.traits.MaxBody, backend.MaxBody), t.scaled(4<<20+1, backend.MaxBody)))
	_, _ = r.Read(m.Body)
	t.push(m)
	t.ack(t.takeID(m.ID))
	t.nothing("all are done")
}

func reasonsOfAllSizes() (reasons []string) {
	reasons = append(reasons, "\x00\xff\r\n ü\x00")
	for _, n := range []int{backend.MaxReason, 0, 1<<10 + 1, 255, 1, 256, 1 << 10, 4 << 10, 4<<10 + 1, backend.MaxReason - 1} {
		reasons = append(reasons, strings.Repeat("r", n))
	}
	return append(reasons, strings.Repeat("ü", backend.MaxReason/2), "ends in a line\n")
}

// showsEverywhere moves a message through all states, and changes every copy that it gets.
func (t *testRun) showsEverywhere(m backend.Message, reason string) {
	mine := backend.Message{ID: m.ID, Body: bytes.Clone(m.Body), Headers: maps.Clone(m.Headers)}
	t.expect(m)
	err := outcome(t.q.Schedule(t.ctx, []backend.Message{mine}))
	if refusesBody(err) {
		panic(unsuited{err})
	}
	t.must(err, "scheduling a body of %d bytes", len(m.Body))
	t.spoil(mine.Body, mine.Headers)
	t.peekAndSpoil(m)
	t.getAndSpoil(m)
	for range 2 {
		d := t.takeID(m.ID)
		t.spoil(d.Body, d.Headers)
		t.nack(d, 0)
		t.grace()
	}
	t.peekAndSpoil(m)
	d := t.takeID(m.ID)
	t.getAndSpoil(m)
	if !t.has(backend.Redriving) {
		t.ack(d)
		return
	}
	t.must(t.deadLetter(d, reason), "Dead")
	t.getAndSpoil(m)
	for range 2 {
		l := t.theLetter()
		if l.ID != m.ID || l.Reason != reason {
			t.fail("dead letter %s has the reason %s; want %s, %s", l.ID, brief([]byte(l.Reason)), m.ID, brief([]byte(reason)))
		}
		t.must(sameContent(backend.Delivery{ID: l.ID, Body: l.Body, Headers: l.Headers}, m), "ListDead")
		t.spoil(l.Body, l.Headers)
	}
	t.expectAgain(m.ID, t.now())
	t.must(outcome(t.q.Redrive(t.ctx, []string{m.ID})), "Redrive")
	t.grace()
	t.peekAndSpoil(m)
	t.ack(t.takeID(m.ID))
}

func (t *testRun) peekAndSpoil(m backend.Message) {
	if !t.has(backend.Peeking) {
		return
	}
	for range 2 {
		ps := t.peekAll(10)
		if len(ps) != 1 || ps[0].ID != m.ID {
			t.fail("Peek shows %d messages; want message %s alone", len(ps), m.ID)
		}
		t.must(sameContent(backend.Delivery{ID: m.ID, Body: ps[0].Body, Headers: ps[0].Headers}, m), "Peek")
		t.spoil(ps[0].Body, ps[0].Headers)
	}
}

func (t *testRun) getAndSpoil(m backend.Message) {
	if !t.has(backend.Getting) {
		return
	}
	for range 2 {
		infos, errs := t.q.Get(t.ctx, []string{m.ID})
		t.must(outcome(errs), "Get of message %s", m.ID)
		t.must(sameContent(backend.Delivery{ID: m.ID, Body: infos[0].Body, Headers: infos[0].Headers}, m), "Get")
		t.spoil(infos[0].Body, infos[0].Headers)
	}
}

// spoil changes a copy that the caller owns.
func (t *testRun) spoil(body []byte, headers map[string]string) {
	if len(body) > 0 {
		body[0], body[len(body)/2], body[len(body)-1] = body[0]^0x55, body[len(body)/2]^0xaa, body[len(body)-1]^0x0f
	}
	for k := range headers {
		headers[k] = "spoilt"
	}
	if headers != nil {
		headers["spoilt"] = ""
	}
}
