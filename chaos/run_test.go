package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// A run is one target under one plan.
type run struct {
	t         *testing.T
	v         *target
	env       *Env
	second    *Env
	began     time.Time
	log       *judge.Log
	clients   Group
	processes []*workerProcess
	poison    *poisonRun // nil for none
	admin     backend.Backend
	windows   []judge.Window
}

// runPlan puts a target through a plan of some length, and returns the history.
func runPlan(t *testing.T, v *target, seed uint64, length time.Duration) *judge.History {
	t.Helper()
	r := newRun(t, v, seed)
	only := regexp.MustCompile(*faultsFlag) // it panics with the reason where it is none
	faults := slices.DeleteFunc(r.faults(), func(f *fault) bool { return !only.MatchString(f.Name) })
	r.play(faults, MakePlan(seed, v.name, length, kindsOf(faults)))
	return r.finish()
}

func kindsOf(faults []*fault) []Kind { return each(faults, func(f *fault) Kind { return f.Kind }) }

func newRun(t *testing.T, v *target, seed uint64) *run {
	t.Helper()
	b, err := v.opens[0](t.Context())
	must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	r := &run{t: t, v: v, log: new(judge.Log), admin: b}
	numbers := NewNumbers(0, 0)
	env := func(queue string, mix Mix) *Env {
		return &Env{
			Backend: v.name, Queue: queue, Second: queue == secondQueue, Seed: seed, Traits: b.Traits(), Rec: r.log, Mix: mix, Numbers: numbers, Shift: v.shift(),
		}
	}
	r.env, r.second = env(queueName, DefaultMix()), env(secondQueue, SecondMix())
	r.env.WorkerContents = &workerContents{first: pusherContents, end: ownContents, to: maxNumber}
	if v.mix != nil {
		v.mix(&r.env.Mix)
	}
	if !v.oneProcess {
		r.prepareProcesses()
	}
	return r
}

// faults returns the faults of the run's plan.
func (r *run) faults() []*fault {
	switch {
	case r.v.harmless:
		return harmlessFaults(r.env)
	case r.v.ownFaults || r.v.faults == nil && !r.v.outside:
		return r.v.faults
	}
	stopped := elsewhere
	stopped.Elsewhere = !r.v.oneLock
	ofProcesses := processFaults(r.processes, stopped)
	if r.v.outside {
		return append(ofProcesses, allKilled("all processes kill -9", 3, r.processes, func(*injection) int { return 1 }),
			allKilled("all killed, log torn", 2, r.processes, r.v.tear))
	}
	return slices.Concat(clientFaults(r.env), ofProcesses, r.v.faults)
}

// prepareProcesses prepares worker processes: two that receive, and one that pushes. If all clients
// are outside, there are two that do both, and one with the other clients.
func (r *run) prepareProcesses() {
	dir, kinds, rate, most := r.t.TempDir(), [][]string{{"worker"}, {"worker"}, {"pusher"}}, r.v.rate/20, uint32(20_000)
	if r.v.outside {
		kinds, rate = [][]string{
			{"worker", "worker", "pusher"}, {"worker", "worker", "pusher"},
			{"second worker", "second pusher", "dead letters", "misuse", "pauser"},
		}, r.v.rate/2
		most = 8000 // none lives for long, and the numbers of a run have to do for thousands
	}
	for i, clients := range kinds {
		at := r.v.direct
		if i == 1 {
			at = r.v.proxied
		}
		r.processes = append(r.processes, &workerProcess{dir: dir, numbers: r.env.Numbers, most: most, role: Role{
			Clients: clients, Proc: i + 1, Endpoint: at, Queue: queueName, Second: secondQueue, Seed: r.env.Seed, Traits: r.env.Traits,
			Rate: rate, Shift: r.v.shift(), Delay: r.env.Mix.Delay,
		}})
	}
	if r.v.poison > 0 {
		r.poison = newPoisonRun(r.t, r.v, r.env, dir)
	}
}

// play starts the clients, and the faults once all clients have begun. It returns how long there was
// load.
func (r *run) play(faults []*fault, p Plan) time.Duration {
	r.t.Helper()
	if *planFlag {
		r.t.Log(p.String())
	}
	r.began = time.Now()
	r.startClients()
	r.awaitBegun()
	d := newDirector(r.t, faults)
	d.play(r.t.Context(), p)
	load := time.Since(r.began)
	r.windows = d.windows
	if r.v.lastFault != nil {
		r.windows = append(r.windows, r.v.lastFault(r.t))
	}
	return load
}

func (r *run) startClients() {
	r.t.Helper()
	if !r.v.outside {
		r.startClientsHere()
	}
	for _, w := range r.processes {
		must(r.t, w.start())
	}
	if r.poison != nil {
		r.poison.start()
	}
}

