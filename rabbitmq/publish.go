package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// outgoing is a message to publish.
type outgoing struct {
	route
	amqp.Publishing

	q    *queue    // the message's queue
	due  time.Time // zero for a message that does not wait
	made time.Time // when the route was made

	received bool      // the broker has it: headers that are too large are dropped
	requeued bool      // a refused message goes to undeliverable
	sendBy   time.Time // how long it may wait for the broker; zero is as long as the call
}

// moveToUndeliverable routes a message to undeliverable. The checker moves it back when its queue
// has room.
func (m *outgoing) moveToUndeliverable() {
	for name := range m.route.headers {
		delete(m.Headers, name)
	}
	m.route, m.due = route{key: m.q.names.undeliverable()}, time.Time{}
}

// staleAfter is how long a message may wait for the broker with the route of its original delay. It
// is late by as long. A new route may have four hops instead of one, so messages of one delay that
// are pushed together keep theirs.
const staleAfter = time.Second

// updateRoute makes a new route if the message has waited long for the broker.
func (m *outgoing) updateRoute(now time.Time) {
	if m.due.IsZero() || now.Sub(m.made) < staleAfter {
		return
	}
	for name := range m.route.headers {
		delete(m.Headers, name)
	}
	m.route, m.made = m.q.routeTo(m.due, now), now
	maps.Copy(m.Headers, m.route.headers)
}

// A publication is one message of a call and its outcome.
type publication struct {
	*outgoing
	ch           *confirmChannel // nil until it is sent
	confirmation *amqp.DeferredConfirmation
	err          error
}

// A publisher publishes for all queues of a backend, on a connection of its own: unread deliveries
// would block a connection that also consumes. It is safe for concurrent use.
type publisher struct {
	link *link

	opening [purposes]chan struct{} // has an item while a channel is opened

	mu       sync.Mutex
	channels [purposes]*confirmChannel

	declaring chan struct{} // has an item while the topology is declared again
	declared  time.Time     // when that was last begun, and done
	failed    time.Time     // when it last failed for good
	failure   error
}

// publish sends messages and waits for the broker's confirmations. It retries as long as the
// outcome is known. If the context ends, outcomes are unknown.
func (p *publisher) publish(ctx context.Context, ms []outgoing) []error {
	return p.bounded(ctx, ms, p.publishRetrying)
}

// publishOnce is publish without retries.
func (p *publisher) publishOnce(ctx context.Context, ms []outgoing) []error {
	return p.bounded(ctx, ms, p.attempt)
}

// bounded calls do and returns when its context ends. A blocked write goes on in the background:
// the client library takes no contexts.
func (p *publisher) bounded(ctx context.Context, ms []outgoing, do func(context.Context, []*publication)) []error {
	errs, err := within(ctx, func() ([]error, error) {
		all, refs, errs := make([]publication, len(ms)), make([]*publication, len(ms)), make([]error, len(ms))
		for i := range ms {
			all[i].outgoing, refs[i] = &ms[i], &all[i]
		}
		do(ctx, refs)
		for i := range all {
			errs[i] = all[i].err
		}
		return errs, nil
	})
	if err != nil {
		return backend.FailAll(len(ms), unknown(p.link.explainWait(err)))
	}
	return errs
}

// refusedFor is how long a refused or unrouted message is published again, and longer where that
// takes fewer than tries. A quorum queue without a leader takes none, and gets a leader within seconds
// if it can.
const refusedFor = 10 * time.Second

// publishRetrying publishes messages, and refused ones again with pauses. Refused messages that a
// handle requeues go to undeliverable.
func (p *publisher) publishRetrying(ctx context.Context, ms []*publication) {
	p.attemptRouted(ctx, ms)
	var diverted []*publication
	for _, m := range failedWith(ms, errRefused) {
		if m.requeued {
			m.q.noteRefusalBy(m.key)
			m.moveToUndeliverable()
			diverted = append(diverted, m)
		}
	}
	p.attemptRouted(ctx, diverted)
	began, retry := time.Now(), backoff{firstPause, time.Second}
	for n := 0; n < tries || time.Since(began) < refusedFor; n++ {
		refused := failedWith(ms, errRefused)
		if len(refused) == 0 || !sleep(ctx, retry.next()) {
			break
		}
		p.attemptRouted(ctx, refused)
	}
	for _, m := range failedWith(ms, errRefused) {
		m.q.noteRefusalBy(m.key)
	}
}

// attemptRouted sends messages once. It declares missing queues again and resends their messages. A
// part may be deleted again before the last one is declared, so it does that for up to refusedFor, and
// a few times at least: on a busy machine one declaration may take longer.
func (p *publisher) attemptRouted(ctx context.Context, ms []*publication) {
	began := time.Now()
	since, retry := began, backoff{firstPause, time.Second}
	p.attempt(ctx, ms)
	for n := 0; ; n++ {
		unrouted := failedWith(ms, errUnrouted)
		if len(unrouted) == 0 || n > 0 && !sleep(ctx, retry.next()) {
			return
		}
		if n >= tries && time.Since(began) > refusedFor {
			for _, m := range unrouted {
				m.err = fmt.Errorf("%w: %w", backend.ErrUnavailable, m.err)
			}
			return
		}
		err := p.redeclareFor(ctx, since, unrouted)
		since = time.Now()
		if err != nil {
			for _, m := range unrouted {
				m.err = fmt.Errorf("%w; declaring its queue again: %w", errUnrouted, err)
			}
			if !refusedWith(err, amqp.NotFound) || nodeIsAway(err) {
				return
			}
			continue
		}
		p.attempt(ctx, unrouted)
	}
}

