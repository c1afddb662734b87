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

	"github.com/delayq/delayq/backend"
)

// A link keeps one connection alive: it connects again whenever the connection breaks. It does not
// use the client library's own recovery, after which the tag of an old delivery would settle a new
// one. It is safe for concurrent use.
type link struct {
	purpose string // for the log
	dial    func(context.Context) (*connection, error)
	setup   func(*amqp.Connection) error // runs on each new connection

	life context.Context // ends with close
	stop context.CancelFunc
	over sync.WaitGroup

	starting chan struct{} // has an item while the first connection is made

	mu       sync.Mutex
	started  bool
	log      *slog.Logger // of the first handle
	current  *session
	changed  chan struct{} // closed when current changes
	failure  error         // of the last try
	channels int           // that the broker allows to a connection; 0 before the first
}

func newLink(purpose string, dial func(context.Context) (*connection, error), setup func(*amqp.Connection) error) *link {
	l := &link{purpose: purpose, dial: dial, setup: setup, starting: make(chan struct{}, 1), changed: make(chan struct{})}
	l.life, l.stop = context.WithCancel(context.Background())
	return l
}

// start makes the first connection and returns its error. Later connections are made in the
// background.
func (l *link) start(ctx context.Context, log *slog.Logger) error {
	_, err := within(ctx, func() (struct{}, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stop := context.AfterFunc(l.life, cancel)
		defer stop()
		err := l.startOnce(ctx, log)
		if l.life.Err() != nil {
			err = backend.ErrClosed
		}
		return struct{}{}, err
	})
	return err
}

func (l *link) startOnce(ctx context.Context, log *slog.Logger) error {
	select {
	case l.starting <- struct{}{}:
		defer func() { <-l.starting }()
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	started := l.started
	l.mu.Unlock()
	if started {
		return nil
	}
	var conn *connection
	err := patiently(ctx, func() (err error) {
		conn, err = l.connect(ctx)
		return err
	})
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life.Err() != nil { // close does not wait for this goroutine
		go func() { _ = conn.CloseDeadline(time.Now().Add(hangUpWithin)) }()
		return backend.ErrClosed
	}
	l.started, l.log = true, log
	s := l.useLocked(conn)
	l.over.Go(func() { l.maintain(s) })
	return nil
}

// connect makes a connection and declares the topology on it. The context bounds both.
func (l *link) connect(ctx context.Context) (*connection, error) {
	conn, err := l.dial(ctx)
	if err != nil {
		return nil, errors.Join(ctx.Err(), err)
	}
	if err := l.setUp(ctx, conn); err != nil {
		return nil, err
	}
	return conn, nil
}

// setUp declares the topology on a new connection, which ends if that fails.
func (l *link) setUp(ctx context.Context, conn *connection) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(time.Now()) })
	defer stop()
	if err := l.setup(conn.Connection); err != nil {
		_ = conn.CloseDeadline(time.Now().Add(hangUpWithin))
		return errors.Join(ctx.Err(), err)
	}
	return nil
}

