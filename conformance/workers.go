package conformance

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/judge"
)

// Invariant 11: workers do not delay each other.
var workerChecks = []Check{
	{
		Name: "stuck-handler", Invariant: 11,
		Rule: "A handler that hangs delays no other worker, and its lease is renewed: no other worker gets its message.",
		run:  stuckHandler,
	},
	{
		Name: "consume", Invariant: 11,
		Rule: "Consume hands each message to a handler when it is due, acknowledges it when the handler succeeds and retries it until then.",
		run:  consume,
	},
}

func stuckHandler(t *testRun) {
	stuck := t.pushAfter(0)
	lease := 3 * (t.Tick + t.noise()/3)
	q := t.portable(delayq.WithLease(lease))
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	started, stuckOn := make(chan *delayq.Delivery, 1), make(chan struct{})
	release := sync.OnceFunc(func() { close(stuckOn) })
	defer release() // also when the check ends here: Close waits for handlers
	var runs atomic.Int64
	var others bodies
	ended := make(chan error, 1)
	go func() {
		ended <- q.Consume(ctx, func(_ context.Context, d *delayq.Delivery) error {
			if string(d.Body) != "body of "+stuck {
				others.add(d)
				return nil
			}
			if runs.Add(1) == 1 {
				started <- d
				<-stuckOn
			}
			return nil
		}, delayq.Workers(2))
	}()
	d := t.wait(started)
	t.pushWhileStuck(d, &others)
	release()
	stop()
	t.stopped(ended)
	t.handledTimes(runs.Load(), 1)
	t.pass(lease + t.lag())
	t.handled()
	t.nothing("all are done")
}

// bodies are those of the messages that were handled. One that comes twice counts once: virtual time may
// pass while its ack is on its way. They are safe for concurrent use.
type bodies struct{ seen sync.Map }

func (b *bodies) add(d *delayq.Delivery) { b.seen.Store(string(d.Body), true) }

func (b *bodies) len() (n int) {
	b.seen.Range(func(any, any) bool { n++; return true })
	return n
}

// pushWhileStuck has the other worker handle messages while the lease of d is renewed several
// times.
func (t *testRun) pushWhileStuck(d *delayq.Delivery, handled *bodies) {
	for n := range 5 {
		t.outlive(d)
		t.pushAfter(0)
		t.grace()
		t.eventually(0, "the handling of another message", func() bool { return handled.len() == n+1 })
	}
	t.nothing("its handler runs, and the other messages are done")
}

func (t *testRun) wait(started <-chan *delayq.Delivery) *delayq.Delivery {
	select {
	case d := <-started:
		return d
	case <-time.After(t.Patience):
		t.fail("no handler was called within %v", t.Patience)
		return nil
	}
}

// outlive lets a third of a lease pass and waits for its renewal.
func (t *testRun) outlive(d *delayq.Delivery) {
	before := d.LeaseUntil()
	if t.fake != nil {
		t.pass(t.Tick)
	}
	t.eventually(0, "the renewal of a lease", func() bool { return d.LeaseUntil().After(before) })
}

func consume(t *testRun) {
	const n = 30
	for i := range n {
		t.pushAfter(time.Duration(i%3) * t.Tick)
	}
	var done atomic.Int64
	var early atomic.Pointer[string]
	var mu sync.Mutex
	seen := make(map[string]int) // calls of the handler, by body
	t.consume(func(_ context.Context, d *delayq.Delivery) error {
		mu.Lock()
		seen[string(d.Body)]++
		last, times := d.Body[len(d.Body)-1], seen[string(d.Body)]
		mu.Unlock()
		early.CompareAndSwap(nil, t.early(d))
		if last%2 == 0 && times == 1 || last == '7' && times < 3 {
			return errPoison
		}
		done.Add(1)
		return nil
	}, func() bool { return done.Load() == n }, delayq.Workers(5), delayq.Retry(t.backoff()))
	if detail := early.Load(); detail != nil {
		t.fail("%s", *detail)
	}
	t.handled()
	t.nothing("all are done")
}

// early describes a message that a handler got before it was due; nil for none.
func (t *testRun) early(d *delayq.Delivery) *string {
	now, name := t.now(), t.nameOf(d.ID, d.Body)
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.pushed[name]
	if e == nil || judge.Late(e.notBefore, now) >= 0 {
		return nil
	}
	detail := fmt.Sprintf("message %s was handed out %v early", name, -judge.Late(e.notBefore, now))
	return &detail
}

// handled notes that handlers have finished all messages.
func (t *testRun) handled() {
	for id := range t.pushed {
		t.expectNoMore(id, "handled")
	}
}
