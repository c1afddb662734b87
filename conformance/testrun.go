package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/judge"
)

// A testRun is a run of one check on one backend. It keeps the messages that were pushed and the
// times from which they may be handed out, and compares every delivery with them. Its methods end
// the check at the first violation.
type testRun struct {
	Harness
	check  Check
	whole  context.Context // of the caller
	ctx    context.Context // whole, for checkTime at most
	cancel context.CancelFunc
	fake   *clockwork.FakeClock // nil in real time

	b       backend.Backend
	q       backend.Queue
	traits  backend.Traits
	cleanup []func() error

	mu     sync.Mutex
	ids    int
	pushed map[string]*expectation
	names  map[string]*names // by queue; none where the store keeps the caller's ids

	log   *judge.Log        // nil where calls are not recorded
	jumps []judge.ClockJump // of the fake clock
}

// expectation says when a message may be handed out, and with which content.
type expectation struct {
	backend.Message
	notBefore time.Time // a delivery before it is early
	over      string    // how the message ended, after which it may not be handed out; "" for not
}

// virtualStart is a multiple of every store's resolution, so that a message without a delay is due
// before the clock moves on.
var virtualStart = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// checkTime bounds one check, or one of many runs of operations in it.
const checkTime = 5 * time.Minute

func newTestRun(ctx context.Context, h Harness, c Check) (*testRun, error) {
	t := &testRun{Harness: h.withDefaults(), check: c, pushed: make(map[string]*expectation), names: make(map[string]*names)}
	t.whole, t.cancel = context.WithCancel(ctx)
	t.renew()
	if t.Virtual {
		t.fake = clockwork.NewFakeClockAt(virtualStart)
	}
	if err := t.open(); err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
}

// renew lets the check, or its next run of operations, have the whole checkTime.
func (t *testRun) renew() {
	end := t.cancel
	ctx, cancel := context.WithTimeout(t.whole, checkTime)
	t.ctx, t.cancel = ctx, func() { cancel(); end() }
}

func (t *testRun) open() error {
	b, cleanup, err := t.New(t.ctx)
	if err != nil {
		return fmt.Errorf("making a backend: %w", err)
	}
	t.cleanUp(b, cleanup)
	t.b, t.traits = b, b.Traits()
	t.q, err = t.openOn(b, t.name())
	return err
}

// has reports whether the backend claims the feature.
func (t *testRun) has(f backend.Feature) bool { return t.traits.Supports(f) }

// missing names the first feature that a check needs and the backend does not claim.
func (t *testRun) missing(c Check) string {
	for _, f := range c.needs {
		if !t.has(f) {
			return t.traits.Name + " does not claim " + f.String()
		}
	}
	if c.ordered && !t.has(backend.Ordering) && t.traits.Disorder == 0 {
		return t.traits.Name + " does not claim " + backend.Ordering.String()
	}
	if c.limited && t.Limited == nil {
		return t.traits.Name + " does not claim a limit of a queue"
	}
	if c.begins && t.Begin == nil {
		return "the harness of " + t.traits.Name + " begins no transactions"
	}
	if c.lister && !t.canList() {
		return t.traits.Name + " does not claim a list of queues"
	}
	return ""
}

// canList reports whether the backend lists queues, as its store is set up.
func (t *testRun) canList() bool {
	l, ok := t.b.(admin.Lister)
	if ok {
		_, err := l.Queues(t.ctx)
		ok = !errors.Is(err, backend.ErrUnsupported)
	}
	return ok
}

func (t *testRun) name() string { return t.Prefix + "conformance." + t.check.Name }

// openOn opens a queue that is closed when the run ends.
func (t *testRun) openOn(b backend.Backend, name string) (backend.Queue, error) {
	q, err := t.openAsIs(b, name)
	if err != nil {
		return nil, err
	}
	q = t.named(q, name)
	if t.log != nil {
		q = &recorded{q, t.log}
	}
	return q, nil
}

// openAsIs opens a queue that shows the store's own ids.
func (t *testRun) openAsIs(b backend.Backend, name string) (backend.Queue, error) {
	q, err := b.Open(t.ctx, name, t.options())
	if err != nil {
		return nil, fmt.Errorf("opening queue %q: %w", name, err)
	}
	t.later(q.Close)
	return q, nil
}

func (t *testRun) options() backend.Options {
	o := backend.Options{Logger: slog.New(slog.DiscardHandler)}
	if t.fake != nil {
		o.Clock = t.fake
	}
	return o
}

