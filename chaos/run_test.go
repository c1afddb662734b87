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
)

// A run is one venue under one plan.
type run struct {
	t       *testing.T
	v       *venue
	plan    chaos.Plan
	stage   *chaos.Stage
	log     *chaos.Log
	troupe  chaos.Troupe
	workers []*worker
	poisons *poisoner
	admin   backend.Backend
	windows []chaos.Window
}

// put puts a venue through a plan of some length, and returns the history.
func put(t *testing.T, v *venue, seed uint64, length time.Duration) *chaos.History {
	t.Helper()
	r := newRun(t, v, seed)
	faults := append(append(actorFaults(r.stage), workerFaults(r.workers)...), v.faults...)
	if v.bare || v.faults == nil {
		faults = v.faults
	}
	r.plan = chaos.MakePlan(seed, v.name, length, kindsOf(faults))
	if *planFlag {
		t.Log(r.plan.String())
	}
	r.cast()
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
	r := &run{t: t, v: v, log: new(chaos.Log), admin: b}
	r.stage = &chaos.Stage{
		Backend: v.name, Queue: queueName, Seed: seed, Traits: b.Traits(), Rec: r.log, Mix: chaos.DefaultMix(),
		Numbers: chaos.NewNumbers(0, 0), Shift: v.shift,
	}
	if v.mix != nil {
		v.mix(&r.stage.Mix)
	}
	r.troupe.Stage = r.stage
	if !v.inside {
		r.hire()
	}
	return r
}

// hire prepares worker processes: two that take, and one that pushes.
func (r *run) hire() {
	dir := r.t.TempDir()
	for i, play := range []string{"taker", "taker", "pusher"} {
		at := r.v.straight
		if i == 1 {
			at = r.v.bent
		}
		r.workers = append(r.workers, &worker{dir: dir, numbers: r.stage.Numbers, role: chaos.Role{
			Play: play, Proc: i + 1, Endpoint: at, Queue: queueName, Seed: r.stage.Seed, Traits: r.stage.Traits,
			Rate: r.v.rate / 20, Shift: r.shift(), Delay: r.stage.Mix.Delay,
		}})
	}
	if r.v.poison > 0 {
		r.poisons = newPoisoner(r.t, r.v, r.stage, dir)
	}
}

func (r *run) shift() time.Duration {
	if r.v.shift == nil {
		return 0
	}
	return r.v.shift()
}

// cast has all actors begin.
func (r *run) cast() {
	r.t.Helper()
	proc := 10
	for i, open := range r.v.opens {
		share := r.v.rate / 20
		pushers, takers := 1, 1
		if i == 0 {
			share, pushers, takers = r.v.rate*0.4, 2, 3
		}
		for range pushers {
			proc++
			must(r.t, r.troupe.Add(r.t.Context(), open, chaos.Pusher(r.stage, proc, share)))
		}
		for range takers {
			proc++
			must(r.t, r.troupe.Add(r.t.Context(), open, chaos.Taker(r.stage, proc)))
		}
	}
	must(r.t, r.troupe.Add(r.t.Context(), r.v.opens[0], chaos.Undertaker(r.stage, proc+1)))
	for _, w := range r.workers {
		must(r.t, w.start())
	}
	if r.poisons != nil {
		r.poisons.start()
	}
}

// warm waits until everybody has begun: to break what has not would show nothing.
func (r *run) warm() {
	r.t.Helper()
	begun := poll(time.Minute, func() bool {
		_, last := chaos.Outstanding(&chaos.History{Calls: r.log.Calls()})
		for _, w := range r.workers {
			if w.recorded() == 0 {
				return false
			}
		}
		return !last.IsZero()
	})
	if !begun {
		r.t.Fatal("the actors did not begin")
	}
}

