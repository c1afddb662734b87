package main

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq"
)

// work is one run of "delayq consume".
type work struct {
	*consumeCommand
	q        delayq.Queue
	std      streams // safe for concurrent use
	stop     context.CancelFunc
	idle     *idleness
	left     atomic.Int64 // of --count
	failure  atomic.Pointer[error]
	printing sync.Mutex
	printed  atomic.Int64
	pipe     *pipe // nil where the output is something else
	commands commands
}

func newWork(c *consumeCommand, q delayq.Queue, std streams) *work {
	w := &work{consumeCommand: c, q: q}
	if _, closed := std.out.(noOutput); closed && c.Exec {
		std.out = io.Discard // no message is lost: the commands' statuses count
	}
	if !c.Exec {
		w.pipe = pipeOf(std.out)
	}
	if f, ok := std.out.(*os.File); ok && !c.Exec && sizeOf(f) >= 0 {
		std.out = &lineFile{file: f, torn: endsInLine(f)}
	}
	w.std = streams{out: &lockedWriter{w: std.out}, err: tolerantWriter{&lockedWriter{w: std.err}, func(error) {}}}
	w.left.Store(c.Count)
	return w
}

// lockedWriter writes one thing after the other.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// run consumes until it was enough. A signal is an end in good order.
func (w *work) run(ctx context.Context) error {
	ctx, w.stop = context.WithCancel(ctx)
	defer w.stop()
	if w.Idle > 0 {
		w.idle = &idleness{limit: w.Idle, timer: time.AfterFunc(w.Idle, w.stop)}
		defer w.idle.end()
	}
	if w.Exec {
		defer w.commands.endOnSecondSignal()()
	}
	go w.pipe.watch(ctx, w.fail)
	err := w.consume(ctx)
	complete := w.Count > 0 && w.printed.Load() == w.Count // a reader may go then
	if failure := w.failure.Load(); failure != nil && !complete {
		err = errors.Join(*failure, err)
	}
	return err
}

func (w *work) consume(ctx context.Context) error {
	if w.Count == 0 {
		opts := w.options(w.Workers)
		if w.Rate != nil {
			opts = append(opts, rateOption(*w.Rate))
		}
		return w.q.Consume(ctx, w.handle, opts...)
	}
	return w.consumeCounted(ctx)
}

// consumeCounted handles exactly so many messages: each of several consumers with one worker has a
// ticket for the message that it takes next, and stops when it gets none for a further one.
func (w *work) consumeCounted(ctx context.Context) error {
	n := int(min(int64(w.Workers), w.Count))
	opts := w.options(1)
	if w.Rate != nil {
		opts = append(opts, rateOption(*w.Rate/float64(n)))
	}
	if w.Workers < 1 {
		return w.q.Consume(ctx, w.handle, w.options(w.Workers)...) // which names the allowed values
	}
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = w.consumeWithTickets(ctx, opts) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (w *work) ticket() bool { return w.left.Add(-1) >= 0 }

func (w *work) consumeWithTickets(ctx context.Context, opts []delayq.ConsumeOption) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if !w.ticket() {
		return nil
	}
	return w.q.Consume(ctx, func(ctx context.Context, d *delayq.Delivery) error {
		defer func() {
			if !w.ticket() {
				stop()
			}
		}()
		return w.handle(ctx, d)
	}, opts...)
}

func (w *work) handle(ctx context.Context, d *delayq.Delivery) error {
	w.idle.enter()
	defer w.idle.leave()
	if w.Exec {
		return w.execute(ctx, d)
	}
	text, err := line(deliveryJSON(d))
	if err != nil {
		w.fail(err)
		return err
	}
	err = w.print(ctx, string(text))
	if isUnwritten(err) {
		w.fail(err)
		return d.Release(ctx) // at once, and no attempt: the message is not to blame
	}
	if err == nil {
		w.printed.Add(1)
	}
	return err
}

// print writes a line. Of a pipe, it waits until the reader has taken the line, and lets no other
// line in before: what is left in a pipe is lost when its reader goes, as head does after the first
// lines.
func (w *work) print(ctx context.Context, text string) error {
	w.printing.Lock()
	defer w.printing.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := write(w.std.out, text); err != nil {
		return err
	}
	return w.pipe.taken(ctx)
}

// fail ends the run: output that cannot be written now may be possible later.
func (w *work) fail(err error) {
	w.failure.CompareAndSwap(nil, &err)
	w.stop()
}

// idleness calls stop when nothing was handled for so long. A nil one never does.
type idleness struct {
	limit time.Duration
	timer *time.Timer

	mu   sync.Mutex
	busy int
}

func (i *idleness) enter() {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.busy++
	i.timer.Stop()
}

func (i *idleness) leave() {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.busy--; i.busy == 0 {
		i.timer.Reset(i.limit)
	}
}

func (i *idleness) end() { i.timer.Stop() }
