package conformance

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// Invariant 15: bad input changes nothing.
var inputChecks = []Check{
	{
		Name: "bad-input", Invariant: 15,
		Rule: "Bad input gets a typed error that names the value and what is allowed, and changes nothing.",
		run:  badInput,
	},
	{
		Name: "unsupported", Invariant: 15,
		Rule: "An operation that the backend does not claim returns ErrUnsupported with backend and operation, as does New with Require.",
		run:  unsupported,
	},
	{
		Name: "odd-ids", Invariant: 15, needs: []backend.Feature{backend.OwnIDs},
		Rule: "Every id that the limits allow works.",
		run:  oddIDs,
	},
}

func badInput(t *testRun) {
	q := t.portable()
	t.pushAfter(0)
	held := t.takeFor(100 * t.Tick)
	for what, m := range badMessages(cmp.Or(t.traits.MaxBody, backend.MaxBody)) {
		_, err := q.PushBatch(t.ctx, []delayq.Message{{Body: []byte("good")}, m})
		if !t.lacksPart(m) || !isUnsupported(err) {
			t.refused(err, what)
		}
	}
	for _, d := range []time.Duration{-1, math.MaxInt64} {
		_, err := q.Push(t.ctx, nil, delayq.After(d))
		t.refused(err, "a delay of "+d.String())
	}
	for _, due := range []time.Time{{}, time.Date(300000, 1, 1, 0, 0, 0, 0, time.UTC)} {
		_, err := q.Push(t.ctx, nil, delayq.At(due))
		t.refused(err, "a due time of "+due.String())
	}
	var none context.Context
	_, err := q.Receive(none)
	t.refused(err, "a nil context")
	names := []string{"", strings.Repeat("n", backend.MaxName+1)}
	if !t.traits.AnyName {
		names = append(names, "a/b", "{a}", "a*", "a\x00b", "ä")
	}
	for _, name := range names {
		_, err := t.tryPortable(name)
		t.refused(err, "the queue name "+name)
	}
	t.nothing("all bad input was refused")
	t.ack(held)
	t.nothing("all bad input was refused, and the good message is done")
	t.empty()
}

func badMessages(largest int) map[string]delayq.Message {
	return map[string]delayq.Message{
		"a negative delay":              {Delay: -time.Second},
		"a delay of 292 years":          {Delay: math.MaxInt64},
		"a due time before 1970":        {Due: time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC)},
		"a due time in year 300000":     {Due: time.Date(300000, 1, 1, 0, 0, 0, 0, time.UTC)},
		"a due time and a delay":        {Due: time.Unix(1e9, 0), Delay: 1},
		"an id with NUL":                {ID: "a\x00b"},
		"an id of 256 bytes":            {ID: strings.Repeat("x", backend.MaxID+1)},
		"an id that is not UTF-8":       {ID: "\xff"},
		"too large a body":              {Body: make([]byte, largest+1)},
		"a header key with NUL":         {Headers: map[string]string{"a\x00b": ""}},
		"UniqueFor without an id":       {UniqueFor: time.Minute},
		"a negative UniqueFor":          {ID: "unique", UniqueFor: -time.Second},
		"too short a UniqueFor":         {ID: "unique", UniqueFor: backend.MinUnique - 1},
		"too long a UniqueFor":          {ID: "unique", UniqueFor: backend.MaxUnique + 1},
		"Replace without an id":         {Replace: true},
		"Replace with UniqueFor":        {ID: "replace", Replace: true, UniqueFor: time.Minute},
		"MaxWait without Replace":       {ID: "replace", MaxWait: time.Minute},
		"AfterInFlight without Replace": {ID: "replace", AfterInFlight: true},
		"a negative MaxWait":            {ID: "replace", Replace: true, MaxWait: -time.Second},
		"too short a MaxWait":           {ID: "replace", Replace: true, MaxWait: backend.MinWait - 1},
		"too long a MaxWait":            {ID: "replace", Replace: true, MaxWait: backend.MaxDelay + 1},
		"an empty header key":           {Headers: map[string]string{"": "x"}},
		"a reserved header key":         {Headers: map[string]string{"delayq-x": "x"}},
		"headers of more than 64 KiB":   {Headers: map[string]string{"x": strings.Repeat("x", backend.MaxHeaders)}},
	}
}

// lacksPart reports whether the message has a part that the store does not support.
func (t *testRun) lacksPart(m delayq.Message) bool {
	return m.Replace && !t.has(backend.Replacing) || m.AfterInFlight && !t.has(backend.ReplacingInFlight) || m.ID != "" && !t.has(backend.OwnIDs) || m.UniqueFor != 0 && !t.has(backend.UniqueWindows) || len(m.Headers) > 0 && !t.has(backend.KeepingHeaders)
}

// refused fails unless err is ErrInvalid and says what is allowed.
func (t *testRun) refused(err error, what string) {
	t.want(err, backend.ErrInvalid, "pushing %s", what)
	if msg := err.Error(); !strings.Contains(msg, "allowed is") {
		t.fail("the error for %s does not say what is allowed: %s", what, msg)
	}
}