// finish drains the queue, has everybody leave, and looks at what is left.
func (r *run) finish() *chaos.History {
	r.t.Helper()
	r.stage.Draining.Store(true)
	for _, w := range r.workers {
		_ = w.drain() // a process that has ended needs not be told
	}
	h := &chaos.History{Backend: r.v.name, Seed: r.stage.Seed, Traits: r.stage.Traits, Windows: r.windows, Moot: r.v.moot}
	h.Drained = r.drained()
	if r.poisons != nil {
		h.Poison = r.poisons.finish(r.t, r.admin)
	}
	r.stage.Stopping.Store(true)
	r.troupe.Wait()
	for _, w := range r.workers {
		w.leave()
	}
	if err := r.lastRites(); err != nil {
		h.Left = append(h.Left, "dead letters that cannot be listed: "+err.Error())
	}
	h.Calls = r.calls()
	if r.v.left != nil && h.Drained {
		left, err := r.v.left(r.t.Context(), r.admin)
		must(r.t, err)
		h.Left = append(h.Left, left...)
	}
	return h
}

func (r *run) lastRites() error {
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	return chaos.LastRites(ctx, r.stage, 1, r.admin)
}

func (r *run) calls() []chaos.Call {
	r.t.Helper()
	all := r.log.Calls()
	for _, w := range r.workers {
		calls, err := w.calls()
		must(r.t, err)
		all = append(all, calls...)
	}
	return all
}

// drained waits until nothing waits and nothing is in flight.
func (r *run) drained() bool {
	r.t.Helper()
	q, err := r.openAdmin()
	if err != nil {
		r.t.Errorf("opening the queue at the end: %v", err)
		return false
	}
	defer func() { _ = q.Close() }()
	look, ok := q.(backend.Inspector)
	if !ok {
		return r.quiet()
	}
	var last backend.Stats
	empty := poll(r.v.patient, func() bool {
		ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Second)
		defer cancel()
		s, err := look.Stats(ctx)
		last = s
		return err == nil && s.Scheduled+s.Ready+s.InFlight == 0
	})
	if !empty {
		r.t.Logf("not drained after %v: %+v", r.v.patient, last)
	}
	return empty
}

func (r *run) openAdmin() (q backend.Queue, err error) {
	poll(30*time.Second, func() bool {
		ctx, cancel := context.WithTimeout(r.t.Context(), 5*time.Second)
		defer cancel()
		q, err = r.admin.Open(ctx, queueName, quiet())
		return err == nil
	})
	return q, err
}

// quiet waits until all that was pushed is settled, where nobody can count it, and then for as long as nothing more comes.
func (r *run) quiet() bool {
	const still = 4 * time.Second
	return poll(r.v.patient, func() bool {
		time.Sleep(time.Second) // to read all histories takes a while itself; what ends the wait is the condition
		h := &chaos.History{Calls: r.calls()}
		open, last := chaos.Outstanding(h)
		return open == 0 && time.Since(last) > still
	})
}

// judged checks a history, tells what it found, and keeps what is broken.
func judged(t *testing.T, h *chaos.History, length time.Duration) chaos.Report {
	t.Helper()
	began := time.Now()
	v := chaos.Check(h)
	t.Logf("%s: %d messages, %d calls, checked in %v", h.Backend, v.Counts.Messages, v.Counts.Calls, time.Since(began).Round(time.Millisecond))
	if len(v.Violations) > 0 {
		t.Errorf("%s, -chaos.seed=%d: %d violations of %v\n%s\nhistory: %s", h.Backend, h.Seed, len(v.Violations), v.Rules(),
			chaos.Explain(h, v, 2), keep(t, h, v))
	}
	return chaos.Report{Backend: h.Backend, Seed: h.Seed, For: length, Verdict: v, Faults: chaos.TallyOf(h.Windows)}
}

// keep stores a history, and the shrunk one of its first violation.
func keep(t *testing.T, h *chaos.History, v chaos.Verdict) string {
	t.Helper()
	path := filepath.Join(*outFlag, fmt.Sprintf("%s-%d.json", sanitized(h.Backend), h.Seed))
	err := os.MkdirAll(*outFlag, 0o755)
	if err == nil {
		err = h.Save(path)
	}
	for _, f := range v.Violations {
		if f.N != 0 {
			err = errors.Join(err, chaos.Shrink(h, f).Save(path[:len(path)-len(".json")]+"-small.json"))
			break
		}
	}
	if err != nil {
		return err.Error()
	}
	return path
}
