package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// window bounds how many messages are sent and not yet confirmed. It is enough to keep the broker
// busy over a slow network. It is few enough that the client library drops no returned message.
const window = 2048

// A purpose is a kind of messages that have a channel of their own: the broker may close it, and
// then the outcome of all messages there is unknown.
type purpose int

const (
	ordinary purpose = iota
	toFanout         // the exchange may be deleted
	large            // the broker may reject the size
	purposes
)

func (s *session) purposeOf(m *publication) purpose {
	switch {
	case s.mayBeTooLarge(m):
		return large
	case m.fanout:
		return toFanout
	default:
		return ordinary
	}
}

// A confirmChannel is an AMQP channel in confirm mode. The broker returns a message that it cannot
// route before it confirms it.
type confirmChannel struct {
	*amqp.Channel
	session *session
	slots   chan struct{}    // has an item for each unconfirmed message
	sent    chan unconfirmed // these messages

	purpose purpose

	ended  chan struct{} // closed when the channel is
	reason *amqp.Error   // why, once it has ended

	// refusing is true after the broker refused a message here. If the first message of a channel
	// reached a queue without a leader, the broker refuses all further ones, even when there is a
	// leader.
	refusing atomic.Bool

	mu       sync.Mutex // held while a message is written
	next     uint64
	declared map[string]time.Time // fanout exchanges

	returnsMu sync.Mutex
	returns   chan amqp.Return
	returned  map[string]string // reasons, by correlation id
}

// unconfirmed is a message that was sent.
type unconfirmed struct {
	*amqp.DeferredConfirmation
	at time.Time
}

func newConfirmChannel(ch *amqp.Channel, s *session, use purpose) *confirmChannel {
	c := &confirmChannel{
		Channel: ch, session: s, purpose: use, slots: make(chan struct{}, window), sent: make(chan unconfirmed, window),
		ended: make(chan struct{}), returns: ch.NotifyReturn(make(chan amqp.Return, window)), returned: make(map[string]string), declared: make(map[string]time.Time),
	}
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	go c.watch(closed)
	return c
}

// lateAfter is how long the slots of later messages wait for that of an earlier one. A queue without a
// leader confirms nothing, while others do.
const lateAfter = time.Second

// watch frees the slots of confirmed messages, also after their callers have left.
func (c *confirmChannel) watch(closed <-chan *amqp.Error) {
	defer close(c.ended)
	late := time.NewTimer(0)
	for {
		select {
		case m := <-c.sent:
			select {
			case <-m.Done():
				c.free(m)
				continue
			default:
			}
			late.Reset(lateAfter - time.Since(m.at))
			select {
			case <-m.Done():
				c.free(m)
			case <-late.C:
				go c.free(m)
			}
		case c.reason = <-closed:
			return
		}
	}
}

// free frees the slot of a message once it is confirmed, or its channel has ended.
func (c *confirmChannel) free(m unconfirmed) {
	<-m.Done()
	c.collectReturns()
	<-c.slots
}

// retire closes the channel once the broker has confirmed all messages sent on it.
func (c *confirmChannel) retire() {
	for range window {
		select {
		case c.slots <- struct{}{}:
		case <-c.ended:
			return
		}
	}
	_ = c.Close()
}

func (c *confirmChannel) usable() bool { return !c.IsClosed() && !c.refusing.Load() }

// sendMany sends messages together while the channel is usable, and returns how many it sent. The
// error belongs to the first message that it did not send.
func (c *confirmChannel) sendMany(ctx context.Context, ms []*publication) (n int, err error) {
	c.session.conn.buffer.hold()
	defer c.session.conn.buffer.release()
	for n = range ms {
		if n > 0 && !c.usable() {
			return n, nil
		}
		if err = c.send(ctx, ms[n]); err != nil {
			return n, err
		}
	}
	return len(ms), nil
}

// acquireSlot waits until the broker takes messages and a slot is free. It releases the write
// buffer meanwhile: a slot may become free only when the buffered messages are sent.
func (c *confirmChannel) acquireSlot(ctx context.Context, sendBy time.Time) error {
	if c.session.unblocked() {
		select {
		case c.slots <- struct{}{}:
			return nil
		default:
		}
	}
	c.session.conn.buffer.release()
	defer c.session.conn.buffer.hold()
	if !sendBy.IsZero() {
		bounded, cancel := context.WithDeadline(ctx, sendBy)
		defer cancel()
		ctx = bounded
	}
	if err := c.session.awaitUnblocked(ctx); err != nil {
		return err
	}
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-c.ended:
		return errGone
	case <-ctx.Done():
		return fmt.Errorf("%d messages wait for the broker's confirmation: %w", window, c.session.explainWait(ctx.Err()))
	}
}

