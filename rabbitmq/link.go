package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// A link keeps one connection alive: it connects again whenever the connection breaks. It does not
// use the client library's own recovery, after which the tag of an old delivery would settle a new
// one.
type link struct {
	purpose string // for the log
	dial    func(context.Context) (*connection, error)
	setup   func(*amqp.Connection) error // declares what the session needs
	log     *slog.Logger                 // of the first handle

	life context.Context // ends with close
	stop context.CancelFunc
	over sync.WaitGroup

	starting chan struct{} // has one while the first connection is made

	mu      sync.Mutex
	started bool
	current *session
	changed chan struct{} // closed when current changes
	failure error         // of the last try

	channels int // that the broker allows to a connection; 0 before the first
}

// A session is the lifetime of one connection. A message that was received in it can be settled in
// it only.
type session struct {
	conn *connection
	gone chan struct{} // closed when the connection is

	mu      sync.Mutex
	blocked string        // why the broker takes no messages; empty if it does
	moved   chan struct{} // closed when blocked changes
}

func newLink(purpose string, dial func(context.Context) (*connection, error), setup func(*amqp.Connection) error) *link {
	l := &link{purpose: purpose, dial: dial, setup: setup, starting: make(chan struct{}, 1), changed: make(chan struct{})}
	l.life, l.stop = context.WithCancel(context.Background())
	return l
}

// start makes the first connection and returns its error. All later ones are made in the background.
func (l *link) start(ctx context.Context, log *slog.Logger) error {
	_, err := within(ctx, func() (struct{}, error) { return struct{}{}, l.startNow(ctx, log) })
	return err
}

func (l *link) startNow(ctx context.Context, log *slog.Logger) error {
	select {
	case l.starting <- struct{}{}:
		defer func() { <-l.starting }()
	case <-l.life.Done():
		return backend.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	if done, err := l.hasStarted(); done {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(l.life, cancel)
	defer stop()
	conn, err := l.connect(ctx)
	if err == nil && !l.begin(conn, log) {
		_ = conn.CloseDeadline(time.Now().Add(hangUpWithin))
	}
	if l.life.Err() != nil {
		return backend.ErrClosed
	}
	return err
}

// begin keeps the first connection alive. It returns false if the link was closed meanwhile.
func (l *link) begin(conn *connection, log *slog.Logger) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life.Err() != nil {
		return false
	}
	l.started, l.log = true, log
	s := l.enterLocked(conn)
	l.over.Go(func() { l.keep(s) })
	return true
}

// hasStarted reports whether there is nothing to start.
func (l *link) hasStarted() (done bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life.Err() != nil {
		return true, backend.ErrClosed
	}
	return l.started, nil
}

// connect connects and declares. The context bounds both.
func (l *link) connect(ctx context.Context) (*connection, error) {
	conn, err := l.dial(ctx)
	if err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(time.Now()) })
	defer stop()
	if err := l.setup(conn.Connection); err != nil {
		_ = conn.CloseDeadline(time.Now().Add(hangUpWithin))
		return nil, errors.Join(ctx.Err(), err)
	}
	return conn, nil
}

func (l *link) enterLocked(conn *connection) *session {
	l.failure = nil
	l.channels = int(conn.Config.ChannelMax)
	s := &session{conn: conn, gone: make(chan struct{}), moved: make(chan struct{})}
	l.changeLocked(s)
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	blockings := conn.NotifyBlocked(make(chan amqp.Blocking, 16))
	l.over.Go(func() { s.watch(closed, blockings) })
	return s
}

func (l *link) change(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changeLocked(s)
}

func (l *link) changeLocked(s *session) {
	l.current = s
	close(l.changed)
	l.changed = make(chan struct{})
}

// watch notes whether the broker blocks the connection, until it ends.
func (s *session) watch(closed <-chan *amqp.Error, blockings <-chan amqp.Blocking) {
	defer close(s.gone)
	for {
		select {
		case b, open := <-blockings:
			if !open {
				return
			}
			s.block(b)
		case <-closed:
			return
		}
	}
}

func (s *session) block(b amqp.Blocking) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked = ""
	if b.Active {
		s.blocked = "the broker takes no messages: " + b.Reason
	}
	close(s.moved)
	s.moved = make(chan struct{})
}

// flows reports whether the broker takes messages.
func (s *session) flows() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blocked == ""
}

// flowing waits until the broker takes messages.
func (s *session) flowing(ctx context.Context) error {
	for {
		s.mu.Lock()
		why, moved := s.blocked, s.moved
		s.mu.Unlock()
		if why == "" {
			return nil
		}
		select {
		case <-moved:
		case <-s.gone:
			return errGone
		case <-ctx.Done():
			return &blockedError{why, ctx.Err()}
		}
	}
}

// because adds to a context's error why the call had to wait.
func (s *session) because(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blocked == "" {
		return err
	}
	return &blockedError{s.blocked, err}
}

// A blockedError is a context's error with the reason why a push had to wait.
type blockedError struct {
	why string
	err error
}

func (e *blockedError) Error() string { return e.why + ": " + e.err.Error() }
func (e *blockedError) Unwrap() error { return e.err }

// keep connects again each time that the connection breaks.
func (l *link) keep(s *session) {
	for {
		select {
		case <-s.gone:
		case <-l.life.Done():
			_ = s.conn.CloseDeadline(time.Now().Add(hangUpWithin))
			<-s.gone
			l.change(nil)
			return
		}
		l.change(nil)
		l.log.Warn("delayq: the connection to RabbitMQ broke; connecting again", "for", l.purpose)
		if s = l.reconnect(); s == nil {
			return
		}
		l.log.Info("delayq: connected to RabbitMQ again", "for", l.purpose)
	}
}

// hangUpWithin bounds how long closing a connection waits for the broker.
const hangUpWithin = 2 * time.Second

// reconnect connects again, and returns nil when the link is closed.
func (l *link) reconnect() *session {
	for retry := (backoff{firstPause, 5 * time.Second}); ; {
		if !sleep(l.life, retry.next()) {
			return nil
		}
		conn, err := l.connect(l.life)
		if err == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.enterLocked(conn)
		}
		l.fail(err)
	}
}

func (l *link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure == nil || l.failure.Error() != err.Error() {
		l.log.Warn("delayq: connecting to RabbitMQ failed; trying again", "for", l.purpose, "err", err)
	}
	l.failure = err
}

// session waits for a connection that is not broken.
func (l *link) session(ctx context.Context) (*session, error) {
	for {
		l.mu.Lock()
		s, changed := l.current, l.changed
		l.mu.Unlock()
		if s != nil && !s.conn.IsClosed() {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, l.because(ctx.Err())
		case <-l.life.Done():
			return nil, backend.ErrClosed
		}
	}
}

// because adds to a context's error why the call had to wait.
func (l *link) because(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.current != nil && !l.current.conn.IsClosed():
		return l.current.because(err)
	case l.failure != nil:
		return fmt.Errorf("there is no connection (%w): %w", l.failure, err)
	default:
		return err
	}
}

// close ends the connection for good.
func (l *link) close() {
	l.stop()
	l.mu.Lock()
	started := l.started // it cannot start any more
	l.mu.Unlock()
	if started {
		l.over.Wait()
	}
}