// setUpAgain declares the topology on a connection of its own: an internal error of the broker closes
// a connection, and then the outcomes of the pushes under way on it are unknown. If no other can be
// made, it takes the link's.
func (l *link) setUpAgain(ctx context.Context) error {
	if _, err := l.session(ctx); err != nil { // waits for a broker that is away
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	dialing, dialed := context.WithTimeout(ctx, nodeTimeout)
	conn, err := l.dial(dialing)
	dialed()
	switch {
	case err == nil:
		if err = l.setUp(ctx, conn); err == nil {
			go func() { _ = conn.CloseDeadline(time.Now().Add(hangUpWithin)) }()
		}
	case ctx.Err() == nil:
		l.log.Warn("delayq: there is no further connection to declare on; taking the open one", "for", l.purpose, "err", err)
		var s *session
		if s, err = l.session(ctx); err == nil {
			err = l.setup(s.conn.Connection)
		}
	}
	if l.life.Err() != nil {
		return backend.ErrClosed
	}
	return err
}

func (l *link) useLocked(conn *connection) *session {
	l.failure = nil
	l.channels = int(conn.Config.ChannelMax)
	s := &session{conn: conn, gone: make(chan struct{}), changed: make(chan struct{})}
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	blockings := conn.NotifyBlocked(make(chan amqp.Blocking, 16))
	l.over.Go(func() { s.watch(closed, blockings) })
	l.setLocked(s)
	return s
}

func (l *link) setLocked(s *session) {
	l.current = s
	close(l.changed)
	l.changed = make(chan struct{})
}

// maintain connects again whenever the connection breaks.
func (l *link) maintain(s *session) {
	for s != nil {
		select {
		case <-s.gone:
		case <-l.life.Done():
			_ = s.conn.CloseDeadline(time.Now().Add(hangUpWithin))
			<-s.gone
		}
		l.mu.Lock()
		l.setLocked(nil)
		l.mu.Unlock()
		if l.life.Err() != nil {
			return
		}
		l.log.Warn("delayq: the connection to RabbitMQ broke; connecting again", "for", l.purpose)
		if s = l.reconnect(); s != nil {
			l.log.Info("delayq: connected to RabbitMQ again", "for", l.purpose)
		}
	}
}

// hangUpWithin bounds how long closing a connection waits for the broker.
const hangUpWithin = 2 * time.Second

// reconnect tries until it succeeds. It returns nil when the link is closed.
func (l *link) reconnect() *session {
	for retry := (backoff{firstPause, 5 * time.Second}); sleep(l.life, retry.next()); {
		conn, err := l.connect(l.life)
		l.mu.Lock()
		if err == nil {
			defer l.mu.Unlock()
			return l.useLocked(conn)
		}
		if l.failure == nil || l.failure.Error() != err.Error() {
			l.log.Warn("delayq: connecting to RabbitMQ failed; trying again", "for", l.purpose, "err", err)
		}
		l.failure = err
		l.mu.Unlock()
	}
	return nil
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
			return nil, l.explainWait(ctx.Err())
		case <-l.life.Done():
			return nil, backend.ErrClosed
		}
	}
}

// explainWait adds to a context's error the reason why the call had to wait.
func (l *link) explainWait(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.current != nil && !l.current.conn.IsClosed():
		return l.current.explainWait(err)
	case l.failure != nil:
		return fmt.Errorf("there is no connection (%w): %w", l.failure, err)
	default:
		return err
	}
}

// close ends the connection. No other one is made.
func (l *link) close() {
	l.stop()
	l.mu.Lock()
	started := l.started
	l.mu.Unlock()
	if started {
		l.over.Wait()
	}
}

// A session is the lifetime of one connection. A message that was received in it can be settled in
// it only.
type session struct {
	conn *connection
	gone chan struct{} // closed when the connection is

	largest atomic.Int64 // bytes of the largest body that the broker has confirmed

	mu      sync.Mutex
	blocked string        // why the broker takes no messages; empty if it does
	changed chan struct{} // closed when blocked changes
}

// watch notes whether the broker takes messages, until the connection ends. Then it closes the socket:
// the client library does so only when no write is blocked any more.
func (s *session) watch(closed <-chan *amqp.Error, blockings <-chan amqp.Blocking) {
	defer func() {
		_ = s.conn.buffer.Close()
		close(s.gone)
	}()
	for {
		select {
		case b, open := <-blockings:
			if !open {
				return
			}
			s.mu.Lock()
			s.blocked = ""
			if b.Active {
				s.blocked = "the broker takes no messages: " + b.Reason
			}
			close(s.changed)
			s.changed = make(chan struct{})
			s.mu.Unlock()
		case <-closed:
			return
		}
	}
}

// unblocked reports whether the broker takes messages.
func (s *session) unblocked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blocked == ""
}

// awaitUnblocked waits until the broker takes messages.
func (s *session) awaitUnblocked(ctx context.Context) error {
	for {
		s.mu.Lock()
		blocked, changed := s.blocked != "", s.changed
		s.mu.Unlock()
		if !blocked {
			return nil
		}
		select {
		case <-changed:
		case <-s.gone:
			return errGone
		case <-ctx.Done():
			return s.explainWait(ctx.Err())
		}
	}
}

// explainWait adds to a context's error the reason why a push had to wait.
func (s *session) explainWait(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blocked == "" {
		return err
	}
	return fmt.Errorf("%s: %w", s.blocked, err)
}
