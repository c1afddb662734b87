package conformance

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/delayq/delayq/backend"
)

// All invariants at once: the backend and the reference are driven by the same random operations.
var modelChecks = []Check{
	{
		Name: "model", Invariant: 3, needs: []need{attempts, exactly},
		Rule: "Whatever the operations, the backend answers what the reference queue answers.",
		run:  modelled,
	},
}

// modelled lets rapid look for operations after which the two differ, and shrink them.
func modelled(t *trial) {
	prepareFlags()
	queues := 0
	rapid.Check(&reporter{t: t}, func(rt *rapid.T) {
		queues++
		m := newMachine(t, rt, queues)
		rt.Repeat(m.actions())
		_ = m.q.Close()
	})
}

// machine is one run of random operations.
type machine struct {
	*trial
	rt    *rapid.T
	q     backend.Queue
	ref   *reference
	given []backend.Delivery // ever, stale ones too
	fresh int                // names used up, where each is pushed once
}

func newMachine(t *trial, rt *rapid.T, n int) *machine {
	q, err := t.openOn(t.b, fmt.Sprintf("%s.%d", t.name(), n))
	if err != nil {
		rt.Fatalf("opening a queue: %v", err)
	}
	ref := &reference{now: t.now(), ms: make(map[string]*refMessage)}
	if t.fake != nil { // else it cannot know to what a due time is rounded
		ref.grain, ref.lag = t.traits.Resolution, t.lag()
	}
	return &machine{trial: t, rt: rt, q: q, ref: ref}
}

func (m *machine) actions() map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){
		"push": m.pushSome, "take": m.takeSome, "ack": m.ackOne, "nack": m.nackOne,
		"extend": m.extendOne, "bury": m.buryOne, "": m.compare,
	}
	if m.fake != nil {
		actions["pass"] = m.passSome
	}
	if c, ok := m.q.(backend.Canceler); ok {
		actions["cancel"] = func(*rapid.T) { m.cancelOne(c) }
	}
	if r, ok := m.q.(backend.Rescheduler); ok {
		actions["reschedule"] = func(*rapid.T) { m.moveOne(r) }
	}
	if d, ok := m.q.(backend.DeadLetters); ok {
		actions["redrive"] = func(*rapid.T) { m.redriveOne(d) }
		actions["delete dead"] = func(*rapid.T) { m.deleteOne(d) }
	}
	return actions
}

// Draws. On the server's own clock time cannot be known, so that all there is, is now and much later.

func (m *machine) delay() time.Duration {
	if m.fake == nil {
		return rapid.SampledFrom([]time.Duration{0, 1000 * time.Hour}).Draw(m.rt, "delay")
	}
	return time.Duration(rapid.IntRange(0, 8).Draw(m.rt, "delay")) * m.Tick / 4
}

func (m *machine) leaseFor() time.Duration {
	if m.fake == nil {
		return time.Hour
	}
	return time.Duration(rapid.IntRange(1, 8).Draw(m.rt, "lease")) * m.Tick / 4
}

// id draws one of few, so that operations meet: where each is pushed once, one of the latest.
func (m *machine) id() string {
	return nthID(max(0, m.fresh-12) + rapid.IntRange(0, 12).Draw(m.rt, "id"))
}

func nthID(n int) string { return fmt.Sprintf("m%02d", n) }

// pushedID draws the id of a message to push. Where a second push of an id stores a second message, nobody
// could tell the two apart, and each push has an id of its own.
func (m *machine) pushedID() string {
	if !m.traits.KeepsDuplicates {
		return m.id()
	}
	m.fresh++
	return nthID(m.fresh - 1)
}

// delivery draws one that was given, stale or not.
func (m *machine) delivery() backend.Delivery {
	if len(m.given) == 0 {
		m.rt.Skip("no delivery yet")
	}
	return rapid.SampledFrom(m.given).Draw(m.rt, "delivery")
}

// agree fails when the two answer differently.
func (m *machine) agree(got, want error, format string, args ...any) {
	if !errors.Is(got, want) {
		m.rt.Fatalf("%s: the backend answers %v, the reference %v", fmt.Sprintf(format, args...), got, want)
	}
}

func (m *machine) passSome(*rapid.T) {
	d := time.Duration(rapid.IntRange(1, 8).Draw(m.rt, "time")) * m.Tick / 4
	for unsure := true; unsure; d = m.lag() {
		m.fake.Advance(d)
		unsure = m.ref.pass(d)
	}
}

