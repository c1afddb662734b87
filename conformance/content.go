package conformance

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"

	"github.com/delayq/delayq/backend"
)

// Invariant 3: nothing unexpected.
var contentChecks = []Check{
	{
		Name: "content-intact", Invariant: 3,
		Rule: "Bodies and headers come back byte for byte: empty, with NUL, invalid UTF-8, 1 MiB; headers as many and as large as the limits allow, and nil where a message has none.",
		run:  contentIntact,
	},
	{
		Name: "content-after-retry", Invariant: 3,
		Rule: "A redelivered message is whole, though the previous worker changed its copy.",
		run:  contentAfterRetry,
	},
	{
		Name: "owns-its-memory", Invariant: 3,
		Rule: "Changes that the caller makes to a body or headers after Schedule has returned do not reach the store.",
		run:  ownsItsMemory,
	},
	{
		Name: "queues-are-apart", Invariant: 3,
		Rule: "Queues with different names share nothing, however similar the names are.",
		run:  queuesAreApart,
	},
	{
		Name: "nack-headers", Invariant: 3, needs: []backend.Feature{backend.ChangingHeaders},
		Rule: "The headers of a nack replace all headers of the message, up to the limits and down to none, wherever the message is shown afterwards; body, id, due time and attempts are as after any nack. A nack that fails changes nothing.",
		run:  nackHeaders,
	},
}

// awkward returns contents that stores have been seen to spoil; no headers where the store keeps
// none.
func (t *testRun) awkward() (bodies [][]byte, headers []map[string]string) {
	big := make([]byte, 1<<20)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range big {
		big[i] = byte(r.Uint32())
	}
	bodies = [][]byte{
		nil, {}, {0}, []byte("a\x00b"), []byte("\xff\xfe\xc0\x80"), []byte("\r\n$-1\r\n"),
		[]byte(`{"json": "ünïcödé 中文 😀"}`), bytes.Repeat([]byte{0}, 1000), big,
	}
	headers = []map[string]string{
		nil,
		{}, // shown as nil
		{"plain": "text", "empty": ""},
		{"nul": "a\x00b", "invalid": "\xff\xfe", "crlf": "\r\n"},
		{"ключ 中文 😀": "значение", "x:y/z=1&2": "{}[]", strings.Repeat("k", 255): strings.Repeat("v", 1000)},
		{"x": strings.Repeat("v", backend.MaxHeaders-backend.HeaderCost-1)},
		mostHeaders(),
	}
	if !t.has(backend.KeepingHeaders) {
		headers = headers[:1]
	}
	return bodies, headers
}

// mostHeaders returns as many headers as the limits allow, with keys of four bytes.
func mostHeaders() map[string]string {
	const key = 4
	hs := make(map[string]string)
	for i := range backend.MaxHeaders / (key + backend.HeaderCost) {
		hs[fmt.Sprintf("%0*x", key, i)] = ""
	}
	return hs
}

func contentIntact(t *testRun) {
	bodies, headers := t.awkward()
	for i, body := range bodies {
		m := t.after(0)
		m.Body, m.Headers = body, headers[i%len(headers)]
		t.push(m)
		t.ack(t.takeID(m.ID)) // take compares
	}
	for _, h := range headers {
		m := t.after(0)
		m.Headers = h
		t.push(m)
		t.ack(t.takeID(m.ID))
	}
}

func contentAfterRetry(t *testRun) {
	bodies, headers := t.awkward()
	for i, body := range bodies {
		m := t.after(0)
		m.Body, m.Headers = body, headers[i%len(headers)]
		t.push(m)
		for range 2 {
			d := t.takeID(m.ID)
			scribble(d.Body, d.Headers)
			t.nack(d, 0)
		}
		t.ack(t.takeID(m.ID))
	}
}

func scribble(body []byte, headers map[string]string) {
	for i := range body {
		body[i] ^= 0x55
	}
	for k := range headers {
		headers[k] = "scribbled"
	}
}

func ownsItsMemory(t *testRun) {
	m := t.after(0)
	mine := backend.Message{ID: m.ID, Body: bytes.Clone(m.Body), Headers: maps.Clone(m.Headers)}
	t.expect(m)
	t.must(outcome(t.q.Schedule(t.ctx, []backend.Message{mine})), "scheduling")
	scribble(mine.Body, mine.Headers)
	t.ack(t.takeID(m.ID))
}

func queuesAreApart(t *testRun) {
	id := t.pushAfter(0)
	for _, name := range []string{t.name() + ".x", t.name() + ":", strings.ToUpper(t.name()), t.Prefix + "x"} {
		other, err := t.openOn(t.b, name)
		t.must(err, "opening another queue")
		t.nothingOn(other, "queue "+name+" is empty")
	}
	t.ack(t.takeID(id))
	t.longNamesAreApart()
}

// longNamesAreApart opens queues with the longest names, which differ in the last byte only.
func (t *testRun) longNamesAreApart() {
	long := t.name() + strings.Repeat("n", backend.MaxName-len(t.name())-1)
	a, err := t.openOn(t.b, long+"a")
	t.must(err, "opening a queue with the longest name")
	b, err := t.openOn(t.b, long+"b")
	t.must(err, "opening a queue with the longest name")
	m := t.after(0)
	t.expect(m)
	t.must(outcome(a.Schedule(t.ctx, []backend.Message{m})), "scheduling")
	t.nothingOn(b, "the message is in the queue whose name has another end")
	ds, err := t.receive(a, 1, t.lease())
	t.must(err, "taking a message")
	t.ackOn(a, ds...)
}
