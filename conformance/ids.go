package conformance

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// Invariant 3, for ids.
var idChecks = []Check{
	{
		Name: "ids", Invariant: 3,
		Rule: "A message keeps one id: the caller's, or, where the store makes ids, a valid new one, whatever id was given. Schedule changes nothing else of its argument.",
		run:  keepsIDs,
	},
}

func keepsIDs(t *testRun) {
	if !t.has(backend.OwnIDs) && t.has(backend.Deduplicating) {
		t.fail("the traits claim deduplication by an id that the store ignores")
	}
	q, err := t.openAsIs(t.b, t.name())
	t.must(err, "opening a second handle")
	t.q = q
	seen := make(map[string]bool)
	for range 2 { // the second time the ids of the first are of messages that are done
		for _, m := range t.pushAsIs(4) {
			t.newToAll(m.ID, seen)
		}
		t.liveOneByOne(t.takeAll(4, 4))
	}
	t.pushThroughLibrary(seen)
	t.nothing("all are done")
}

// pushAsIs schedules messages and expects them under the ids that they have afterwards. Where the
// store makes ids, all are given the same one.
func (t *testRun) pushAsIs(n int) []backend.Message {
	ms := make([]backend.Message, n)
	for i := range ms {
		ms[i] = t.after(0)
		if !t.has(backend.OwnIDs) {
			ms[i].ID = givenID
		}
	}
	given := slices.Clone(ms)
	for i, err := range t.q.Schedule(t.ctx, ms) {
		t.must(err, "scheduling message %d of %d with the id %q", i+1, n, given[i].ID)
	}
	for i, m := range ms {
		t.leftAsItIs(m, given[i])
	}
	t.expect(ms...)
	return ms
}

// leftAsItIs compares a message of Schedule's argument with what it was before.
func (t *testRun) leftAsItIs(after, before backend.Message) {
	if !t.has(backend.OwnIDs) {
		before.ID = after.ID
	}
	if !reflect.DeepEqual(after, before) {
		t.fail("Schedule has changed a message of its argument from %+v to %+v", before, after)
	}
}

func (t *testRun) newToAll(id string, seen map[string]bool) {
	if id == "" || len(id) > backend.MaxID || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) {
		t.fail("a message has the id %q; allowed is UTF-8 of 1 to %d bytes without control characters", id, backend.MaxID)
	}
	if seen[id] {
		t.fail("two messages have the id %q", id)
	}
	seen[id] = true
}

// liveOneByOne ends four messages in different ways. Each delivery is looked up by its id.
func (t *testRun) liveOneByOne(ds []backend.Delivery) {
	t.ack(ds[0])
	t.nack(ds[1], 0)
	t.ack(t.takeID(ds[1].ID))
	t.liveToBeCancelled(ds[2])
	t.liveTwice(ds[3])
}

func (t *testRun) liveToBeCancelled(d backend.Delivery) {
	if !t.has(backend.Cancelling) {
		t.ack(d)
		return
	}
	t.nack(d, t.Tick)
	t.must(t.cancelID(d.ID), "cancelling message %s", d.ID)
}

// liveTwice dead-letters the message, and redrives it where the store can.
func (t *testRun) liveTwice(d backend.Delivery) {
	t.must(t.deadLetter(d, "of the check"), "Dead")
	if !t.has(backend.Redriving) {
		return
	}
	if l := t.theLetter(); l.ID != d.ID {
		t.fail("message %s is listed as dead letter %s", d.ID, l.ID)
	}
	t.expectAgain(d.ID, t.now())
	t.must(outcome(t.q.Redrive(t.ctx, []string{d.ID})), "redriving message %s", d.ID)
	t.grace()
	t.ack(t.takeID(d.ID))
}

// pushThroughLibrary compares deliveries with the ids that the library's queue returned.
func (t *testRun) pushThroughLibrary(seen map[string]bool) {
	q := t.portable()
	body := []byte("pushed through the library")
	single, err := q.Push(t.ctx, body)
	t.must(err, "Push")
	ids, err := q.PushBatch(t.ctx, []delayq.Message{{Body: body}, {Body: body}})
	t.must(err, "PushBatch")
	for _, id := range append(ids, single) {
		t.newToAll(id, seen)
		t.expect(backend.Message{ID: id, Body: body})
	}
	t.grace()
	t.ack(t.takeAll(3, 3)...)
}