func (r *run) startClientsHere() {
	r.t.Helper()
	proc := 10
	add := func(open OpenFunc, client func(proc int) Run) {
		proc++
		must(r.t, r.clients.Add(r.t.Context(), open, client(proc)))
	}
	worker := func(proc int) Run { return Worker(r.env, proc) }
	pusher := func(e *Env, rate float64) func(int) Run { return func(proc int) Run { return Pusher(e, proc, rate) } }
	for i, open := range r.v.opens {
		if i > 0 {
			add(open, pusher(r.env, r.v.rate/20))
			add(open, worker)
			continue
		}
		for range 2 {
			add(open, pusher(r.env, r.v.rate*0.4))
		}
		for range 3 {
			add(open, worker)
		}
	}
	for _, client := range []func(proc int) Run{
		func(proc int) Run { return DeadLetterClient(r.env, proc) }, func(proc int) Run { return MisuseClient(r.env, proc) },
		func(proc int) Run { return Pauser(r.env, proc) },
		func(proc int) Run { return SecondWorker(r.second, proc) }, pusher(r.second, secondRate),
	} {
		add(r.v.opens[0], client)
	}
}

// awaitBegun waits until every process has made calls: to break one before would show nothing. On
// three brokers and a machine under load, the declarations of each process may take a minute.
func (r *run) awaitBegun() {
	r.t.Helper()
	if !poll(3*time.Minute, func() bool {
		waits := slices.ContainsFunc(r.processes, func(w *workerProcess) bool { return w.recorded() == 0 })
		return !waits && !judge.LastDelivery(r.calls()).IsZero()
	}) {
		r.logUnsettled("before anything was broken")
		r.t.Fatal("the clients did not begin")
	}
}

// finish drains the queue, stops all clients, and collects what is left.
func (r *run) finish() *judge.History {
	r.t.Helper()
	r.env.Draining.Store(true)
	for _, w := range r.processes {
		_ = w.drain() // it fails for a process that has ended
	}
	if slices.ContainsFunc(r.windows, func(w judge.Window) bool { return w.Undo > 0 }) {
		r.resumeAll()
	}
	h := &judge.History{Backend: r.v.name, Seed: r.env.Seed, Traits: r.env.Traits, Windows: r.windows}
	if r.v.repeats {
		h.RepeatAfter = int64(ReadTimeout)
	}
	if !r.v.skipCalm {
		r.stayCalm()
	}
	r.second.Draining.Store(true)
	for _, w := range r.processes {
		_ = w.drain() // of the second queue too
	}
	if h.Drained = r.drained(r.env) && r.drained(r.second); !h.Drained {
		r.logUnsettled("not drained")
	}
	if r.poison != nil {
		h.Poison = r.poison.finish(r.t, r.admin, judge.Healed(r.windows))
	}
	r.env.Stopping.Store(true)
	r.second.Stopping.Store(true)
	r.clients.Wait()
	for _, w := range r.processes {
		w.stop()
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	if err := CollectDead(ctx, r.env, 1, r.admin); err != nil {
		h.Leftovers = append(h.Leftovers, "dead letters that cannot be listed: "+err.Error())
	}
	h.Calls = r.calls()
	if r.v.clock != nil {
		h.ClockJumps = r.v.clock.jumps
	}
	if r.v.leftovers != nil && h.Drained {
		left, err := r.v.leftovers(r.t.Context(), r.admin)
		must(r.t, err)
		h.Leftovers = append(h.Leftovers, left...)
	}
	return h
}

func (r *run) calls() []judge.Call {
	r.t.Helper()
	all := r.log.Calls()
	for _, w := range r.processes {
		calls, err := w.calls()
		must(r.t, err)
		all = append(all, calls...)
	}
	return all
}

// stayCalm lets the second queue go on while the first one drains, until nothing has been broken for
// so long that a lost wake-up would show.
func (r *run) stayCalm() {
	r.t.Helper()
	calm := r.began
	for _, w := range r.windows {
		if !w.Elsewhere {
			calm = time.Unix(0, w.End)
		}
	}
	q := r.openAdmin(queueName)
	if q == nil {
		return
	}
	defer func() { _ = q.Close() }()
	for end := calm.Add(judge.CalmAtLeast(r.env.Traits.Sweep)); time.Now().Before(end); {
		if r.env.Traits.Supports(backend.CountingScheduled) {
			_, _ = Audit(r.t.Context(), r.env, q) // it is recorded
		}
		time.Sleep(100 * time.Millisecond) // between two counts
	}
}

// resumeAll ends a pause whose end a fault has undone.
func (r *run) resumeAll() {
	r.t.Helper()
	q := r.openAdmin(queueName)
	if q == nil {
		return
	}
	defer func() { _ = q.Close() }()
	c := &client{Env: r.env, q: q, rng: rngOf(r.env.Seed, "resume")}
	if c.Traits.Supports(backend.Pausing) {
		c.resumeAll(r.t.Context())
	}
}

// drained waits until no message is scheduled, ready or in flight. Where the store does not count
// them, it waits until all messages are settled and no more are delivered for a while.
func (r *run) drained(e *Env) bool {
	r.t.Helper()
	if !e.Traits.Supports(backend.CountingScheduled) {
		return poll(r.v.drainTime, func() bool {
			time.Sleep(time.Second) // to read all histories takes a while itself; the condition ends the wait
			h := &judge.History{Calls: r.calls()}
			return len(judge.Unsettled(h)) == 0 && time.Since(judge.LastDelivery(h.Calls)) > 4*time.Second
		})
	}
	q := r.openAdmin(e.Queue)
	if q == nil {
		return false
	}
	defer func() { _ = q.Close() }()
	var last backend.Stats
	empty := poll(r.v.drainTime, func() bool {
		ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Second)
		defer cancel()
		found, err := Audit(ctx, e, q)
		last = found
		return err == nil && found.Scheduled+found.Ready+found.InFlight == 0
	})
	if !empty {
		r.t.Logf("%s not drained after %v: %+v", e.Queue, r.v.drainTime, last)
	}
	return empty
}