func (m *machine) pushSome(*rapid.T) {
	var batch []backend.Message
	var want []error
	for range rapid.IntRange(1, 3).Draw(m.rt, "batch") {
		id, delay := m.pushedID(), m.delay()
		batch = append(batch, backend.Message{ID: id, Body: []byte("body of " + id), Headers: m.headers("of", id), Delay: delay})
		want = append(want, m.ref.push(id, delay))
	}
	got := m.q.Schedule(m.ctx, batch)
	for i, msg := range batch {
		m.agree(at(got, i), want[i], "pushing %s with a delay of %v", msg.ID, msg.Delay)
	}
}

func at(errs []error, i int) error {
	if errs == nil {
		return nil
	}
	return errs[i]
}

func (m *machine) takeSome(*rapid.T) {
	ready := m.ref.ready()
	limit, lease := rapid.IntRange(1, 3).Draw(m.rt, "limit"), m.leaseFor()
	wait := m.Patience
	if len(ready) == 0 {
		wait = m.Quiet / 4
	}
	ctx, cancel := context.WithTimeout(m.ctx, wait)
	defer cancel()
	ds, err := m.q.Receive(ctx, limit, lease)
	switch {
	case len(ready) == 0 && errors.Is(err, context.DeadlineExceeded):
	case err != nil:
		m.rt.Fatalf("taking up to %d while %d are ready: %v", limit, len(ready), err)
	case len(ds) > min(limit, len(ready)):
		m.rt.Fatalf("taking up to %d while %d are ready: got %d", limit, len(ready), len(ds))
	}
	for i, d := range ds {
		m.taken(ready, i, d, lease)
	}
}

func (m *machine) taken(ready []*refMessage, i int, d backend.Delivery, lease time.Duration) {
	var found *refMessage
	for _, r := range ready {
		if r.id == d.ID && r.state == "scheduled" {
			found = r
		}
	}
	if found == nil {
		m.rt.Fatalf("message %s was handed out, which is not ready", d.ID)
	}
	if m.fake != nil && !m.traits.Unordered && ready[i].id != d.ID {
		m.rt.Fatalf("message %s was handed out, %s is before it", d.ID, ready[i].id)
	}
	m.ref.take(found, d, lease)
	if d.Attempt != found.attempt {
		m.rt.Fatalf("message %s came at attempt %d; it is number %d", d.ID, d.Attempt, found.attempt)
	}
	if m.fake != nil && !d.Due.Equal(found.due) {
		m.rt.Fatalf("message %s says it was due at %v; it was at %v", d.ID, d.Due, found.due)
	}
	want := backend.Message{Body: []byte("body of " + d.ID), Headers: m.headers("of", d.ID)}
	if err := sameContent(d, want); err != nil {
		m.rt.Fatalf("%v", err)
	}
	m.given = append(m.given, d)
}

func (m *machine) ackOne(*rapid.T) {
	d := m.delivery()
	want := m.ref.holds(d)
	m.agree(outcome(m.q.Ack(m.ctx, []backend.Lease{d.Lease()})), want, "acknowledging %s", d.ID)
	if want == nil {
		delete(m.ref.ms, d.ID)
	}
}

func (m *machine) nackOne(*rapid.T) {
	d := m.delivery()
	r := backend.Return{Lease: d.Lease(), Untouched: rapid.Bool().Draw(m.rt, "untouched")}
	if !r.Untouched {
		r.Delay = m.delay()
	}
	want := m.ref.holds(d)
	m.agree(outcome(m.q.Nack(m.ctx, []backend.Return{r})), want, "giving %s back with a delay of %v", d.ID, r.Delay)
	if want != nil {
		return
	}
	msg := m.ref.ms[d.ID]
	msg.state = "scheduled"
	if r.Untouched {
		msg.attempt--
	} else {
		msg.due = m.ref.roundUp(r.Delay)
	}
}

func (m *machine) extendOne(*rapid.T) {
	d, lease := m.delivery(), m.leaseFor()
	want := m.ref.holds(d)
	ends, errs := m.q.Extend(m.ctx, []backend.Lease{d.Lease()}, lease)
	m.agree(outcome(errs), want, "extending the lease of %s", d.ID)
	if want != nil {
		return
	}
	until := m.ref.now.Add(lease)
	m.ref.ms[d.ID].until = until
	if m.fake != nil && (ends[0].Before(until) || ends[0].Sub(until) > m.traits.Resolution) {
		m.rt.Fatalf("the extended lease of %s ends at %v; asked for was %v", d.ID, ends[0], until)
	}
}

func (m *machine) buryOne(*rapid.T) {
	d := m.delivery()
	want := m.ref.holds(d)
	got := outcome(m.q.Dead(m.ctx, []backend.Burial{{Lease: d.Lease(), Reason: "of the check"}}))
	m.agree(got, want, "burying %s", d.ID)
	if want == nil {
		m.ref.ms[d.ID].state = "dead"
	}
}

