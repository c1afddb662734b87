package conformance

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
)

// All invariants together: the backend and the reference run the same random operations.
var modelChecks = []Check{
	{
		Name: "model", Invariant: 3, needs: []backend.Feature{backend.CountingAttempts, backend.ExactAttempts},
		Rule: "Under random operations, on one message or on large batches, through one client or two, the backend returns the same as the reference queue.",
		run:  modelled,
	},
}

// modelled has rapid look for operations after which the two differ, and shrink them.
func modelled(t *testRun) {
	prepareFlags()
	other := t.attach()
	queues := 0
	check := func(rt *rapid.T) {
		queues++
		t.renew() // on a busy machine the runs take longer than one check
		m := newMachine(t, rt, other, queues)
		rt.Repeat(m.actions())
		m.compareAll()
		for _, q := range m.qs {
			_ = q.Close()
		}
	}
	for range t.scaled(1, 4) {
		rapid.Check(&reporter{t: t}, check)
	}
}

// machine is one run of random operations.
type machine struct {
	*testRun
	rt    *rapid.T
	queue string
	bs    [2]backend.Backend // of two clients
	qs    [2]backend.Queue
	q     backend.Queue // of the current operation
	scale int           // of a large batch
	ref   *reference
	given []given // all of the run, stale ones too
	fresh int     // ids that were used, where each is pushed once
	peeks *walk
	lists *walk
}

// given is a delivery, and the handle that settles it.
type given struct {
	backend.Lease
	of int
}

func newMachine(t *testRun, rt *rapid.T, other backend.Backend, n int) *machine {
	m := &machine{testRun: t, rt: rt, queue: fmt.Sprintf("%s.%d", t.name(), n), bs: [2]backend.Backend{t.b, other}}
	for i := range m.bs {
		m.qs[i] = m.open(i)
	}
	m.q = m.qs[0]
	m.ref = newReference(t.now())
	m.ref.grain, m.ref.exact = t.traits.Resolution, t.fake != nil
	if m.ref.exact {
		m.ref.lag = t.lag()
	}
	m.scale = rapid.SampledFrom(t.scales()).Draw(rt, "scale")
	return m
}

// open opens the queue through one of the clients.
func (m *machine) open(client int) backend.Queue {
	q, err := m.openOn(m.bs[client], m.queue)
	if err != nil {
		m.rt.Fatalf("opening a queue: %v", err)
	}
	return q
}

// scales returns sizes of large batches, of which a run has one. Most runs have no large batches.
func (t *testRun) scales() []int {
	scales := []int{3, 3, 3, 3, 3, 3, 20, 3, 3, 3, 3, 3, 3, 3, 3, 70, 3, 3, 3, 3}
	if t.inProcess() {
		scales = append(scales, 300, 1500, delayq.MaxBatch)
	}
	return scales
}

// scaled returns the smaller number on a server, where each call is a round trip.
func (t *testRun) scaled(server, inProcess int) int {
	if t.inProcess() {
		return inProcess
	}
	return server
}

// inProcess reports whether a call costs no round trip, so that thousands of messages are little
// work.
func (t *testRun) inProcess() bool { return !t.has(backend.Durability) }

func (m *machine) actions() map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){
		"push": m.act(m.pushSome), "push more": m.act(m.pushSome), "take": m.act(m.takeSome), "take more": m.act(m.takeSome),
		"ack": m.act(m.ackSome), "nack": m.act(m.nackSome), "extend": m.act(m.extendSome), "dead-letter": m.act(m.deadLetterSome),
		"": func(*rapid.T) { m.compare() },
	}
	if m.fake != nil {
		actions["pass"] = m.act(m.passSome)
	}
	if m.has(backend.Cancelling) {
		actions["cancel"] = m.act(m.cancelSome)
	}
	if m.has(backend.Rescheduling) {
		actions["reschedule"] = m.act(m.moveSome)
	}
	if m.has(backend.Redriving) {
		actions["redrive"] = m.act(m.redriveSome)
		actions["delete dead"] = m.act(m.deleteSome)
		actions["trim dead"] = m.act(m.trimSome)
		actions["list dead"] = m.act(func(dice *rand.Rand) { m.listPage(m.size(dice)) })
	}
	if m.has(backend.Peeking) {
		actions["peek"] = m.act(func(dice *rand.Rand) { m.peekPage(m.size(dice)) })
	}
	if m.has(backend.Getting) {
		actions["get"] = m.act(m.getSome)
	}
	if m.has(backend.Purging) {
		actions["purge"] = m.act(m.purgeSome)
	}
	if m.has(backend.Pausing) {
		actions["pause"] = m.act(m.pauseSome)
		actions["resume"] = m.act(func(*rand.Rand) { m.resume() })
	}
	if r, ok := m.b.(admin.Resharder); ok && !m.has(backend.Ordering) {
		actions["reshard"] = m.act(func(dice *rand.Rand) { m.reshard(r, 1<<dice.IntN(4)) })
	}
	return actions
}

// reshard changes the number of shards. A queue has some numbers of them at a time, and refuses more.
func (m *machine) reshard(r admin.Resharder, n int) {
	if err := r.Reshard(m.ctx, m.queue, n); err != nil && !errors.Is(err, backend.ErrInvalid) {
		m.rt.Fatalf("changing the number of shards to %d: %v", n, err)
	}
}

// act runs an operation through one of the handles. Rapid draws a seed for it: to draw each part of
// a large batch takes too long.
func (m *machine) act(do func(dice *rand.Rand)) func(*rapid.T) {
	return func(*rapid.T) {
		dice := rand.New(rand.NewPCG(rapid.Uint64().Draw(m.rt, "seed"), 0))
		m.ref.step++
		m.q = m.qs[dice.IntN(len(m.qs))]
		do(dice)
	}
}

