package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/delayq/delayq"
)

// A stage is a queue with a bad handler, and its log, metrics and dead letters.
type stage struct {
	*watcher
	queue delayq.Queue
	log   journal
	block []string // of docs/observability.md, to compare with
}

func (s *stage) open(t *testing.T, opts ...delayq.Option) {
	s.queue = newQueue(t, append(opts, s.log.Logger(), s.metrics(), s.traces())...)
	push(t, s.queue, delayq.ID("17"))
}

// newRelease returns a channel that a hanging handler waits for.
func newRelease() (released chan struct{}, release func()) {
	released = make(chan struct{})
	return released, sync.OnceFunc(func() { close(released) })
}

var errNoOrder = errors.New("no such order")

// badHandlers are the sections of docs/observability.md.
var badHandlers = map[string]func(*testing.T, *stage){
	"A handler hangs": func(t *testing.T, s *stage) {
		s.open(t)
		r := start(t, s.queue, func(ctx context.Context, _ *delayq.Delivery) error {
			<-ctx.Done()
			return ctx.Err()
		}, delayq.Timeout(time.Minute), delayq.MaxAttempts(2), every(time.Minute))
		time.Sleep(time.Hour)
		s.compare(t)
		must(t, r.end())
	},
	"A handler hangs without a Timeout": func(t *testing.T, s *stage) {
		s.open(t)
		push(t, s.queue)
		released, release := newRelease()
		defer release()
		r := start(t, s.queue, func(context.Context, *delayq.Delivery) error {
			<-released
			return nil
		})
		time.Sleep(time.Hour)
		s.compare(t)
		release()
		must(t, r.end())
	},
	"A handler panics": func(t *testing.T, s *stage) {
		s.open(t)
		r := start(t, s.queue, func(context.Context, *delayq.Delivery) error { panic(errNoOrder) },
			delayq.MaxAttempts(2), every(time.Minute))
		time.Sleep(time.Hour)
		s.compare(t)
		must(t, r.end())
	},
	"A handler ignores its context": func(t *testing.T, s *stage) {
		s.open(t)
		released, release := newRelease()
		defer release()
		r := start(t, s.queue, func(context.Context, *delayq.Delivery) error {
			<-released
			return nil
		}, delayq.Timeout(time.Minute), delayq.MaxAttempts(2), delayq.Workers(3))
		time.Sleep(time.Hour)
		wantIs(t, r.end(), delayq.ErrDrain)
		s.compare(t)
		release()
		synctest.Wait()
	},
	"A handler outlives its lease": func(t *testing.T, s *stage) {
		began := time.Now()
		away := newSeam()
		away.before = func(_ context.Context, op string) error {
			if op == "extend" && time.Since(began) <= 30*time.Second {
				return errors.New("the store is away")
			}
			return nil
		}
		s.open(t, away.option())
		r := start(t, s.queue, func(_ context.Context, d *delayq.Delivery) error {
			if d.Attempt == 1 {
				time.Sleep(time.Minute)
			}
			return nil
		})
		time.Sleep(time.Hour)
		s.compare(t)
		must(t, r.end())
	},
}

// The blocks of docs/observability.md on handlers that go wrong are what a user sees, no more and
// no less.
func TestBadHandlersAreSeen(t *testing.T) {
	t.Parallel()
	sections := documented(t)
	if len(sections) != len(badHandlers) {
		t.Errorf("docs/observability.md has %d sections of bad handlers, want %d", len(sections), len(badHandlers))
	}
	for title, play := range badHandlers {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				play(t, &stage{watcher: newWatcher(), block: sections[title]})
			})
		})
	}
}

func observability(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("docs/observability.md")
	must(t, err)
	return string(page)
}

// documented returns the lines of the block in each section of bad handlers.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	blocks := make(map[string][]string)
	for _, section := range strings.Split(observability(t), "\n### ")[1:] {
		title, rest, _ := strings.Cut(section, "\n")
		parts := strings.Split(rest, "```\n")
		if len(parts) != 3 {
			t.Fatalf("section %q has %d parts, want text, a block, text", title, len(parts))
		}
		blocks[title] = strings.Split(strings.TrimSuffix(parts[1], "\n"), "\n")
	}
	return blocks
}

// compare compares the stage's output with the block.
func (s *stage) compare(t *testing.T) {
	t.Helper()
	var logged, dead, measured []string
	for _, line := range s.block {
		switch {
		case strings.HasPrefix(line, "level="):
			logged = append(logged, line)
		case strings.HasPrefix(line, "dead letter: "):
			dead = append(dead, line)
		default:
			measured = append(measured, line)
		}
	}
	s.compareLog(t, logged)
	s.compareDead(t, dead)
	s.compareMetrics(t, measured)
}

// shows reports whether a line begins as documented, or is that.
func shows(line, documented string) bool {
	begin, more := strings.CutSuffix(documented, "…")
	return line == documented || more && strings.HasPrefix(line, begin)
}

var logMessage = regexp.MustCompile(`msg="[^"]*"`)

// compareLog wants each documented line, and no others but such as repeat one with other values.
func (s *stage) compareLog(t *testing.T, want []string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(s.log.String(), "\n"), "\n")
	messages := strings.Join(want, "\n")
	seen := make(map[string]bool)
	for _, line := range lines {
		_, line, _ = strings.Cut(line, " ") // the time
		for _, w := range want {
			seen[w] = seen[w] || shows(line, w)
		}
		if !strings.Contains(messages, logMessage.FindString(line)) {
			t.Errorf("the log has a line that is not documented: %s", line)
		}
	}
	for _, w := range want {
		if !seen[w] {
			t.Errorf("the log lacks\n%s\nin\n%s", w, s.log.String())
		}
	}
}

func (s *stage) compareDead(t *testing.T, want []string) {
	t.Helper()
	letters := deadLetters(t, s.queue)
	if len(letters) != len(want) {
		t.Fatalf("%d dead letters %+v, want %d", len(letters), letters, len(want))
	}
	for i, l := range letters {
		if line := fmt.Sprintf("dead letter: attempts=%d reason=%q", l.Attempts, l.Reason); !shows(line, want[i]) {
			t.Errorf("got  %s\nwant %s", line, want[i])
		}
	}
}

var metricLine = regexp.MustCompile(`^([a-z_.]+)(?:\{([a-z_.]+)="([a-z_]+)"\})? (\d+)$`)

// compareMetrics wants the values, and all failures among them.
func (s *stage) compareMetrics(t *testing.T, want []string) {
	t.Helper()
	failures := 0.0
	for _, line := range want {
		parts := metricLine.FindStringSubmatch(line)
		if parts == nil {
			t.Fatalf("line %q is no metric", line)
		}
		value, err := strconv.ParseFloat(parts[4], 64)
		must(t, err)
		var with []attribute.KeyValue
		if parts[2] != "" {
			with = append(with, attribute.String(parts[2], parts[3]))
		}
		s.wantTotal(t, value, parts[1], with...)
		if parts[1] == "delayq.failures" {
			failures += value
		}
	}
	s.wantTotal(t, failures, "delayq.failures")
}
