package rabbitmq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// A channelLoop is the goroutine that owns a handle's channel and everything received on it. Other
// goroutines pass it functions to run, so the state of a channel needs no lock. When a channel is
// lost, the loop drops its state as a whole and opens another.
type channelLoop struct {
	q       *queue
	calls   chan func() // from the handle's methods
	results chan func() // of work in progress

	life       context.Context // ends with close
	stop       context.CancelFunc
	start      sync.Once
	ended      chan struct{} // closed when the loop has ended, or will not start
	goroutines sync.WaitGroup

	// The rest belongs to the loop.
	connected  chan *session
	channel    *channel // nil without a connection
	opened     uint64   // channels so far
	waiters    waiters
	inProgress int             // results still to come
	check      *tombstoneCheck // nil without a tombstone store
	timer      *time.Timer
}

func newChannelLoop(q *queue) *channelLoop {
	l := &channelLoop{
		q: q, calls: make(chan func()), results: make(chan func()), ended: make(chan struct{}),
		connected: make(chan *session, 1), waiters: waiters{left: make(chan struct{}, 1)}, timer: time.NewTimer(time.Hour),
	}
	l.life, l.stop = context.WithCancel(context.Background())
	if q.tombstones != nil {
		l.check = &tombstoneCheck{queueTombstones: q.tombstones, prefix: fmt.Sprintf("%016x-", rand.Uint64()), backoff: storeBackoff}
	}
	return l
}

// do runs f in the loop and waits until it has returned.
func (l *channelLoop) do(ctx context.Context, f func()) error {
	l.start.Do(func() { l.goroutines.Go(l.run) })
	done := make(chan struct{})
	select {
	case l.calls <- func() { f(); close(done) }:
	case <-ctx.Done():
		return ctx.Err()
	case <-l.life.Done():
		return backend.ErrClosed
	}
	<-done
	return nil
}

// finishWork runs f, the last step of work in progress, in the loop, and waits until it has
// returned. Unlike do it also works while the loop closes.
func (l *channelLoop) finishWork(f func()) error {
	done := make(chan struct{})
	select {
	case l.results <- func() { l.inProgress--; f(); close(done) }:
		<-done
		return nil
	case <-l.ended:
		return backend.ErrClosed
	}
}

// background runs work in a goroutine, and then in the loop the function that work returns.
// dropped, if any, runs instead when the loop has ended.
func (l *channelLoop) background(work func() (finish func()), dropped func()) {
	l.inProgress++
	l.goroutines.Go(func() {
		if l.finishWork(work()) != nil && dropped != nil {
			dropped()
		}
	})
}

func (l *channelLoop) close() {
	l.stop()
	l.start.Do(func() { close(l.ended) })
	l.goroutines.Wait()
}

func (l *channelLoop) run() {
	defer close(l.ended)
	defer l.timer.Stop()
	l.connect(0)
	for {
		var arrived <-chan struct{}
		var lost <-chan *amqp.Error
		if c := l.channel; c != nil {
			arrived, lost = c.subs.inbox.filled, c.closed
		}
		select {
		case call := <-l.calls:
			call()
			l.runWaitingCalls()
		case result := <-l.results:
			result()
		case s := <-l.connected:
			l.openChannel(s)
		case <-arrived:
			l.channel.takeIn()
		case <-l.waiters.left:
			if l.channel != nil {
				l.channel.subs.idleFor = leftAfter // unless others wait
			}
		case reason := <-lost:
			l.lose(reason)
		case <-l.timer.C:
		case <-l.life.Done():
			if l.channel != nil {
				l.channel.finish()
			}
			return
		}
		l.update()
	}
}

// runWaitingCalls runs the calls that were made at the same time, so that their acks share one
// round trip.
func (l *channelLoop) runWaitingCalls() {
	for {
		select {
		case call := <-l.calls:
			call()
		default:
			return
		}
	}
}

// update runs after each event. It sets the timer to the next timed event.
func (l *channelLoop) update() {
	next := time.Now().Add(time.Hour)
	if l.channel != nil {
		next = l.channel.update(next)
	} else {
		l.waiters.wanted() // drops those that have left
	}
	l.timer.Reset(max(time.Until(next), 0))
}

// reopenAfter is the pause before another channel is opened on the same connection: what closed
// the last one may do so again.
const reopenAfter = 500 * time.Millisecond

// connect waits for a connection and passes it to the loop.
func (l *channelLoop) connect(pause time.Duration) {
	l.goroutines.Go(func() {
		if !sleep(l.life, pause) {
			return
		}
		if s, err := l.q.sub.session(l.life); err == nil {
			l.connected <- s
		}
	})
}

// openChannel opens a channel on a new connection. If that fails, the connection is about to break
// or the queue cannot be declared now. Both are tried again.
func (l *channelLoop) openChannel(s *session) {
	err := l.q.declareOn(s)
	if err == nil {
		var ch *amqp.Channel
		if ch, err = s.conn.Channel(); err == nil {
			l.opened++
			l.channel = newChannel(l, s, ch)
			return
		}
	}
	if !s.conn.IsClosed() {
		l.q.log.Warn("delayq: opening a channel failed; trying again", "err", err)
	}
	l.reopen(s)
}

func (l *channelLoop) reopen(s *session) {
	if s.conn.IsClosed() {
		l.connect(0)
	} else {
		l.connect(reopenAfter)
	}
}

// lose drops the channel's state. The broker hands its messages out again.
func (l *channelLoop) lose(reason *amqp.Error) {
	c := l.channel
	l.channel = nil
	if reason != nil && !c.session.conn.IsClosed() {
		l.q.log.Warn("delayq: RabbitMQ closed a channel; all leases of the handle end", "queue", l.q.name, "err", explain("handling messages", reason))
	}
	c.end()
	l.releaseHolds(c.unacked.untilLost())
	c.acks.fail(errAckUnknown)
	l.reopen(c.session)
}
