package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/judge"
)

// A run is one venue under one plan.
type run struct {
	t       *testing.T
	v       *venue
	plan    chaos.Plan
	env     *chaos.Env
	second  *chaos.Env
	began   time.Time
	log     *judge.Log
	clients chaos.Group
	workers []*worker
	poisons *poisoner
	admin   backend.Backend
	windows []judge.Window
}

// put puts a venue through a plan of some length, and returns the history.
func put(t *testing.T, v *venue, seed uint64, length time.Duration) *judge.History {
	t.Helper()
	r := newRun(t, v, seed)
	faults := append(append(actorFaults(r.env), workerFaults(r.workers)...), v.faults...)
	switch {
	case v.restless:
		faults = restlessFaults(r.env)
	case v.bare || v.faults == nil:
		faults = v.faults
	}
	r.plan = chaos.MakePlan(seed, v.name, length, kindsOf(faults))
	if *planFlag {
		t.Log(r.plan.String())
	}
	r.startClients()
	r.warm()
	d := newDirector(t, faults)
	d.play(t.Context(), r.plan)
	r.windows = d.windows
	if v.settle != nil {
		r.windows = append(r.windows, v.settle(t))
	}
	return r.finish()
}

func newRun(t *testing.T, v *venue, seed uint64) *run {
	t.Helper()
	b, err := v.opens[0](t.Context())
	must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	r := &run{t: t, v: v, log: new(judge.Log), admin: b}
	r.env = &chaos.Env{
		Backend: v.name, Queue: queueName, Seed: seed, Traits: b.Traits(), Rec: r.log, Mix: chaos.DefaultMix(),
		Numbers: chaos.NewNumbers(0, 0), Shift: v.usual(),
	}
	if v.mix != nil {
		v.mix(&r.env.Mix)
	}
	r.second = &chaos.Env{
		Backend: v.name, Queue: secondQueue, Second: true, Seed: seed, Traits: r.env.Traits, Rec: r.log, Mix: chaos.SecondMix(), Numbers: r.env.Numbers, Shift: v.usual(),
	}
	if !v.inside {
		r.prepareWorkers()
	}
	return r
}

// secondRate is how many messages a second are pushed to the second queue.
const secondRate = 15

// prepareWorkers prepares worker processes: two that receive, and one that pushes.
func (r *run) prepareWorkers() {
	dir := r.t.TempDir()
	for i, kind := range []string{"worker", "worker", "pusher"} {
		at := r.v.straight
		if i == 1 {
			at = r.v.bent
		}
		r.workers = append(r.workers, &worker{dir: dir, numbers: r.env.Numbers, role: chaos.Role{
			Client: kind, Proc: i + 1, Endpoint: at, Queue: queueName, Seed: r.env.Seed, Traits: r.env.Traits,
			Rate: r.v.rate / 20, Shift: r.v.usual(), Delay: r.env.Mix.Delay,
		}})
	}
	if r.v.poison > 0 {
		r.poisons = newPoisoner(r.t, r.v, r.env, dir)
	}
}

// startClients starts all clients.
func (r *run) startClients() {
	r.t.Helper()
	r.began = time.Now()
	proc := 10
	for i, open := range r.v.opens {
		share := r.v.rate / 20
		pushers, workers := 1, 1
		if i == 0 {
			share, pushers, workers = r.v.rate*0.4, 2, 3
		}
		for range pushers {
			proc++
			must(r.t, r.clients.Add(r.t.Context(), open, chaos.Pusher(r.env, proc, share)))
		}
		for range workers {
			proc++
			must(r.t, r.clients.Add(r.t.Context(), open, chaos.Worker(r.env, proc)))
		}
	}
	for _, client := range []func(context.Context, backend.Backend){
		chaos.DeadLetterClient(r.env, proc+1), chaos.MisuseClient(r.env, proc+2), chaos.SecondWorker(r.second, proc+3), chaos.Pusher(r.second, proc+4, secondRate),
	} {
		must(r.t, r.clients.Add(r.t.Context(), r.v.opens[0], client))
	}
	for _, w := range r.workers {
		must(r.t, w.start())
	}
	if r.poisons != nil {
		r.poisons.start()
	}
}