// logUnsettled logs unsettled messages, and where the store has them: after the run the store is
// gone.
func (r *run) logUnsettled(when string) {
	r.t.Helper()
	h := &judge.History{Backend: r.v.name, Seed: r.env.Seed, Traits: r.env.Traits, Windows: r.windows, Calls: r.calls()}
	ns := judge.Unsettled(h)
	r.t.Logf("%s: %d unsettled messages", when, len(ns))
	for _, n := range ns[:min(len(ns), 5)] {
		r.t.Logf("%.4000s", judge.Timeline(h, n))
	}
	if r.v.locate != nil {
		r.t.Logf("%s:\n%s", when, r.v.locate())
	}
}

// openAdmin opens a queue when the run ends. It returns nil where that fails, and the test with it.
func (r *run) openAdmin(name string) (q backend.Queue) {
	r.t.Helper()
	var err error
	if !poll(30*time.Second, func() bool {
		ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Second)
		defer cancel()
		q, err = r.admin.Open(ctx, name, quiet)
		return err == nil
	}) {
		r.t.Errorf("opening the queue at the end: %v", err)
		return nil
	}
	return q
}

// check checks the history of a target, and stores a history that breaks rules.
func check(t *testing.T, v *target, h *judge.History) Report {
	t.Helper()
	began := time.Now()
	verdict := judge.Check(h)
	c := verdict.Counts
	t.Logf("%s: %d messages, %d calls, checked in %v", h.Backend, c.Messages, c.Calls, time.Since(began).Round(time.Millisecond))
	t.Logf("%s: %d pairs in order, %d waited for, the longest for %v, %d calls with bad input, %d counts, %d replaced, %d in flight", h.Backend, c.Ordered, c.Woken,
		time.Duration(c.SlowestWake).Round(time.Millisecond), c.Misused, c.Counted, c.Replaced, c.ReplacedInFlight)
	if idle := verdict.Idle(h, !v.skipCalm); len(idle) > 0 {
		t.Errorf("%s, -chaos.seed=%d: the rules %v had nothing to check", h.Backend, h.Seed, idle)
	}
	if len(verdict.Violations) > 0 {
		t.Errorf("%s, -chaos.seed=%d: %d violations of %v\n%s\nhistory: %s", h.Backend, h.Seed, len(verdict.Violations), verdict.Rules(),
			judge.Explain(h, verdict, 2), store(h, verdict))
	}
	return Report{Backend: h.Backend, Verdict: verdict, Faults: TallyOf(h.Windows)}
}

// store stores a history, and the shrunk one of its first violation. It returns the path or an
// error.
func store(h *judge.History, v judge.Verdict) string {
	path := filepath.Join(*outFlag, fmt.Sprintf("%s-%d", strings.ReplaceAll(h.Backend, "/", "-"), h.Seed))
	err := os.MkdirAll(*outFlag, 0o755)
	if err == nil {
		err = h.Save(path + ".json")
	}
	if i := slices.IndexFunc(v.Violations, func(f judge.Violation) bool { return f.N != 0 }); i >= 0 {
		err = errors.Join(err, judge.Shrink(h, v.Violations[i]).Save(path+"-small.json"))
	}
	if err != nil {
		return err.Error()
	}
	return path + ".json"
}
