package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// window is how many messages are on their way to the broker without its confirmation: enough to keep it busy over a
// slow network, and few enough that returned ones are never dropped by the client library.
const window = 2048

// errUnknown is for a message whose confirmation never came.
var errUnknown = fmt.Errorf("%w: the channel closed before the broker confirmed the message", backend.ErrOutcomeUnknown)

// errRefused is for a message that the broker did not take.
var errRefused = fmt.Errorf("%w: the broker refused the message: a queue on its way is full or has no leader", backend.ErrUnavailable)

// errUnrouted is for a message that the broker has sent back.
var errUnrouted = errors.New("the broker could not route the message")

// outgoing is a message on its way.
type outgoing struct {
	route
	amqp.Publishing

	q *queue // that it is for

	// Of a message that is to wait:
	due  time.Time
	made time.Time // when the route was made
}

// staleAfter is how long a message may wait for the broker with a route that was made for the delay it had before. It is late by as long. A new route
// may have four hops instead of one, so that messages of one delay, pushed together, keep theirs.
const staleAfter = time.Second

// keepUp makes the route of a message anew that has waited for the broker.
func (m *outgoing) keepUp(now time.Time) {
	if m.due.IsZero() || now.Sub(m.made) < staleAfter {
		return
	}
	for name := range m.route.headers {
		delete(m.Headers, name)
	}
	m.route, m.made = m.q.toward(m.due, now), now
	maps.Copy(m.Headers, m.route.headers)
}

// A publisher publishes for all queues of a backend, on a connection of its own: a consumer's unread deliveries
// would hold it up. It is safe for concurrent use.
type publisher struct {
	link *link

	mu sync.Mutex
	ch *confirmed

	declaring chan struct{} // has room for the one that declares the topology anew
	declared  time.Time     // when that was last done
}

// confirmed is a channel in confirm mode. The broker returns what it cannot route before it confirms it.
type confirmed struct {
	*amqp.Channel
	session *session
	slots   chan struct{}                   // one for each message under way
	sent    chan *amqp.DeferredConfirmation // those messages

	ended  chan struct{} // closed when the channel is
	reason *amqp.Error   // why, once it has ended

	// worn says that the broker refused a message here. A channel whose first message met a queue without a leader is
	// refused for good, also when there is one again.
	worn atomic.Bool

	mu   sync.Mutex // held while something is written
	next uint64

	mail     sync.Mutex
	returns  chan amqp.Return
	returned map[string]string // why, by correlation id
}

// leaveWithin is how long a call whose context has ended waits for an account of what became of its messages.
const leaveWithin = 20 * time.Millisecond

// publish sends messages and waits for what the broker says of each. A context that ends makes outcomes unknown. The
// client library knows no contexts, so a write that hangs is left behind.
func (p *publisher) publish(ctx context.Context, ms []outgoing) []error {
	return p.bounded(ctx, ms, p.publishAll)
}

// publishOnce is publish for messages that nobody misses: what the broker refuses, or has no queue for, is not offered again.
func (p *publisher) publishOnce(ctx context.Context, ms []outgoing) []error {
	return p.bounded(ctx, ms, p.offer)
}

func (p *publisher) bounded(ctx context.Context, ms []outgoing, do func(context.Context, []outgoing) []error) []error {
	done := make(chan []error, 1)
	go func() { done <- do(ctx, ms) }()
	select {
	case errs := <-done:
		return errs
	case <-ctx.Done():
	}
	select {
	case errs := <-done:
		return errs
	case <-time.After(leaveWithin):
		return backend.FailAll(len(ms), fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, p.link.because(ctx.Err())))
	}
}

// insistFor bounds how long a message is offered again that the broker refuses: a quorum queue without a leader takes none, and
// gets one within seconds if it can.
const insistFor = 10 * time.Second

// publishAll offers messages, those again that are refused, and those once more whose queue was not there.
func (p *publisher) publishAll(ctx context.Context, ms []outgoing) []error {
	began := time.Now()
	errs := p.offer(ctx, ms)
	if lost := failures(errs, errUnrouted); len(lost) > 0 {
		if err := p.restore(ctx, began, ms, lost); err != nil {
			for _, i := range lost {
				errs[i] = fmt.Errorf("%w; declaring its queue again: %w", errs[i], err)
			}
		} else {
			p.offerAgain(ctx, ms, errs, lost)
		}
	}
	for pause := firstPause; time.Since(began) < insistFor; pause = min(2*pause, time.Second) {
		refused := failures(errs, errRefused)
		if len(refused) == 0 || !sleep(ctx, pause) {
			break
		}
		p.offerAgain(ctx, ms, errs, refused)
	}
	for _, i := range failures(errs, errRefused) {
		ms[i].q.tellRefused(ms[i].key)
	}
	return errs
}