// named returns a queue on which the checks' own names of messages are the ids.
func (t *testRun) named(q backend.Queue, queue string) backend.Queue {
	if t.has(backend.OwnIDs) {
		return q
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names[queue] == nil {
		t.names[queue] = newNames()
	}
	return &translator{Queue: q, names: t.names[queue]}
}

// nameOf returns the checks' name of a message that the library's queue handed out.
func (t *testRun) nameOf(id string, body []byte) string {
	t.mu.Lock()
	n := t.names[t.name()]
	t.mu.Unlock()
	if n != nil {
		return n.name(id, body)
	}
	return id
}

// cleanUp closes a backend when the run ends, and then runs its cleanup.
func (t *testRun) cleanUp(b backend.Backend, under func()) {
	if under != nil {
		t.later(func() error { under(); return nil })
	}
	t.later(b.Close)
}

// later runs f when the run ends, the last first.
func (t *testRun) later(f func() error) { t.cleanup = append(t.cleanup, f) }

func (t *testRun) close() error {
	var errs []error
	for i := len(t.cleanup) - 1; i >= 0; i-- {
		errs = append(errs, t.cleanup[i]())
	}
	t.cancel()
	return errors.Join(errs...)
}

// unsuited is the panic of a check that cannot run on this store.
type unsuited struct{ error }

// broken is the panic of a violation, which ends the check.
type broken struct{ detail string }

// attempt runs the check and returns the violation that it found.
func (t *testRun) attempt() (err error) {
	defer func() {
		switch v := recover().(type) {
		case nil:
		case broken:
			err = t.violation(v.detail)
		case unsuited:
			err = fmt.Errorf("%s: %w", t.check.Name, v.error)
		default:
			err = t.violation(fmt.Sprintf("panic: %v\n%s", v, debug.Stack()))
		}
	}()
	t.check.run(t)
	return nil
}

func (t *testRun) violation(detail string) error {
	return &Violation{Check: t.check.Name, Rule: t.check.Rule, Detail: detail}
}

// fail ends the check. Only the check's own goroutine may call it.
func (t *testRun) fail(format string, args ...any) { panic(broken{fmt.Sprintf(format, args...)}) }

// must fails on an error.
func (t *testRun) must(err error, doing string, args ...any) {
	if err != nil {
		t.fail("%s: %v", fmt.Sprintf(doing, args...), err)
	}
}

// want fails on another error than the wanted one.
func (t *testRun) want(err, wanted error, doing string, args ...any) {
	if !errors.Is(err, wanted) {
		t.fail("%s: got error %v; want %v", fmt.Sprintf(doing, args...), err, wanted)
	}
}

// all runs functions concurrently, and fails with their errors.
func (t *testRun) all(fs ...func() error) {
	if err := atOnce(fs...); err != nil {
		t.fail("%v", err)
	}
}

// atOnce runs functions concurrently, and returns their errors.
func atOnce(fs ...func() error) error {
	errs := make([]error, len(fs))
	var wg sync.WaitGroup
	for i, f := range fs {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// spread returns a function for each number up to n, for all.
func spread(n int, f func(i int) error) []func() error {
	fs := make([]func() error, n)
	for i := range fs {
		fs[i] = func() error { return f(i) }
	}
	return fs
}

// second opens the queue as another process would.
func (t *testRun) second() backend.Queue {
	q, err := t.openOn(t.attach(), t.name())
	t.must(err, "second client")
	return q
}

// attach returns a second client of the store, or the first one where there is no other.
func (t *testRun) attach() backend.Backend {
	if t.Attach == nil {
		return t.b
	}
	second, cleanup, err := t.Attach(t.ctx, t.b)
	t.must(err, "attaching a second client")
	t.cleanUp(second, cleanup)
	return second
}

// portable opens the library's queue on the backend.
func (t *testRun) portable(opts ...delayq.Option) delayq.Queue {
	q, err := t.tryPortable(t.name(), opts...)
	t.must(err, "delayq.New")
	return q
}

func (t *testRun) tryPortable(name string, opts ...delayq.Option) (delayq.Queue, error) {
	opts = append(opts, delayq.WithBackend(t.b), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	if t.fake != nil {
		opts = append(opts, delayq.WithClock(t.fake))
	}
	q, err := delayq.New(t.ctx, name, opts...)
	if err == nil {
		t.later(q.Close)
	}
	return q, err
}

func (t *testRun) stats() backend.Stats {
	s, err := t.q.Stats(t.ctx)
	t.must(err, "Stats")
	return s
}

// sameContent compares a delivery with the pushed message.
func sameContent(d backend.Delivery, m backend.Message) error {
	switch {
	case !bytes.Equal(d.Body, m.Body):
		return fmt.Errorf("message %s has another body: %s; want %s", d.ID, brief(d.Body), brief(m.Body))
	case !maps.Equal(withoutFirstPush(d.Headers), m.Headers):
		return fmt.Errorf("message %s has other headers: %q; want %q", d.ID, d.Headers, m.Headers)
	case d.Headers != nil && len(d.Headers) == 0:
		return fmt.Errorf("message %s has no headers, and they are empty; want nil", d.ID)
	}
	return nil
}

// withoutFirstPush returns headers without the one that a store adds to messages with MaxWait.
func withoutFirstPush(headers map[string]string) map[string]string {
	if backend.FirstPush(headers).IsZero() {
		return headers
	}
	headers = maps.Clone(headers)
	delete(headers, backend.FirstPushHeader)
	return headers
}

func brief(b []byte) string {
	if len(b) > 40 {
		return fmt.Sprintf("%q… (%d bytes)", b[:40], len(b))
	}
	return fmt.Sprintf("%q", b)
}
