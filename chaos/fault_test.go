package chaos_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/judge"
)

// A fault can be switched on and off. off tells what it did, in a unit of its own: 0 is a fault that did not strike.
type fault struct {
	chaos.Kind
	window judge.Window  // what it breaks and undoes
	breaks time.Duration // it breaks something when it lasts for longer than this; 0 for what window says
	on     func(t *testing.T, dice *rand.Rand)
	off    func(t *testing.T) int
}

// director puts a plan into effect. Only the test's goroutine may use it.
type director struct {
	t       *testing.T
	faults  map[string]*fault
	began   time.Time
	windows []judge.Window
	running map[string]time.Time
}

func newDirector(t *testing.T, faults []*fault) *director {
	t.Helper()
	d := &director{t: t, faults: make(map[string]*fault), began: time.Now(), running: make(map[string]time.Time)}
	for _, f := range faults {
		d.faults[f.Name] = f
	}
	return d
}

func kindsOf(faults []*fault) []chaos.Kind {
	kinds := make([]chaos.Kind, len(faults))
	for i, f := range faults {
		kinds[i] = f.Kind
	}
	return kinds
}

// play strikes as planned until the plan's time is over, and heals what still lasts.
func (d *director) play(ctx context.Context, p chaos.Plan) {
	d.t.Helper()
	strikes, end := p.Strikes, d.began.Add(p.For)
	for ctx.Err() == nil {
		next := end
		if len(strikes) > 0 && d.began.Add(strikes[0].At).Before(next) {
			next = d.began.Add(strikes[0].At)
		}
		if kind, at := d.firstEnd(); kind != "" && at.Before(next) {
			sleepUntil(ctx, at)
			d.heal(kind)
			continue
		}
		sleepUntil(ctx, next)
		if len(strikes) == 0 || !time.Now().Before(end) {
			break
		}
		// What took longer than planned puts off all that follows: faults that are planned apart stay apart.
		d.began = d.began.Add(max(time.Since(d.began.Add(strikes[0].At)), 0))
		d.strike(strikes[0])
		strikes = strikes[1:]
	}
	for kind := range d.running {
		d.heal(kind)
	}
}

func (d *director) firstEnd() (kind string, at time.Time) {
	for k, end := range d.running {
		if kind == "" || end.Before(at) {
			kind, at = k, end
		}
	}
	return kind, at
}

func sleepUntil(ctx context.Context, at time.Time) {
	select {
	case <-time.After(time.Until(at)):
	case <-ctx.Done():
	}
}

func (d *director) strike(s chaos.Strike) {
	d.t.Helper()
	if _, on := d.running[s.Kind]; on {
		return
	}
	f := d.faults[s.Kind]
	f.window.Start = time.Now().UnixNano()
	f.on(d.t, rand.New(rand.NewPCG(s.Dice, 0)))
	if s.For == 0 {
		d.heal(s.Kind)
		return
	}
	d.running[s.Kind] = time.Now().Add(s.For)
	d.began = d.began.Add(max(time.Since(d.began.Add(s.At)), 0))
}

func (d *director) heal(kind string) {
	d.t.Helper()
	delete(d.running, kind)
	f := d.faults[kind]
	w := f.window
	w.Kind, w.Effect = kind, f.off(d.t)
	w.End = time.Now().UnixNano()
	w.Breaks = w.Breaks || f.breaks > 0 && w.End-w.Start > int64(f.breaks)
	d.windows = append(d.windows, w)
	if w.Effect == 0 {
		d.t.Logf("%s had no effect", kind)
	}
}

// poll asks until a condition holds, and reports whether it did in time.
func poll(within time.Duration, holds func() bool) bool {
	for end := time.Now().Add(within); !holds(); {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(5 * time.Millisecond) // what ends the wait is the condition
	}
	return true
}
