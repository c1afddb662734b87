package conformance

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

// Invariant 13: the accounting stays right with concurrent clients.
var clientChecks = []Check{
	{
		Name: "batches-at-once", Invariant: 13,
		Rule: "When several clients push and settle batches at the same time, no message is lost and none is handed out twice.",
		run:  batchesAtOnce,
	},
	{
		Name: "clients-at-once", Invariant: 13, needs: []backend.Feature{backend.CountingAttempts, backend.ExactAttempts, backend.SingleCopy},
		Rule: "Clients that push, receive, settle, peek, cancel and reschedule at the same time find each message whole, in the state and at the attempt that its own history implies.",
		run:  clientsAtOnce,
	},
	{
		Name: "open-at-once", Invariant: 13,
		Rule: "Handles that are opened at the same time on a new queue are handles on one queue.",
		run:  openAtOnce,
	},
}

// batchesAtOnce has pushers wait for one another before each batch, so that the batches meet.
func batchesAtOnce(t *testRun) {
	const clients = 4
	rounds, size := t.scaled(8, 60), t.scaled(12, 50)
	t.record()
	queues := t.clients(clients)
	var done atomic.Int64
	n := int64(clients * rounds * size)
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	work := spread(clients, func(i int) error {
		return t.workInBatches(ctx, queues[i], size/2, func(ds []backend.Delivery) error {
			if err := errors.Join(queues[i].Ack(t.ctx, each(ds, leaseOf))...); err != nil {
				return fmt.Errorf("acknowledging a batch of %d: %w", len(ds), err)
			}
			if done.Add(int64(len(ds))) == n {
				stop()
			}
			return nil
		})
	})
	meet := newBarrier(clients)
	push := spread(clients, func(i int) error {
		for range rounds {
			ms := make([]backend.Message, size)
			for j := range ms {
				ms[j] = t.after(0)
			}
			t.expect(ms...)
			meet.wait()
			if err := errors.Join(queues[i].Schedule(t.ctx, ms)...); err != nil {
				meet.leave()
				return fmt.Errorf("pushing a batch: %w", err)
			}
		}
		return nil
	})
	pushed := make(chan struct{})
	t.all(append(work, func() error {
		defer close(pushed)
		return atOnce(push...)
	}, func() error {
		<-pushed
		defer stop()
		return t.until(ctx, func() string { return fmt.Sprintf("%d of %d messages were acknowledged", done.Load(), n) })
	})...)
	t.nothing("all are done")
	t.judged("lost", "duplicated", "linearizable")
	if t.has(backend.CountingScheduled) {
		t.empty()
	}
}

// clients are handles on the queue, of two clients in turn.
func (t *testRun) clients(n int) []backend.Queue {
	other := t.attach()
	qs := []backend.Queue{t.q}
	for len(qs) < n {
		q, err := t.openOn([]backend.Backend{t.b, other}[len(qs)%2], t.name())
		t.must(err, "opening a further handle")
		qs = append(qs, q)
	}
	return qs
}

// until waits for the end of ctx while time passes. It fails with the progress when that takes too
// long.
func (t *testRun) until(ctx context.Context, progress func() string) error {
	deadline := time.Now().Add(2 * t.Patience)
	for ctx.Err() == nil {
		if time.Now().After(deadline) {
			return fmt.Errorf("after %v: %s", 2*t.Patience, progress())
		}
		if t.fake != nil {
			t.pass(max(t.lag(), 1)) // no lease may end behind a worker's back
		}
		time.Sleep(time.Millisecond) // polling: the deadline above decides
	}
	return nil
}

// workInBatches takes and handles messages until ctx ends or one fails.
func (t *testRun) workInBatches(ctx context.Context, q backend.Queue, limit int, handle func([]backend.Delivery) error) error {
	for {
		ds, err := q.Receive(ctx, limit, backend.MaxLease)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the check has ended the context: its work is done
		default:
			return fmt.Errorf("receiving: %w", err)
		}
		for _, d := range ds {
			if err := t.taken(d); err != nil {
				return err
			}
		}
		if err := handle(ds); err != nil {
			return err
		}
	}
}

func openAtOnce(t *testRun) {
	const handles = 4
	for round := range t.scaled(2, 200) {
		name := fmt.Sprintf("%s.%d", t.name(), round)
		ms := make([]backend.Message, handles)
		for i := range ms {
			ms[i] = t.after(0)
		}
		t.expect(ms...)
		queues := make([]backend.Queue, handles)
		meet := newBarrier(handles)
		t.all(spread(handles, func(i int) error {
			meet.wait()
			q, err := t.b.Open(t.ctx, name, t.options())
			if err != nil {
				return fmt.Errorf("opening a queue: %w", err)
			}
			queues[i] = t.named(q, name)
			return nil
		})...)
		for i, q := range queues {
			t.must(outcome(q.Schedule(t.ctx, ms[i:i+1])), "scheduling on handle %d", i)
		}
		for range ms {
			ds, err := t.receive(queues[0], 1, t.lease())
			t.must(err, "taking on one handle what was pushed on all")
			t.ackOn(queues[0], ds...)
		}
		for _, q := range queues {
			t.must(q.Close(), "Close")
		}
	}
}

