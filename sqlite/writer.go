package sqlite

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/handle"
	"github.com/delayq/delayq/internal/sqlqueue"
)

// A writer has the one connection that writes. Its goroutine runs the operations that wait in one
// transaction, so that they share one flush of the disk. While it runs, the next ones gather.
type writer struct {
	conn *conn
	hub  *handle.Hub

	ops    chan *operation  // holds those that wait, so that callers and the writer need not meet
	bare   chan func(*conn) // to be run outside a transaction
	ended  chan struct{}    // closed when the goroutine has ended
	ending context.Context  //nolint:containedctx // ends when the file is closed
	end    context.CancelFunc
}

// mostOperations bounds a transaction, so that none waits for long.
const mostOperations = 256

// An operation is a change, which may be run more than once, and whose effects count when its
// transaction is committed.
type operation struct {
	ctx  context.Context //nolint:containedctx // of the caller
	do   func(*tx) error
	done chan error // holds one
	left bool       // its caller had left before it was run

	taken atomic.Bool // by the writer to run it, or by its caller to leave
	begun bool        // the writer has taken it
}

// take reports whether nobody has taken the operation before.
func (o *operation) take() bool { return o.taken.CompareAndSwap(false, true) }

// begin reports whether the writer may run the operation, which it may do again. It asks when it has
// the file's lock: a caller that leaves while another process has it knows that nothing has happened.
func (o *operation) begin() bool {
	if o.ctx.Err() != nil {
		return false
	}
	o.begun = o.begun || o.take()
	return o.begun
}

// A tx is a transaction: of the writer, or of the caller.
type tx struct {
	*conn
	user  *userCall // nil in one of the writer
	next  int64     // the next number; 0 before the first one was asked for
	wakes map[string]time.Time

	tidied []int64 // the queues whose ended windows were dropped
}

func newWriter(c *conn, hub *handle.Hub) *writer {
	w := &writer{
		conn: c, hub: hub,
		ops: make(chan *operation, mostOperations), bare: make(chan func(*conn)), ended: make(chan struct{}),
	}
	w.ending, w.end = context.WithCancel(context.Background())
	go w.run()
	return w
}

func (w *writer) run() {
	defer close(w.ended)
	for {
		select {
		case <-w.ending.Done():
			return
		case do := <-w.bare:
			do(w.conn)
		case o := <-w.ops:
			w.transact(w.gather(o))
		}
	}
}

// gather returns the operations that wait. Callers that the last commit has released may be about to
// come with their next operation: the writer lets other goroutines run until none comes, so that
// the flush of the disk is for all of them. It waits for nobody.
func (w *writer) gather(first *operation) []*operation {
	ops := []*operation{first}
	for quiet := 0; quiet < quietRounds && len(ops) < mostOperations; quiet++ {
		before := len(ops)
		runtime.Gosched()
		if ops = w.drain(ops); len(ops) > before {
			quiet = 0
		}
	}
	return ops
}

// quietRounds is how often the writer lets others run without a new operation: a caller that goes on
// passes through some goroutines before it comes again.
const quietRounds = 8

// drain adds the operations that wait.
func (w *writer) drain(ops []*operation) []*operation {
	for len(ops) < mostOperations {
		select {
		case o := <-w.ops:
			ops = append(ops, o)
		default:
			return ops
		}
	}
	return ops
}

// submit has the writer run an operation, and waits until it is committed or ctx ends.
func (w *writer) submit(ctx context.Context, do func(*tx) error) error {
	o := &operation{ctx: ctx, do: do, done: make(chan error, 1)}
	select {
	case w.ops <- o:
	case <-ctx.Done():
		return ctx.Err()
	case <-w.ended:
		return backend.ErrClosed
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		if o.take() {
			return ctx.Err()
		}
		return sqlqueue.Unknown(ctx.Err())
	case <-w.ended:
		if o.take() {
			return backend.ErrClosed
		}
		return <-o.done // the writer has sent it before it ended
	}
}

// outside runs do on the writer's connection between transactions, unless the writer has ended.
func (w *writer) outside(do func(*conn)) {
	done := make(chan struct{})
	select {
	case w.bare <- func(c *conn) { do(c); close(done) }:
		<-done
	case <-w.ended:
	}
}

// transact runs operations in one transaction. If one of them fails, each has one of its own.
func (w *writer) transact(ops []*operation) {
	reached, err := w.try(ops)
	if err != nil && reached == running && len(ops) > 1 {
		for _, o := range ops {
			w.transact([]*operation{o})
		}
		return
	}
	if reached == committing && !errors.Is(err, backend.ErrFull) {
		err = sqlqueue.Unknown(err)
	}
	for _, o := range ops {
		if err == nil && o.left {
			o.done <- o.ctx.Err()
		} else {
			o.done <- err
		}
	}
}

// The phases of a transaction in which it may fail.
type phase int

const (
	beginning phase = iota
	running
	committing
	committed
)

func (w *writer) try(ops []*operation) (phase, error) {
	if _, err := w.conn.exec("begin"); err != nil {
		return beginning, explain(err)
	}
	t := &tx{conn: w.conn}
	err := t.all(ops)
	if err != nil {
		_ = w.conn.Exec("ROLLBACK") // a full disk has rolled it back already
		return running, explain(err)
	}
	if _, err := w.conn.exec("commit"); err != nil {
		_ = w.conn.Exec("ROLLBACK")
		return committing, explain(err)
	}
	for queue, due := range t.wakes {
		w.hub.Wake(queue, due)
	}
	return committed, nil
}

func (t *tx) all(ops []*operation) error {
	for _, o := range ops {
		if o.left = !o.begin(); o.left {
			continue
		}
		if err := o.do(t); err != nil {
			return err
		}
	}
	return t.end()
}

// end writes the next number.
func (t *tx) end() error {
	if t.next == 0 {
		return nil
	}
	_, err := t.exec("write_next", t.next)
	return err
}

// take returns the next number of the store. Numbers rise, and none is given twice.
func (t *tx) take() (int64, error) {
	if t.next == 0 {
		err := t.get("read_next", func(s columns) bool {
			t.next = s.ColumnInt64(0)
			return true
		})
		if err != nil {
			return 0, err
		}
	}
	t.next++
	return t.next - 1, nil
}

// wake has the handles on a queue woken after the commit, for a message that is due then.
func (t *tx) wake(queue string, due int64) {
	at := moment(due)
	if soonest, ok := t.wakes[queue]; ok && soonest.Before(at) {
		return
	}
	if t.wakes == nil {
		t.wakes = make(map[string]time.Time)
	}
	t.wakes[queue] = at
}

// closeWithin bounds how long a close waits for a disk that does not reply.
const closeWithin = 5 * time.Second

// close ends the writer after the transaction that is under way.
func (w *writer) close() bool {
	w.end()
	late := time.NewTimer(closeWithin)
	defer late.Stop()
	select {
	case <-w.ended:
		return true
	case <-late.C:
		return false
	}
}