// warm waits until everybody has begun: to break what has not would show nothing. On three brokers and a machine under load, the declarations of
// each process alone may take a minute.
func (r *run) warm() {
	r.t.Helper()
	begun := poll(3*time.Minute, func() bool {
		last := judge.LastDelivery(r.log.Calls())
		for _, w := range r.workers {
			if w.recorded() == 0 {
				return false
			}
		}
		return !last.IsZero()
	})
	if !begun {
		r.logWhere("before anything was broken")
		r.t.Fatal("the clients did not begin")
	}
}

// finish drains the queue, stops all clients, and collects what is left.
func (r *run) finish() *judge.History {
	r.t.Helper()
	r.env.Draining.Store(true)
	for _, w := range r.workers {
		_ = w.drain() // it fails for a process that has ended
	}
	h := &judge.History{Backend: r.v.name, Seed: r.env.Seed, Traits: r.env.Traits, Windows: r.windows}
	if r.v.repeats {
		h.RepeatAfter = int64(chaos.ReadTimeout)
	}
	if !r.v.brief {
		r.linger()
	}
	r.second.Draining.Store(true)
	if h.Drained = r.drained(r.env) && r.drained(r.second); !h.Drained {
		r.logWhere("not drained")
	}
	if r.poisons != nil {
		h.Poison = r.poisons.finish(r.t, r.admin, judge.Healed(r.windows))
	}
	r.env.Stopping.Store(true)
	r.second.Stopping.Store(true)
	r.clients.Wait()
	for _, w := range r.workers {
		w.leave()
	}
	if err := r.collectDead(); err != nil {
		h.Leftovers = append(h.Leftovers, "dead letters that cannot be listed: "+err.Error())
	}
	h.Calls, h.ClockJumps = r.calls(), r.v.clockJumps()
	if r.v.left != nil && h.Drained {
		left, err := r.v.left(r.t.Context(), r.admin)
		must(r.t, err)
		h.Leftovers = append(h.Leftovers, left...)
	}
	return h
}

func (r *run) collectDead() error {
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	return chaos.CollectDead(ctx, r.env, 1, r.admin)
}

func (r *run) calls() []judge.Call {
	r.t.Helper()
	all := r.log.Calls()
	for _, w := range r.workers {
		calls, err := w.calls()
		must(r.t, err)
		all = append(all, calls...)
	}
	return all
}

// linger lets the queue beside go on while the other one drains, until nothing has been broken for so long that a lost wake-up would show.
func (r *run) linger() {
	r.t.Helper()
	calm := r.began
	for _, w := range r.windows {
		if !w.Elsewhere {
			calm = time.Unix(0, w.End)
		}
	}
	q, err := r.openAdmin(queueName)
	if err != nil {
		r.t.Errorf("opening the queue at the end: %v", err)
		return
	}
	defer func() { _ = q.Close() }()
	for end := calm.Add(judge.CalmAtLeast(r.env.Traits.Sweep)); time.Now().Before(end); {
		if r.env.Traits.Supports(backend.Counting) {
			_, _ = chaos.Audit(r.t.Context(), r.env, q) // it is recorded
		}
		time.Sleep(100 * time.Millisecond) // between two counts; how long it is calm is what this is about
	}
}