// A barrier lets goroutines go on together.
type barrier struct {
	mu      sync.Mutex
	cond    *sync.Cond
	n, here int
	round   int
}

func newBarrier(n int) *barrier {
	b := &barrier{n: n}
	b.cond = sync.NewCond(&b.mu)
	return b
}

func (b *barrier) wait() {
	b.mu.Lock()
	defer b.mu.Unlock()
	round := b.round
	b.here++
	b.openIfAll()
	for b.round == round {
		b.cond.Wait()
	}
}

// leave has the others go on without the caller.
func (b *barrier) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n--
	b.openIfAll()
}

func (b *barrier) openIfAll() {
	if b.here >= b.n {
		b.here, b.round = 0, b.round+1
		b.cond.Broadcast()
	}
}

// A plan has a step for each delivery of a message. It follows from the id, so that every worker
// knows it.
type plan []step

type step int

const (
	ackIt step = iota
	nackIt
	nackItLater
	returnIt
	extendIt // and acknowledge
	redriveIt
	deleteIt
	cancelIt // while it waits for its next hand-out
	moveIt
)

func (c *planned) planOf(id string) plan {
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	dice := rand.New(rand.NewPCG(h.Sum64(), 0))
	middle, last := []step{nackIt, nackItLater, returnIt, nackIt}, []step{ackIt, extendIt, ackIt}
	if c.has(backend.Rescheduling) {
		middle = append(middle, moveIt)
	}
	if c.has(backend.Redriving) {
		middle, last = append(middle, redriveIt), append(last, deleteIt)
	}
	if c.has(backend.Cancelling) {
		last = append(last, cancelIt)
	}
	var l plan
	for range dice.IntN(4) {
		l = append(l, middle[dice.IntN(len(middle))])
	}
	return append(l, last[dice.IntN(len(last))])
}

// planned is the state that the clients of the check share.
type planned struct {
	*testRun
	mu       sync.Mutex
	messages map[string]*progress
	n        int64

	begun, stored, ending, ended atomic.Int64 // messages
}

// progress of a message. The worker that holds the lease alone reads and writes it.
type progress struct {
	at       int // steps done
	attempts int // counted
}

func clientsAtOnce(t *testRun) {
	const clients = 4
	each, size := t.scaled(40, 500), 5
	c := &planned{testRun: t, messages: make(map[string]*progress), n: int64(clients * each)}
	queues := t.clients(clients)
	ctx, stop := context.WithCancel(t.ctx)
	defer stop()
	push := spread(clients, func(i int) error {
		for range each / size {
			ms := make([]backend.Message, size)
			for j := range ms {
				ms[j] = t.after(0)
			}
			c.begin(ms)
			if err := errors.Join(queues[i].Schedule(t.ctx, ms)...); err != nil {
				return fmt.Errorf("pushing a batch: %w", err)
			}
			c.stored.Add(int64(len(ms)))
		}
		return nil
	})
	work := spread(clients, func(i int) error {
		return c.work(ctx, queues[i], func(d backend.Delivery) error {
			err := c.stepOn(queues[i], d)
			if c.ended.Load() == c.n {
				stop()
			}
			return err
		})
	})
	look := spread(2, func(i int) error { return c.lookOn(ctx, queues[i]) })
	t.all(append(append(append(push, work...), look...), func() error {
		defer stop()
		return t.until(ctx, func() string { return fmt.Sprintf("%d of %d messages have ended", c.ended.Load(), c.n) })
	})...)
	t.nothing("all have ended")
	t.empty()
}

func (c *planned) begin(ms []backend.Message) {
	c.expect(ms...)
	c.begun.Add(int64(len(ms)))
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range ms {
		c.messages[m.ID] = new(progress)
	}
}

func (c *planned) progressOf(id string) *progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.messages[id]
}

// stepOn does the next step of a message.
func (c *planned) stepOn(q backend.Queue, d backend.Delivery) error {
	p := c.progressOf(d.ID)
	p.attempts++
	if d.Attempt != p.attempts {
		return fmt.Errorf("message %s was handed out at attempt %d; it is number %d", d.ID, d.Attempt, p.attempts)
	}
	next := c.planOf(d.ID)[p.at]
	p.at++
	last := next == ackIt || next == extendIt || next == deleteIt || next == cancelIt
	if last {
		c.ending.Add(1)
	}
	err := c.do(q, d, next, p)
	if last {
		c.expectNoMore(d.ID, "ended")
		c.ended.Add(1)
	}
	if err != nil {
		return fmt.Errorf("step %d of message %s: %w", next, d.ID, err)
	}
	return nil
}

