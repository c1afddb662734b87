package demo

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestDurationsAsText(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		20 * time.Millisecond:      "0.02s",
		90 * time.Second:           "1m 30s",
		25*time.Hour + time.Minute: "1d 01h",
		5 * time.Hour:              "5h 00m",
	} {
		if got := storyTime(d); got != want {
			t.Errorf("story time of %v: got %s, want %s", d, got, want)
		}
	}
}

func TestColorsOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	for _, color := range []bool{false, true} {
		var out bytes.Buffer
		n := newNarrator(&out, color)
		n.heading("scene", "(fast)")
		n.event(good, time.Minute, "m", "done")
		n.broken("m", "lost")
		n.summary(summary{lost: 1})
		if got := strings.Contains(out.String(), "\x1b["); got != color {
			t.Errorf("color %v: escapes %v in %q", color, got, out.String())
		}
	}
}

func TestFailureToWriteIsKept(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	n := newNarrator(failingWriter{full}, false)
	n.plain("a")
	n.plain("b")
	if err := n.failure(); !errors.Is(err, full) {
		t.Errorf("got %v, want %v", err, full)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestLateness(t *testing.T) {
	t.Parallel()
	var l lateness
	if p50, p99, worst := l.quantiles(); p50 != nil || p99 != nil || worst != nil {
		t.Error("quantiles of nothing")
	}
	for i := range 1000 {
		l = append(l, time.Duration(1000-i)*time.Millisecond)
	}
	p50, p99, worst := l.quantiles()
	if *p50 != 500*time.Millisecond || *p99 != 990*time.Millisecond || *worst != time.Second {
		t.Errorf("got %v, %v and %v", *p50, *p99, *worst)
	}
}

func TestScalingSaturates(t *testing.T) {
	t.Parallel()
	const most = time.Duration(1<<63 - 1)
	if got := stretched(time.Hour, 1e12); got != most {
		t.Errorf("stretched: got %v, want %v", got, most)
	}
	if got := shrunk(-time.Hour, 1e-12); got != -most-1 {
		t.Errorf("shrunk: got %v, want %v", got, -most-1)
	}
}