// drained waits until nothing waits and nothing is in flight.
func (r *run) drained(s *chaos.Env) bool {
	r.t.Helper()
	q, err := r.openAdmin(s.Queue)
	if err != nil {
		r.t.Errorf("opening the queue at the end: %v", err)
		return false
	}
	defer func() { _ = q.Close() }()
	if !s.Traits.Supports(backend.Counting) {
		return r.quiet()
	}
	var last backend.Stats
	empty := poll(r.v.patient, func() bool {
		ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Second)
		defer cancel()
		found, err := chaos.Audit(ctx, s, q)
		last = found
		return err == nil && found.Scheduled+found.Ready+found.InFlight == 0
	})
	if !empty {
		r.t.Logf("%s not drained after %v: %+v", s.Queue, r.v.patient, last)
	}
	return empty
}

// logWhere logs what is not settled, and where the store says that messages are: later nobody can tell any more.
func (r *run) logWhere(when string) {
	r.t.Helper()
	h := &judge.History{Backend: r.v.name, Seed: r.env.Seed, Traits: r.env.Traits, Windows: r.windows, Calls: r.calls()}
	ns := judge.Unsettled(h)
	r.t.Logf("%s: %d messages that nobody has settled", when, len(ns))
	for _, n := range ns[:min(len(ns), 5)] {
		r.t.Logf("%.4000s", judge.Timeline(h, n))
	}
	if r.v.where != nil {
		r.t.Logf("%s:\n%s", when, r.v.where(r.t))
	}
}

func (r *run) openAdmin(name string) (q backend.Queue, err error) {
	poll(30*time.Second, func() bool {
		ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Second)
		defer cancel()
		q, err = r.admin.Open(ctx, name, quiet())
		return err == nil
	})
	return q, err
}

// quiet waits until all that was pushed is settled, where nobody can count it, and then for as long as nothing more comes.
func (r *run) quiet() bool {
	const still = 4 * time.Second
	return poll(r.v.patient, func() bool {
		time.Sleep(time.Second) // to read all histories takes a while itself; what ends the wait is the condition
		h := &judge.History{Calls: r.calls()}
		return len(judge.Unsettled(h)) == 0 && time.Since(judge.LastDelivery(h.Calls)) > still
	})
}

// judged checks a history of a venue, tells what it found, and keeps what is broken.
func judged(t *testing.T, of *venue, h *judge.History, length time.Duration) chaos.Report {
	t.Helper()
	began := time.Now()
	v := judge.Check(h)
	t.Logf("%s: %d messages, %d calls, checked in %v", h.Backend, v.Counts.Messages, v.Counts.Calls, time.Since(began).Round(time.Millisecond))
	t.Logf("%s: %d pairs in order, %d waited for, the longest for %v, %d calls with bad input, %d counts", h.Backend, v.Counts.Ordered, v.Counts.Woken,
		time.Duration(v.Counts.SlowestWake).Round(time.Millisecond), v.Counts.Misused, v.Counts.Counted)
	if idle := v.Idle(h, !of.brief); len(idle) > 0 {
		t.Errorf("%s, -chaos.seed=%d: the rules %v had nothing to look at", h.Backend, h.Seed, idle)
	}
	if len(v.Violations) > 0 {
		t.Errorf("%s, -chaos.seed=%d: %d violations of %v\n%s\nhistory: %s", h.Backend, h.Seed, len(v.Violations), v.Rules(),
			judge.Explain(h, v, 2), keep(t, h, v))
	}
	return chaos.Report{Backend: h.Backend, Seed: h.Seed, For: length, Verdict: v, Faults: chaos.TallyOf(h.Windows)}
}

// keep stores a history, and the shrunk one of its first violation.
func keep(t *testing.T, h *judge.History, v judge.Verdict) string {
	t.Helper()
	path := filepath.Join(*outFlag, fmt.Sprintf("%s-%d.json", sanitized(h.Backend), h.Seed))
	err := os.MkdirAll(*outFlag, 0o755)
	if err == nil {
		err = h.Save(path)
	}
	for _, f := range v.Violations {
		if f.N != 0 {
			err = errors.Join(err, judge.Shrink(h, f).Save(path[:len(path)-len(".json")]+"-small.json"))
			break
		}
	}
	if err != nil {
		return err.Error()
	}
	return path
}