// failures are the places of the messages that failed for that reason.
func failures(errs []error, reason error) (at []int) {
	for i, err := range errs {
		if errors.Is(err, reason) {
			at = append(at, i)
		}
	}
	return at
}

// offerAgain offers the messages at some places, and puts what becomes of them there.
func (p *publisher) offerAgain(ctx context.Context, ms []outgoing, errs []error, at []int) {
	again := make([]outgoing, len(at))
	for j, i := range at {
		again[j] = ms[i]
	}
	for j, err := range p.offer(ctx, again) {
		errs[at[j]] = err
	}
}

// deletedPause is how long a deleted queue stays away at least. A broker's channel that finds the queue there again when it hears of the deletion subscribes again by
// itself, and then drops what the new queue sends it: the subscription takes messages and gives none (RabbitMQ 3.10, seen within 10 ms of the deletion).
const deletedPause = 100 * time.Millisecond

// restore declares again what the messages at some places did not find: the levels, or the queues that they are for.
func (p *publisher) restore(ctx context.Context, since time.Time, ms []outgoing, lost []int) error {
	common, own := false, make(map[*queue]bool)
	for _, i := range lost {
		if q := ms[i].q; ms[i].key == q.names.queue(q.name) || ms[i].key == q.names.dead(q.name) {
			own[q] = true
		} else {
			common = true
		}
	}
	if common {
		if err := p.redeclare(ctx, since, "a queue of a level"); err != nil {
			return err
		}
	}
	if len(own) > 0 && !sleep(ctx, deletedPause) {
		return ctx.Err()
	}
	for q := range own {
		q.log.Warn("delayq: a queue is gone from the broker; declaring it again", "queue", q.name)
		if err := q.declare(ctx); err != nil {
			return err
		}
	}
	return nil
}

