package guard_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/internal/guard"
)

func TestCallReturnsAPanicAsError(t *testing.T) {
	t.Parallel()
	if err := guard.Call("code", func() {}); err != nil {
		t.Errorf("error %v without a panic", err)
	}
	err := guard.Call("code", func() { panic("oops") })
	if err == nil || !strings.HasPrefix(err.Error(), "code panicked: oops\n") || !strings.Contains(err.Error(), "guard_test.go") {
		t.Errorf("error %v, want the name, the value and the stack", err)
	}
}

// panicsWithItself cannot be printed, nor can the value that it panics with.
type panicsWithItself struct{}

func (e panicsWithItself) Error() string { panic(e) }

func TestSprint(t *testing.T) {
	t.Parallel()
	for value, want := range map[any]string{
		"text":                    "text",
		17:                        "17",
		error(panicsWithItself{}): "a guard_test.panicsWithItself that cannot be printed",
	} {
		if got := guard.Sprint(value); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLogRecovers(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	log := slog.New(slog.NewTextHandler(&buf, nil))
	func() { defer guard.Log(log, "meter") }()
	if buf.Len() > 0 {
		t.Errorf("logged %q without a panic", &buf)
	}
	func() {
		defer guard.Log(log, "meter")
		panic("oops")
	}()
	if got := buf.String(); !strings.Contains(got, "meter panicked") || !strings.Contains(got, "panic=oops") {
		t.Errorf("logged %q", got)
	}
}

// brokenClock panics while broken.
type brokenClock struct {
	*clockwork.FakeClock
	broken *bool
}

func (c brokenClock) check() {
	if *c.broken {
		panic("oops")
	}
}

func (c brokenClock) Now() time.Time { c.check(); return c.FakeClock.Now() }

func (c brokenClock) NewTimer(d time.Duration) clockwork.Timer {
	c.check()
	return c.FakeClock.NewTimer(d)
}

func TestClockThatPanicsStandsStill(t *testing.T) {
	t.Parallel()
	broken := false
	fake := clockwork.NewFakeClock()
	c := guard.Clock(brokenClock{fake, &broken})
	fake.Advance(time.Hour)
	shown := c.Now()
	if !shown.Equal(fake.Now()) {
		t.Errorf("the clock shows %v, want %v", shown, fake.Now())
	}
	broken = true
	fake.Advance(time.Hour)
	if now := c.Now(); !now.Equal(shown) {
		t.Errorf("a broken clock shows %v, want its last time %v", now, shown)
	}
	if d := c.Since(shown); d != 0 {
		t.Errorf("since the last time: %v, want 0", d)
	}
	<-c.NewTimer(time.Millisecond).Chan() // by the process's clock: the fake one stands still
	broken = false
	if now := c.Now(); !now.Equal(fake.Now()) {
		t.Errorf("a repaired clock shows %v, want %v", now, fake.Now())
	}
	if own := c.(interface{ Unwrap() clockwork.Clock }).Unwrap(); own != (brokenClock{fake, &broken}) {
		t.Errorf("Unwrap returns %v", own)
	}
}

// brokenLog panics in every method.
type brokenLog struct{}

func (brokenLog) Enabled(context.Context, slog.Level) bool  { panic("oops") }
func (brokenLog) Handle(context.Context, slog.Record) error { panic("oops") }
func (brokenLog) WithAttrs([]slog.Attr) slog.Handler        { panic("oops") }
func (brokenLog) WithGroup(string) slog.Handler             { panic("oops") }

func TestLoggerThatPanicsDropsRecords(t *testing.T) {
	t.Parallel()
	h := guard.Logger(slog.New(brokenLog{})).Handler()
	if h.Enabled(t.Context(), slog.LevelError) {
		t.Error("a handler that cannot tell is enabled")
	}
	if err := h.Handle(t.Context(), slog.Record{}); err != nil {
		t.Error(err)
	}
	for _, with := range []slog.Handler{h.WithAttrs(nil), h.WithGroup("group")} {
		if err := with.Handle(t.Context(), slog.Record{}); err != nil {
			t.Error(err)
		}
	}
}

func TestLoggerPassesOn(t *testing.T) {
	t.Parallel()
	var buf bytes.Buffer
	log := guard.Logger(slog.New(slog.NewTextHandler(&buf, nil)))
	log.With("queue", "orders").WithGroup("g").Info("hello", "err", errors.New("oops"))
	if got := buf.String(); !strings.Contains(got, "hello queue=orders g.err=oops") {
		t.Errorf("logged %q", got)
	}
}