func failedWith(ms []*publication, reason error) (failed []*publication) {
	for _, m := range ms {
		if errors.Is(m.err, reason) {
			failed = append(failed, m)
		}
	}
	return failed
}

// deletedPause is how long a deleted queue stays away at least. If the queue exists again when a
// broker's channel learns of the deletion, the channel subscribes to the new queue. It then drops
// all messages that the new queue sends (RabbitMQ 3.10, within 10 ms of the deletion, or over 100 ms on a
// busy machine). A subscription of a quorum queue cannot ask for its end instead: x-cancel-on-ha-failover is
// for classic queues.
const deletedPause = time.Second

// redeclareFor declares the missing queues of unrouted messages again: the levels, or the messages'
// own queues.
func (p *publisher) redeclareFor(ctx context.Context, since time.Time, unrouted []*publication) error {
	shared, own := false, make(map[*queue]bool)
	for _, m := range unrouted {
		if q := m.q; m.key == q.names.queue(q.name) || m.key == q.names.dead(q.name) {
			own[q] = true
		} else {
			shared = true
		}
	}
	if shared {
		if err := p.redeclareShared(ctx, since, "a queue of a level"); err != nil {
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

// redeclareShared declares the shared topology again, because a part of it is gone. It does nothing
// if that was begun and done since. If it waits for a declaration that fails, it makes no other.
func (p *publisher) redeclareShared(ctx context.Context, since time.Time, gone string) error {
	asked := time.Now()
	select {
	case p.declaring <- struct{}{}:
		defer func() { <-p.declaring }()
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case p.declared.After(since):
		return nil
	case p.failed.After(asked):
		return p.failure
	}
	p.link.log.Warn("delayq: a part of the topology is gone from the broker; declaring all of it again", "gone", gone)
	began := time.Now() // a part may be deleted again before the last one is declared
	err := patiently(ctx, func() error { return p.link.setUpAgain(ctx) })
	switch {
	case err == nil:
		p.declared = began
	case refusedWith(err, amqp.InternalError) && ctx.Err() == nil:
		p.failed, p.failure = time.Now(), err
	}
	return err
}

// attempt sends messages once and waits for their outcomes.
func (p *publisher) attempt(ctx context.Context, ms []*publication) {
	for _, m := range ms {
		m.ch, m.err = nil, nil
	}
	for rest := ms; len(rest) > 0; {
		n, err := p.send(ctx, rest)
		rest = rest[n:]
		switch {
		case err == nil: // the channel has ended, or nothing is left
		case ctx.Err() == nil:
			rest[0].err = err
			rest = rest[1:]
		default:
			for _, m := range rest {
				m.err = err
			}
			rest = nil
		}
	}
	for _, m := range ms {
		if m.ch != nil {
			m.err = m.outcome(ctx)
		}
	}
}

// send sends messages on the current connection, and returns how many. The error is of the message
// after those. If the connection breaks before anything is sent, send waits for the next one.
func (p *publisher) send(ctx context.Context, ms []*publication) (n int, err error) {
	for {
		ch, err := p.channel(ctx, ms[0])
		if err == nil {
			n, err = ch.sendMany(ctx, ms)
		}
		switch {
		case err == nil || ctx.Err() != nil || !errors.Is(err, errGone):
			return n, err
		case n > 0:
			return n, nil
		}
	}
}

// channel returns the current session's channel for a message, and opens one if there is none.
// During an alarm that blocks until its end, so one call at a time does it, and others wait within
// their contexts.
func (p *publisher) channel(ctx context.Context, m *publication) (*confirmChannel, error) {
	s, err := p.link.session(ctx)
	if err != nil {
		return nil, err
	}
	use := s.purposeOf(m)
	if c := p.opened(s, use); c != nil {
		return c, nil
	}
	select {
	case p.opening[use] <- struct{}{}:
		defer func() { <-p.opening[use] }()
	case <-ctx.Done():
		return nil, s.explainWait(ctx.Err())
	}
	if c := p.opened(s, use); c != nil {
		return c, nil
	}
	if ctx.Err() != nil {
		return nil, s.explainWait(ctx.Err())
	}
	return p.openChannel(s, use)
}

// opened returns the session's usable channel for a purpose, and nil if there is none.
func (p *publisher) opened(s *session, use purpose) *confirmChannel {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.channels[use]; c != nil && c.session == s && c.usable() {
		return c
	}
	return nil
}

func (p *publisher) openChannel(s *session, use purpose) (*confirmChannel, error) {
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
	p.mu.Lock()
	defer p.mu.Unlock()
	if last := p.channels[use]; last != nil {
		go last.retire()
	}
	p.channels[use] = newConfirmChannel(ch, s, use)
	return p.channels[use], nil
}