func unsupported(t *testRun) {
	q := t.portable()
	calls := []struct {
		feature delayq.Feature
		claimed bool
		call    func() error
	}{
		{delayq.Cancelling, t.has(backend.Cancelling), func() error { return q.Cancel(t.ctx, "unknown") }},
		{delayq.Rescheduling, t.has(backend.Rescheduling), func() error { return q.Reschedule(t.ctx, "unknown", t.now()) }},
		{delayq.Counting, t.has(backend.Counting), func() error { _, err := q.Stats(t.ctx); return err }},
		{delayq.Peeking, t.has(backend.Peeking), func() error { _, _, err := q.Peek(t.ctx, "", 1); return err }},
		{delayq.Getting, t.has(backend.Getting), func() error { _, err := q.Get(t.ctx, "unknown"); return err }},
		{delayq.Purging, t.has(backend.Purging), func() error { _, err := q.Purge(t.ctx); return err }},
		{delayq.Pausing, t.has(backend.Pausing), func() error { return q.PauseAll(t.ctx, delayq.PauseUntil(backend.EarliestDue)) }},
		{delayq.Pausing, t.has(backend.Pausing), func() error { return q.ResumeAll(t.ctx) }},
		{delayq.Redriving, t.has(backend.Redriving), func() error { return q.Dead().Redrive(t.ctx, "unknown") }},
	}
	for _, c := range calls {
		_, require := t.tryPortable(t.name(), delayq.Require(c.feature))
		for _, err := range []error{c.call(), require} {
			if got := isUnsupported(err); got == c.claimed {
				t.fail("the backend claims %v: %t; yet the call returned %v", c.feature, c.claimed, err)
			}
		}
	}
	if !t.has(backend.OwnIDs) {
		t.refusesPart(q, delayq.OwnIDs, delayq.ID("mine"))
	}
	if !t.has(backend.UniqueWindows) {
		t.refusesPart(q, delayq.UniqueWindows, delayq.UniqueFor(time.Minute))
	}
	if !t.has(backend.Replacing) {
		t.refusesPart(q, delayq.Replacing, delayq.Replace())
	}
	if t.has(backend.Replacing) && !t.has(backend.ReplacingInFlight) {
		t.refusesPart(q, delayq.ReplacingInFlight, delayq.ReplaceAfterInFlight())
	}
	if !t.has(backend.ChangingHeaders) {
		t.refusesNewHeaders(q)
	}
	if !t.has(backend.KeepingHeaders) {
		t.refusesPart(q, delayq.KeepingHeaders, delayq.Header("key", "value"))
		t.refusesHeaders()
	}
}

// refusesPart pushes a message with a part that the backend does not support, by every method.
func (t *testRun) refusesPart(q delayq.Queue, what delayq.Feature, part delayq.PushOption) {
	var m delayq.Message
	t.must(part(&m), "setting a part of a message")
	_, require := t.tryPortable(t.name(), delayq.Require(what))
	_, single := q.Push(t.ctx, nil, part)
	_, batch := q.PushBatch(t.ctx, []delayq.Message{{Body: []byte("good")}, m})
	for _, err := range []error{require, single, batch} {
		if !isUnsupported(err) {
			t.fail("the backend does not claim %v; yet the call returned %v", what, err)
		}
	}
	t.nothing("a message was refused for lack of " + what.String())
}

// refusesNewHeaders gives a message back with headers, and then without, since the lease goes on.
func (t *testRun) refusesNewHeaders(q delayq.Queue) {
	_, require := t.tryPortable(t.name(), delayq.Require(delayq.ChangingHeaders))
	id := t.pushAfter(0)
	d, err := q.Receive(t.ctx)
	t.must(err, "Receive")
	for _, err := range []error{require, d.Nack(t.ctx, 0, delayq.NackHeaders(nil)), d.Nack(t.ctx, 0, delayq.NackHeaders(map[string]string{"k": "v"}))} {
		if !isUnsupported(err) {
			t.fail("the backend does not claim %v; yet the call returned %v", delayq.ChangingHeaders, err)
		}
	}
	t.nothing("a nack was refused for its headers")
	t.must(d.Nack(t.ctx, 0), "Nack")
	t.ack(t.takeID(id))
}

// refusesHeaders pushes headers to the backend itself.
func (t *testRun) refusesHeaders() {
	bad, good := t.after(0), t.after(0)
	bad.Headers = map[string]string{"key": "value"}
	t.expect(good)
	errs := t.q.Schedule(t.ctx, []backend.Message{bad, good})
	if err := at(errs, 0); !isUnsupported(err) {
		t.fail("the backend claims to have no headers; yet a push with one returned %v", err)
	}
	t.must(at(errs, 1), "scheduling beside a message with headers")
	t.ack(t.takeID(good.ID))
	t.nothing("the message with headers was refused")
	t.empty()
}

func isUnsupported(err error) bool {
	var e *backend.UnsupportedError
	return errors.Is(err, backend.ErrUnsupported) && errors.As(err, &e) && e.Backend != "" && e.Op != ""
}

func oddIDs(t *testRun) {
	for _, id := range []string{
		"0", " ", "a b", "{a}", "a:b", "*", "#", "a.b", "../x", "ünïcödé 中文 😀", strings.Repeat("x", backend.MaxID),
		"01ARZ3NDEKTSV4RRFFQ69G5FAV", "01arz3ndektsv4rrffq69g5fav", "-1", "1e400", "nil", "false",
	} {
		t.push(backend.Message{ID: id, Body: []byte("body of " + id)})
		t.ack(t.takeID(id))
	}
}