// size draws the number of messages of an operation.
func (m *machine) size(dice *rand.Rand) int {
	switch {
	case m.scale <= 3 || dice.IntN(2) == 0:
		return 1 + dice.IntN(3)
	case dice.IntN(3) == 0:
		return m.scale
	default:
		return 1 + dice.IntN(m.scale)
	}
}

// The time of a server's own clock is not known exactly, so that delays are 0 or very long there.

func (m *machine) delay(dice *rand.Rand) time.Duration {
	switch {
	case m.fake == nil:
		return time.Duration(dice.IntN(2)) * 1000 * time.Hour
	case dice.IntN(20) == 0:
		return time.Duration(dice.IntN(5000)) * 24 * time.Hour
	}
	return time.Duration(dice.IntN(9))*m.Tick/4 + m.odd(dice)
}

// odd draws a part of a tick finer than any grain, where the store rounds nothing.
func (m *machine) odd(dice *rand.Rand) time.Duration {
	if m.traits.Resolution > 0 || dice.IntN(4) > 0 {
		return 0
	}
	return time.Duration(dice.IntN(1000))
}

func (m *machine) due(dice *rand.Rand) time.Time {
	now := m.ref.now
	switch dice.IntN(12) {
	case 0:
		return now.Add(-time.Duration(dice.IntN(1000)) * time.Hour)
	case 1:
		return now.Add(-time.Duration(dice.IntN(1 << 30)))
	case 2:
		return now.Add(1000*time.Hour + time.Duration(dice.IntN(1<<30)))
	case 3:
		if m.fake != nil {
			return now.Add(time.Duration(dice.IntN(9)) * m.Tick / 4)
		}
	}
	return time.Time{}
}

func (m *machine) leaseFor(dice *rand.Rand) time.Duration {
	switch {
	case m.fake == nil:
		return time.Hour
	case dice.IntN(10) == 0:
		return backend.MaxLease
	}
	return time.Duration(1+dice.IntN(8))*m.Tick/4 + m.odd(dice)
}

// pool is the number of ids to draw from: few, so that operations meet.
func (m *machine) pool() int { return 10 + m.scale + m.scale/2 }

// id draws an id of the pool; where each is pushed once, one of the latest.
func (m *machine) id(dice *rand.Rand) string {
	return nthID(max(0, m.fresh-m.pool()) + dice.IntN(m.pool()))
}

// nthID returns ids of two forms: a store may keep those that package delayq makes in another way.
func nthID(n int) string {
	if n%3 == 0 {
		return fmt.Sprintf("01ARZ3NDEKTSV4RRFFQ69%05d", n)
	}
	return fmt.Sprintf("m%02d", n)
}

// pushedID draws the id of a message to push. Where a second push of an id stores a second message,
// each push has its own id, since the two could not be distinguished.
func (m *machine) pushedID(dice *rand.Rand) string {
	if m.has(backend.Deduplicating) {
		return m.id(dice)
	}
	m.fresh++
	return nthID(m.fresh - 1)
}

// ids draws the ids of an operation; some are drawn twice.
func (m *machine) ids(dice *rand.Rand) []string {
	ids := make([]string, m.size(dice))
	for i := range ids {
		ids[i] = m.id(dice)
		if dice.IntN(6) == 0 {
			ids[i] = ids[dice.IntN(i+1)]
		}
	}
	return ids
}

// leases draws leases of one handle, stale or not; some are drawn twice.
func (m *machine) leases(dice *rand.Rand) []backend.Lease {
	if len(m.given) == 0 {
		m.rt.Skip("no delivery yet")
	}
	var ls []backend.Lease
	recent := m.given[max(0, len(m.given)-2*m.scale):]
	of := recent[dice.IntN(len(recent))].of
	for range m.size(dice) {
		from := recent
		if dice.IntN(4) == 0 {
			from = m.given
		}
		g := from[dice.IntN(len(from))]
		if len(ls) > 0 && dice.IntN(6) == 0 {
			g.Lease, g.of = ls[dice.IntN(len(ls))], of
		}
		if g.of == of {
			ls = append(ls, g.Lease)
		}
	}
	m.q = m.qs[of]
	return ls
}

// outcomes compares the outcomes of a batch with the reference, which takes its items one by one.
func (m *machine) outcomes(errs []error, n int, doing string, want func(i int) (id string, err error)) {
	if errs != nil && len(errs) != n {
		m.rt.Fatalf("%s %d messages returned %d errors", doing, n, len(errs))
	}
	for i := range n {
		id, wanted := want(i)
		if got := at(errs, i); !errors.Is(got, wanted) {
			m.rt.Fatalf("%s %s, number %d of %d: the backend returns %v, the reference %v", doing, id, i+1, n, got, wanted)
		}
	}
}

func at(errs []error, i int) error {
	if errs == nil {
		return nil
	}
	return errs[i]
}

// prepareFlags makes rapid's flags usable, outside of a test binary too. A failure prints its seed;
// a file of it would land in the working directory. Checks of several backends may run at once.
var prepareFlags = sync.OnceFunc(func() {
	if !testing.Testing() && !flag.Parsed() {
		testing.Init()
		_ = flag.CommandLine.Parse(nil)
	}
	_ = flag.Set("rapid.nofailfile", "true")
})

// reporter makes rapid report to a test run.
type reporter struct {
	t      *testRun
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