// send sends one message when there is room for it. errGone means that nothing was sent, because the
// channel has ended or is not for this message.
func (c *confirmChannel) send(ctx context.Context, m *publication) error {
	if err := m.fit(c.session.mostHeaders()); err != nil {
		return err
	}
	if err := c.acquireSlot(ctx, m.sendBy); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil { // a copy whose channel was lost in the meantime would be a duplicate
		<-c.slots
		return c.session.explainWait(ctx.Err())
	}
	now := time.Now()
	m.updateRoute(now)
	if c.purpose != c.session.purposeOf(m) {
		<-c.slots
		return errGone
	}
	if m.fanout {
		c.declareAgain(m.exchange, now)
	}
	c.next++
	m.CorrelationId = strconv.FormatUint(c.next, 36)
	confirmation, err := c.PublishWithDeferredConfirm(m.exchange, m.key, !m.notMandatory, false, m.Publishing)
	switch {
	case err == nil:
		c.sent <- unconfirmed{confirmation, now}
		m.ch, m.confirmation = c, confirmation
		return nil
	case errors.Is(err, amqp.ErrClosed):
		<-c.slots
		return errGone
	default: // a part of it may have been sent
		<-c.slots
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
}

// fanoutLasts is how long a handle assumes that a fanout exchange exists after its declaration.
const fanoutLasts = 10 * time.Millisecond

// declareAgain has the broker declare a fanout exchange before it reads the next message. So
// publishing to an exchange that was deleted does not close the channel. The exchange has no
// binding then, and the broker returns the message. An error also fails the publish.
func (c *confirmChannel) declareAgain(name string, now time.Time) {
	if now.Sub(c.declared[name]) >= fanoutLasts {
		c.declared[name] = now
		_ = declareFanout(c.Channel, name)
	}
}

// outcome waits for the broker's confirmation of a message that was sent.
func (m *publication) outcome(ctx context.Context) error {
	select {
	case <-m.confirmation.Done():
	case <-ctx.Done():
		id := m.CorrelationId
		go func() { // without this, returned would keep the entry
			<-m.confirmation.Done()
			m.ch.takeReturned(id)
		}()
		return unknown(m.ch.session.explainWait(ctx.Err()))
	}
	reason, returned := m.ch.takeReturned(m.CorrelationId)
	switch {
	case returned:
		return fmt.Errorf("%w: %s", errUnrouted, reason)
	case m.confirmation.Acked():
		m.ch.session.confirmed(len(m.Body))
		return nil
	case m.ch.IsClosed():
		return m.ch.lost(m)
	default:
		m.ch.refusing.Store(true)
		return errRefused
	}
}

// lost returns the error of a message that was unconfirmed when the channel closed. The broker
// closes it when a user may not publish, when a message is too large, and when an exchange is gone or
// of another kind.
func (c *confirmChannel) lost(m *publication) error {
	<-c.ended
	limit := sizeLimit(c.reason)
	if limit > 0 && c.session.largest.Load() > int64(limit) { // it was lowered
		c.session.largest.Store(int64(limit))
	}
	switch {
	case limit > 0 && len(m.Body) > limit: // the broker stores no such message
		return backend.Invalid("body", described(fmt.Sprintf("of %d bytes", len(m.Body))), fmt.Sprintf("up to %d bytes, the broker's max_message_size", limit))
	case c.reason == nil:
		return errUnknown
	case c.reason.Code == amqp.PreconditionFailed || c.reason.Code == amqp.AccessRefused || c.reason.Code == amqp.NotFound:
		return fmt.Errorf("%w: %w", errUnknown, explain("publishing", c.reason))
	default: // of the connection
		return fmt.Errorf("%w: %w", errUnknown, c.reason)
	}
}

// takeReturned reports whether the broker has returned a message that it confirmed.
func (c *confirmChannel) takeReturned(id string) (reason string, returned bool) {
	c.collectReturns()
	c.returnsMu.Lock()
	defer c.returnsMu.Unlock()
	reason, returned = c.returned[id]
	delete(c.returned, id)
	return reason, returned
}

func (c *confirmChannel) collectReturns() {
	c.returnsMu.Lock()
	defer c.returnsMu.Unlock()
	for {
		select {
		case r, open := <-c.returns:
			if !open {
				c.returns = nil
				return
			}
			c.returned[r.CorrelationId] = r.ReplyText
		default:
			return
		}
	}
}