func (c *planned) do(q backend.Queue, d backend.Delivery, next step, p *progress) error {
	ls, ids := []backend.Lease{d.Lease()}, []string{d.ID}
	back := func(r backend.Return) error {
		r.Lease = ls[0]
		return outcome(q.Nack(c.ctx, []backend.Return{r}))
	}
	switch next {
	case nackIt:
		return back(backend.Return{})
	case nackItLater:
		return back(backend.Return{Delay: time.Duration(p.at)})
	case returnIt:
		p.attempts--
		return back(backend.Return{Untouched: true})
	case moveIt:
		return errors.Join(back(backend.Return{Delay: 1000 * c.Tick}),
			outcome(q.Reschedule(c.ctx, []backend.Move{{ID: d.ID, Delay: 0}})))
	case cancelIt:
		return errors.Join(back(backend.Return{Delay: 1000 * c.Tick}), outcome(q.Cancel(c.ctx, ids)))
	case redriveIt, deleteIt:
		p.attempts = 0
		return errors.Join(outcome(q.Dead(c.ctx, []backend.DeadLetterRequest{{Lease: ls[0], Reason: "of the check"}})), c.letGo(q, d.ID, next))
	case extendIt:
		_, errs := q.Extend(c.ctx, ls, backend.MaxLease)
		return errors.Join(outcome(errs), outcome(q.Ack(c.ctx, ls)))
	default:
		return outcome(q.Ack(c.ctx, ls))
	}
}

func (c *planned) letGo(q backend.Queue, id string, next step) error {
	if next == deleteIt {
		return outcome(q.DeleteDead(c.ctx, []string{id}))
	}
	return outcome(q.Redrive(c.ctx, []string{id}))
}

// lookOn reads stats and lists, and opens and closes handles, while others work.
func (c *planned) lookOn(ctx context.Context, q backend.Queue) error {
	for ctx.Err() == nil {
		if err := errors.Join(c.lookOnce(q), c.openAndClose()); err != nil {
			return err
		}
		time.Sleep(c.Quiet / 10)
	}
	return nil
}

func (c *planned) lookOnce(q backend.Queue) error {
	if c.has(backend.CountingScheduled) {
		stored, ended := c.stored.Load(), c.ended.Load()
		s, err := q.Stats(c.ctx)
		if err != nil {
			return fmt.Errorf("reading Stats: %w", err)
		}
		least, most := stored-c.ending.Load(), c.begun.Load()-ended
		if all := s.Scheduled + s.Ready + s.InFlight + s.Dead; all < least || all > most || min(s.Scheduled, s.Ready, s.InFlight, s.Dead) < 0 {
			return fmt.Errorf("counts are %s; there are %d to %d messages", countsOf(s), least, most)
		}
	}
	if c.has(backend.Peeking) {
		page, _, err := q.Peek(c.ctx, "", 20)
		if err != nil {
			return fmt.Errorf("Peek: %w", err)
		}
		for _, shown := range page {
			if err := c.isOurs(shown.ID, shown.Body, shown.Headers); err != nil {
				return err
			}
		}
		if err := c.getOnce(q, page); err != nil {
			return err
		}
	}
	if c.has(backend.Redriving) {
		ls, _, err := q.ListDead(c.ctx, "", 20)
		if err != nil {
			return fmt.Errorf("ListDead: %w", err)
		}
		for _, l := range ls {
			if err := c.isOurs(l.ID, l.Body, l.Headers); err != nil {
				return err
			}
		}
	}
	if c.inProcess() && c.Leftovers != nil {
		_, err := c.Leftovers(c.ctx, c.b)
		return err
	}
	return nil
}

// getOnce gets messages that were listed, each of which may be in any state by now, or gone.
func (c *planned) getOnce(q backend.Queue, listed []backend.MessageInfo) error {
	if !c.has(backend.Getting) {
		return nil
	}
	ms, errs := q.Get(c.ctx, each(listed, func(m backend.MessageInfo) string { return m.ID }))
	for i, m := range ms {
		err := at(errs, i)
		if err == nil && m.State != backend.StateDone {
			err = c.isOurs(m.ID, m.Body, m.Headers)
		}
		if err != nil && !errors.Is(err, backend.ErrNotFound) {
			return fmt.Errorf("Get: %w", err)
		}
	}
	return nil
}

func (c *planned) isOurs(id string, body []byte, headers map[string]string) error {
	c.testRun.mu.Lock()
	e := c.pushed[id]
	c.testRun.mu.Unlock()
	if e == nil {
		return fmt.Errorf("message %q is shown, and was never pushed", id)
	}
	return sameContent(backend.Delivery{ID: id, Body: body, Headers: headers}, e.Message)
}

func (c *planned) openAndClose() error {
	if !c.inProcess() {
		return nil
	}
	q, err := c.b.Open(c.ctx, c.name(), c.options())
	if err != nil {
		return fmt.Errorf("opening a handle: %w", err)
	}
	return q.Close()
}
