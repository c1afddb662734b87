package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// checkEvery is how often a backend checks that the shared topology exists.
const checkEvery = 3 * time.Second

// A checker declares deleted exchanges and queues again, and moves messages that had no queue from
// undeliverable to their queues. Nothing else notices a deleted exchange: a push reaches only the
// first queue on its way. A check takes one round trip.
type checker struct {
	b            *Backend
	life         context.Context
	stop         context.CancelFunc
	begin        sync.Once
	over         sync.WaitGroup
	newHandle    atomic.Bool   // a handle was opened since the last check
	wakePolicies chan struct{} // has an item until watchPolicies runs after a handle was opened

	// The rest belongs to the goroutine.
	session   *session
	ch        *amqp.Channel
	closed    chan *amqp.Error
	remaining int       // messages in undeliverable for no open queue; -1 if unknown
	readAt    time.Time // when undeliverable was last read
	nextRead  time.Time // when it may be read again
	failing   bool
}

func newChecker(b *Backend) *checker {
	c := &checker{b: b, wakePolicies: make(chan struct{}, 1)}
	c.life, c.stop = context.WithCancel(context.Background())
	return c
}

// opened notes that a handle was opened.
func (c *checker) opened(log *slog.Logger) {
	c.newHandle.Store(true)
	select {
	case c.wakePolicies <- struct{}{}:
	default:
	}
	c.begin.Do(func() {
		if c.life.Err() == nil {
			if c.b.deadLetters() {
				log.Info("delayq: if the broker crashes, messages can come 180 s late and more, unless dead_letter_worker_publisher_confirm_timeout is set; see docs/rabbitmq.md")
			}
			c.over.Go(func() { c.run(log) })
			if c.b.management != "" {
				c.over.Go(func() { c.b.watchPolicies(c.life, c.wakePolicies, log) })
			}
		}
	})
}

// close ends the checks. A call in progress ends with its connection.
func (c *checker) close() {
	c.stop()
	c.begin.Do(func() {}) // it can no longer begin
	c.b.subs.stop()
	c.b.pub.link.stop() // there may be a declaration there, to which a broker in an alarm does not reply
	c.over.Wait()
}

func (c *checker) run(log *slog.Logger) {
	for sleep(c.life, checkEvery) {
		err := c.once()
		if err != nil && !c.failing && c.life.Err() == nil && !errors.Is(err, errGone) {
			log.Warn("delayq: checking the topology in RabbitMQ failed; trying again", "err", err)
		}
		c.failing = err != nil
	}
	if c.ch != nil {
		_ = c.ch.Close()
	}
}

func (c *checker) once() error {
	began := time.Now()
	if len(c.b.openQueues()) == 0 {
		return nil // a namespace that is removed now must not be declared again
	}
	s, err := c.b.subs.first().session(c.life)
	if err != nil {
		return err
	}
	waiting, err := c.look(s)
	if refusedWith(err, amqp.NotFound) {
		return c.redeclare(began, s, err)
	}
	if err != nil {
		return err
	}
	now := time.Now()
	known := waiting == c.remaining && !c.newHandle.Load() && now.Sub(c.readAt) < lookAgainAfter
	if waiting == 0 || known || now.Before(c.nextRead) {
		return nil
	}
	c.newHandle.Store(false)
	c.readAt = now
	moved, complete, err := c.b.recover(c.life, s, waiting)
	c.nextRead = time.Now().Add(readPauseFactor * time.Since(now))
	if c.remaining = waiting - moved; !complete {
		c.remaining = -1
	}
	return err
}

// look returns how many messages undeliverable has. Code 404 in an error means that a part of the
// shared topology is gone.
func (c *checker) look(s *session) (waiting int, err error) {
	if c.ch == nil || c.session != s || c.ch.IsClosed() {
		ch, err := s.conn.Channel()
		if err != nil {
			return 0, c.reason(s, "opening a channel", err)
		}
		c.session, c.ch, c.closed = s, ch, ch.NotifyClose(make(chan *amqp.Error, 1))
	}
	for _, x := range c.b.exchanges() {
		if err := c.ch.ExchangeDeclarePassive(x.name, x.kind, true, false, false, true, nil); err != nil {
			return 0, c.reason(s, "looking for exchange "+x.name, err)
		}
	}
	q, err := c.ch.QueueDeclarePassive(c.b.names.undeliverable(), true, false, false, false, nil)
	if err != nil {
		return 0, c.reason(s, "looking for queue "+c.b.names.undeliverable(), err)
	}
	return q.Messages, nil
}

// reason returns the broker's reason to close the channel, if it has one, instead of err. Only the
// last call of a check has a reply of its own.
func (c *checker) reason(s *session, doing string, err error) error {
	if s.conn.IsClosed() {
		return errGone
	}
	if c.ch != nil && c.ch.IsClosed() {
		if reason := closeReason(c.closed); reason != nil {
			err = reason
		}
	}
	return explain(doing, err)
}

// closeReason returns the broker's reason to close a channel, and nil if it has none.
func closeReason(closed <-chan *amqp.Error) error {
	select {
	case reason := <-closed:
		if reason != nil {
			return reason
		}
	case <-time.After(time.Second):
	}
	return nil
}

// redeclare declares everything again, and binds the open queues: the exchange that they were bound
// to may be gone.
func (c *checker) redeclare(began time.Time, s *session, gone error) error {
	if err := c.b.pub.redeclareShared(c.life, began, gone.Error()); err != nil {
		return err
	}
	for _, q := range c.b.openQueues() {
		if err := q.declareOn(s); err != nil {
			return fmt.Errorf("declaring queue %s again: %w", q.name, err)
		}
	}
	return nil
}

// exchanges returns the exchanges of the shared topology.
func (b *Backend) exchanges() []exchange {
	return append(b.delayer.exchanges(b.names), exchange{b.names.deliver(), "topic"}, exchange{b.names.undeliverable(), "fanout"})
}