func (m *machine) cancelOne(c backend.Canceler) {
	id := m.id()
	want := m.ref.waiting(id)
	m.agree(outcome(c.Cancel(m.ctx, []string{id})), want, "cancelling %s", id)
	if want == nil {
		delete(m.ref.ms, id)
	}
}

func (m *machine) moveOne(r backend.Rescheduler) {
	id, delay := m.id(), m.delay()
	want := m.ref.waiting(id)
	m.agree(outcome(r.Reschedule(m.ctx, []backend.Move{{ID: id, Delay: delay}})), want, "rescheduling %s by %v", id, delay)
	if want == nil {
		m.ref.ms[id].due = m.ref.roundUp(delay)
	}
}

// isDead says what Redrive and DeleteDead answer.
func (m *machine) isDead(id string) error {
	if msg := m.ref.ms[id]; msg == nil || msg.state != "dead" {
		return backend.ErrNotFound
	}
	return nil
}

func (m *machine) redriveOne(d backend.DeadLetters) {
	id := m.id()
	want := m.isDead(id)
	m.agree(outcome(d.Redrive(m.ctx, []string{id})), want, "redriving %s", id)
	if want == nil {
		delete(m.ref.ms, id)
		_ = m.ref.push(id, 0)
	}
}

func (m *machine) deleteOne(d backend.DeadLetters) {
	id := m.id()
	want := m.isDead(id)
	m.agree(outcome(d.DeleteDead(m.ctx, []string{id})), want, "deleting the dead letter %s", id)
	if want == nil {
		delete(m.ref.ms, id)
	}
}

// compare runs after each operation. A store that sweeps, or has a clock of its own, gets the
// time to come round.
func (m *machine) compare(*rapid.T) {
	i, ok := m.q.(backend.Inspector)
	if !ok {
		return
	}
	want := m.counts()
	patient := m.fake == nil || m.traits.Sweep > 0
	for deadline := time.Now().Add(m.Patience); ; time.Sleep(time.Millisecond) {
		got, err := i.Stats(m.ctx)
		switch {
		case err != nil:
			m.rt.Fatalf("Stats: %v", err)
		case countsOf(got) == want:
			return
		case !patient || time.Now().After(deadline):
			m.rt.Fatalf("the backend counts %s, the reference %s", countsOf(got), want)
		}
	}
}

func (m *machine) counts() string {
	ready := len(m.ref.ready())
	return countsOf(backend.Stats{
		Scheduled: int64(len(m.ref.in("scheduled")) - ready), Ready: int64(ready),
		InFlight: int64(len(m.ref.in("leased"))), Dead: int64(len(m.ref.in("dead"))),
	})
}

// prepareFlags makes rapid's flags usable, outside of a test binary too. A failure prints its seed; a
// file of it would land in whatever folder the suite is run from.
func prepareFlags() {
	if !testing.Testing() && !flag.Parsed() {
		testing.Init()
		_ = flag.CommandLine.Parse(nil)
	}
	_ = flag.Set("rapid.nofailfile", "true")
}

// reporter makes rapid report to a trial.
type reporter struct {
	t      *trial
	lines  []string
	failed bool
}

var _ rapid.TB = (*reporter)(nil)

func (r *reporter) Helper()      {}
func (r *reporter) Name() string { return "TestConformance" }
func (r *reporter) Failed() bool { return r.failed }
func (r *reporter) Fail()        { r.failed = true }

func (r *reporter) FailNow() { r.t.fail("%s", strings.Join(r.lines, "\n")) }

func (r *reporter) Logf(format string, args ...any) { r.Log(fmt.Sprintf(format, args...)) }
func (r *reporter) Log(args ...any) {
	r.lines = append(r.lines, strings.TrimSuffix(fmt.Sprintln(args...), "\n"))
}
func (r *reporter) Errorf(format string, args ...any) { r.Logf(format, args...); r.Fail() }
func (r *reporter) Error(args ...any)                 { r.Log(args...); r.Fail() }
func (r *reporter) Fatalf(format string, args ...any) { r.Errorf(format, args...); r.FailNow() }
func (r *reporter) Fatal(args ...any)                 { r.Error(args...); r.FailNow() }
func (r *reporter) Skipf(format string, args ...any)  { r.Fatalf("skipped: "+format, args...) }
func (r *reporter) Skip(args ...any)                  { r.Fatal(args...) }
func (r *reporter) SkipNow()                          { r.Fatal("skipped") }