// redeclare declares again what all queues share, since a part of it is not there any more, unless that has been done since.
func (p *publisher) redeclare(ctx context.Context, since time.Time, gone string) error {
	select {
	case p.declaring <- struct{}{}:
		defer func() { <-p.declaring }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if p.declared.After(since) {
		return nil
	}
	s, err := p.link.session(ctx)
	if err != nil {
		return err
	}
	p.link.log.Warn("delayq: a part of the topology is gone from the broker; declaring all of it again", "gone", gone)
	if err := p.link.setup(s.conn.Connection); err != nil {
		return err
	}
	p.declared = time.Now()
	return nil
}

// offer sends messages once and waits for what becomes of them.
func (p *publisher) offer(ctx context.Context, ms []outgoing) []error {
	errs := make([]error, len(ms))
	pending := make([]*promise, len(ms))
	for at := 0; at < len(ms); {
		n, err := p.send(ctx, ms[at:], pending[at:])
		if at += n; err == nil {
			continue
		}
		if ctx.Err() != nil {
			copy(errs[at:], backend.FailAll(len(ms)-at, err))
			break
		}
		errs[at] = err
		at++
	}
	for i, c := range pending {
		if c != nil {
			errs[i] = c.outcome(ctx)
		}
	}
	return errs
}

// A promise is a message that the broker has yet to confirm.
type promise struct {
	ch           *confirmed
	id           string
	confirmation *amqp.DeferredConfirmation
}

// send sends messages on whatever connection there is, and returns how many. One that breaks before anything was sent is no
// reason to give up. The error is of the message after those.
func (p *publisher) send(ctx context.Context, ms []outgoing, pending []*promise) (n int, err error) {
	for {
		ch, err := p.channel(ctx)
		if err == nil {
			n, err = ch.sendMany(ctx, ms, pending)
		}
		switch {
		case err == nil || ctx.Err() != nil || !errors.Is(err, errGone):
			return n, err
		case n > 0:
			return n, nil
		}
	}
}

// channel returns the channel of the current session, a new one after a break.
func (p *publisher) channel(ctx context.Context) (*confirmed, error) {
	s, err := p.link.session(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ch != nil && p.ch.session == s && p.ch.usable() {
		return p.ch, nil
	}
	ch, err := s.conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		if s.conn.IsClosed() {
			return nil, errGone
		}
		return nil, explain("opening a channel", err)
	}
	if p.ch != nil {
		go p.ch.retire()
	}
	p.ch = newConfirmed(ch, s)
	return p.ch, nil
}

func newConfirmed(ch *amqp.Channel, s *session) *confirmed {
	c := &confirmed{
		Channel: ch, session: s, slots: make(chan struct{}, window), sent: make(chan *amqp.DeferredConfirmation, window),
		ended: make(chan struct{}), returns: ch.NotifyReturn(make(chan amqp.Return, window)), returned: make(map[string]string),
	}
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	go c.watch(closed)
	return c
}

// watch frees the slots of messages that the broker has answered for, whether or not anybody still wants to know.
func (c *confirmed) watch(closed <-chan *amqp.Error) {
	defer close(c.ended)
	for {
		select {
		case confirmation := <-c.sent:
			<-confirmation.Done()
			c.collect()
			<-c.slots
		case c.reason = <-closed:
			return
		}
	}
}

// retire closes a channel once the broker has answered for all that was sent on it.
func (c *confirmed) retire() {
	for range window {
		select {
		case c.slots <- struct{}{}:
		case <-c.ended:
			return
		}
	}
	_ = c.Close()
}

func (c *confirmed) usable() bool { return !c.IsClosed() && !c.worn.Load() }

// sendMany sends messages together, as long as the channel is good, and returns how many. The error is of the one after those.
func (c *confirmed) sendMany(ctx context.Context, ms []outgoing, pending []*promise) (n int, err error) {
	cork := c.session.conn.cork
	cork.hold()
	defer cork.release()
	for n = range ms {
		if n > 0 && !c.usable() {
			return n, nil
		}
		if pending[n], err = c.send(ctx, &ms[n]); err != nil {
			return n, err
		}
	}
	return len(ms), nil
}

// enter waits until there is room for a message. It lets go of the cork meanwhile.
func (c *confirmed) enter(ctx context.Context) error {
	if c.session.flows() {
		select {
		case c.slots <- struct{}{}:
			return nil
		default:
		}
	}
	c.session.conn.cork.release()
	defer c.session.conn.cork.hold()
	if err := c.session.flowing(ctx); err != nil {
		return err
	}
	select {
	case c.slots <- struct{}{}:
		return nil
	case <-c.ended:
		return errGone
	case <-ctx.Done():
		return c.session.because(ctx.Err())
	}
}

// send sends one message when there is room for it. errGone says that nothing was sent.
func (c *confirmed) send(ctx context.Context, m *outgoing) (*promise, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	m.keepUp(time.Now())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	m.CorrelationId = strconv.FormatUint(c.next, 36)
	confirmation, err := c.PublishWithDeferredConfirm(m.exchange, m.key, !m.blind, false, m.Publishing)
	switch {
	case err == nil:
		c.sent <- confirmation
		return &promise{c, m.CorrelationId, confirmation}, nil
	case errors.Is(err, amqp.ErrClosed):
		<-c.slots
		return nil, errGone
	default: // part of it may be on the wire
		<-c.slots
		return nil, fmt.Errorf("%w: %w", errUnknown, err)
	}
}

// outcome waits for the broker's word.
func (p *promise) outcome(ctx context.Context) error {
	select {
	case <-p.confirmation.Done():
	case <-ctx.Done():
		go p.forget()
		return p.ch.session.because(ctx.Err())
	}
	why, returned := p.ch.takeReturned(p.id)
	switch {
	case returned:
		return fmt.Errorf("%w: %s", errUnrouted, why)
	case p.confirmation.Acked():
		return nil
	case p.ch.IsClosed():
		return p.ch.lost()
	default:
		p.ch.worn.Store(true)
		return errRefused
	}
}

// forget waits for the broker's word on behalf of nobody.
func (p *promise) forget() {
	<-p.confirmation.Done()
	p.ch.takeReturned(p.id)
}

// lost is the outcome of what was under way when the channel closed. The broker closes it when a user may not publish.
func (c *confirmed) lost() error {
	<-c.ended
	if c.reason != nil && (c.reason.Code == amqp.AccessRefused || c.reason.Code == amqp.NotFound) {
		return fmt.Errorf("%w: %w", errUnknown, explain("publishing", c.reason))
	}
	return errUnknown
}

// takeReturned tells whether a message that was confirmed has come back.
func (c *confirmed) takeReturned(id string) (why string, returned bool) {
	c.collect()
	c.mail.Lock()
	defer c.mail.Unlock()
	why, returned = c.returned[id]
	delete(c.returned, id)
	return why, returned
}

// collect takes in what has come back.
func (c *confirmed) collect() {
	c.mail.Lock()
	defer c.mail.Unlock()
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
