package chaos

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/judge"
)

// A fault is injected by strike, which returns the end of it. heal reports the effect, in a unit of
// the fault's own; 0 means that the fault changed nothing.
type fault struct {
	Kind
	window judge.Window // what it breaks and undoes

	// resends is how long it may last before the store sends again what it had under way; 0: for
	// any time.
	resends time.Duration

	strike func(*injection) (heal func() int)
}

// lasting returns a fault of some length on average.
func lasting(name string, weight int, length time.Duration, w judge.Window, strike func(*injection) (heal func() int)) *fault {
	return &fault{Kind: Kind{Name: name, Weight: weight, For: length}, window: w, strike: strike}
}

// instant returns a fault that is over when strike returns its effect.
func instant(name string, weight int, w judge.Window, strike func(*injection) int) *fault {
	return lasting(name, weight, 0, w, func(i *injection) func() int {
		effect := strike(i)
		return func() int { return effect }
	})
}

// alone keeps other faults from striking meanwhile.
func (f *fault) alone() *fault {
	f.Alone = true
	return f
}

// injection is a fault that lasts.
type injection struct {
	*testing.T
	rng    *rand.Rand
	window judge.Window
	fault  *fault
	end    time.Time
	heal   func() int // ends the fault
}

// breaks is the window of a fault that takes replies, connections or workers away.
var breaks = judge.Window{Breaks: true}

// director puts a plan into effect. Only the test's goroutine may use it.
type director struct {
	t       *testing.T
	faults  []*fault
	began   time.Time
	windows []judge.Window
	running []*injection // by their ends
}

func newDirector(t *testing.T, faults []*fault) *director {
	t.Helper()
	return &director{t: t, faults: faults, began: time.Now()}
}

// play injects the faults of a plan until the plan's time is over, and ends those that still last.
func (d *director) play(ctx context.Context, p Plan) {
	d.t.Helper()
	end := d.began.Add(p.For)
	for _, s := range p.Strikes {
		at := d.began.Add(s.At)
		if !at.Before(end) {
			break
		}
		d.healUntil(ctx, at)
		if ctx.Err() != nil || !time.Now().Before(end) {
			break
		}
		d.delay(s.At)
		d.strike(s)
	}
	d.healUntil(ctx, end)
	for len(d.running) > 0 {
		d.healNext()
	}
}

// delay postpones all that follows a strike by the strike's delay: faults that are planned one after
// the other must not overlap.
func (d *director) delay(at time.Duration) {
	d.began = d.began.Add(max(time.Since(d.began.Add(at)), 0))
}

// healUntil ends the faults that end before a time, and returns at that time.
func (d *director) healUntil(ctx context.Context, at time.Time) {
	d.t.Helper()
	for len(d.running) > 0 && d.running[0].end.Before(at) {
		sleepUntil(ctx, d.running[0].end)
		d.healNext()
	}
	sleepUntil(ctx, at)
}

func sleepUntil(ctx context.Context, at time.Time) {
	select {
	case <-time.After(time.Until(at)):
	case <-ctx.Done():
	}
}

func (d *director) strike(s Strike) {
	d.t.Helper()
	if slices.ContainsFunc(d.running, func(i *injection) bool { return i.fault.Name == s.Kind }) {
		return
	}
	f := d.faults[slices.IndexFunc(d.faults, func(f *fault) bool { return f.Name == s.Kind })]
	i := &injection{T: d.t, rng: rand.New(rand.NewPCG(s.Seed, 0)), window: f.window, fault: f}
	i.window.Start = time.Now().UnixNano()
	i.heal = f.strike(i)
	if s.For == 0 {
		d.heal(i)
		return
	}
	i.end = time.Now().Add(s.For)
	d.running = append(d.running, i)
	slices.SortFunc(d.running, func(a, b *injection) int { return a.end.Compare(b.end) })
	d.delay(s.At)
}

func (d *director) healNext() {
	d.t.Helper()
	d.heal(d.running[0])
	d.running = d.running[1:]
}

func (d *director) heal(i *injection) {
	d.t.Helper()
	w := i.window
	w.Kind, w.Effect = i.fault.Name, i.heal()
	w.End = time.Now().UnixNano()
	if i.fault.resends > 0 && w.End-w.Start > int64(i.fault.resends) {
		w.Breaks, w.Resends = true, true
	}
	d.windows = append(d.windows, w)
	if w.Effect == 0 {
		d.t.Logf("%s had no effect", w.Kind)
	}
}

// poll returns when a condition holds, or reports false when it does not hold in time.
func poll(within time.Duration, holds func() bool) bool {
	for end := time.Now().Add(within); !holds(); {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(5 * time.Millisecond) // the condition ends the wait
	}
	return true
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
