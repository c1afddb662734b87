package keyspace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/redis/call"
	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/redis/store"
)

// A node is the subscription on one server.
type node struct {
	server   server
	listener *listener
	log      *slog.Logger
	pubsub   *redis.PubSub
	recheck  *time.Timer   // for the next check
	again    time.Duration // how long the last check that the server did not reply to waited for the next

	known func()        // closes the next
	tried chan struct{} // closed when it is known whether events come

	mu         sync.Mutex
	subscribed bool
	err        error // why no events come
}

func newNode(s server, l *listener, log *slog.Logger) *node {
	tried := make(chan struct{})
	return &node{
		server: s, listener: l, log: log, pubsub: s.Subscribe(context.Background()), recheck: time.NewTimer(checkEvery),
		tried: tried, known: sync.OnceFunc(func() { close(tried) }),
	}
}

const (
	// confirmWithin is how long a subscription may take before it counts as failed.
	confirmWithin = 2 * time.Second

	// checkEvery is how often a server is asked whether it still notifies.
	checkEvery = time.Minute

	// checkAgain is how soon it is asked again after it has not replied, at first. Each further time
	// takes twice as long: no event is handled while a check waits.
	checkAgain = time.Second
)

var errUnconfirmed = errors.New("the server has not confirmed the subscription to expiries")

// expiries is where a server tells which keys have expired.
func expiries(s server) string { return fmt.Sprintf("__keyevent@%d__:expired", s.Options().DB) }

func (n *node) listen(ctx context.Context) {
	defer n.known()
	unconfirmed := time.AfterFunc(confirmWithin, func() { n.report(ctx, errUnconfirmed) })
	defer unconfirmed.Stop()
	_ = n.pubsub.Subscribe(ctx, expiries(n.server)) // the client's library tries again
	events := queue.Events(n.pubsub)
	defer n.recheck.Stop()
	for {
		select {
		case e, open := <-events:
			if !open {
				return
			}
			n.handleEvent(ctx, e)
		case <-n.recheck.C:
			if n.confirmed() { // else the subscription will be followed by a check
				n.check(ctx)
			}
		}
	}
}

// handleEvent wakes the queue of an expired trigger. After a subscription, also one anew, expiries
// may have been missed, and the server may be another one that does not notify.
func (n *node) handleEvent(ctx context.Context, event any) {
	switch e := event.(type) {
	case *redis.Message:
		if channel, ok := store.Triggered(e.Payload); ok {
			n.listener.hub.Wake(channel, time.Time{})
		}
	case *redis.Subscription:
		n.mu.Lock()
		n.subscribed = true
		n.mu.Unlock()
		n.check(ctx)
		n.listener.hub.WakeAll()
	}
}

// checkWithin bounds a check.
const checkWithin = 5 * time.Second

func (n *node) check(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	_, err := call.Do(within, n.listener.calls, func(ctx context.Context) (any, error) { return nil, enable(ctx, n.server, n.listener.prefix) })
	n.report(ctx, err)
	n.recheck.Reset(n.untilNext(err))
}

// untilNext returns how long to wait after a check.
func (n *node) untilNext(err error) time.Duration {
	if err == nil || refused(err) {
		n.again = 0
		return checkEvery
	}
	n.again = min(max(2*n.again, checkAgain), checkEvery)
	return n.again
}

func (n *node) confirmed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.subscribed
}

const remedy = `let notify-keyspace-events contain "Ex" in the server's configuration`

// report notes whether events come, and logs when that changes.
func (n *node) report(ctx context.Context, err error) {
	defer n.known()
	addr := n.server.Options().Addr
	if err != nil {
		err = fmt.Errorf("%s: %w", addr, err)
	}
	was, noted := n.note(err)
	switch {
	case !noted || ctx.Err() != nil:
	case err != nil && was == nil:
		n.log.WarnContext(ctx, "delayq: keyspace gets no expiries; messages wait for the sweep",
			"server", addr, "sweep", n.listener.sweep, "err", err, "remedy", remedy)
	case err == nil && was != nil:
		n.log.InfoContext(ctx, "delayq: keyspace gets expiries again", "server", addr)
	}
}

// note keeps an outcome and returns the one before. It ignores a timeout when the subscription was
// confirmed meanwhile.
func (n *node) note(err error) (was error, noted bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if errors.Is(err, errUnconfirmed) && n.subscribed {
		return n.err, false
	}
	was, n.err = n.err, err
	return was, true
}

func (n *node) failure() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

func (n *node) close() { _ = n.pubsub.Close() }
