package keyspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/redis/call"
	"github.com/delayq/delayq/internal/redis/queue"
)

// followEvery is how often the masters of a Cluster are listed anew. Until then the sweep finds a
// new master's messages.
const followEvery = 10 * time.Second

// A listener receives the expiries of all queues of a backend: by one subscription, or on a Cluster
// by one for each master, since a server publishes its own expiries only.
type listener struct {
	masters func(context.Context) ([]server, error)
	calls   *call.Group
	hub     *queue.Hub
	prefix  string
	sweep   time.Duration

	mu     sync.Mutex
	closed bool
	stop   context.CancelFunc // nil until started
	known  chan struct{}      // closed when it is known whether events come
	nodes  map[server]*node
	err    error // of listing the masters
}

func newListener(masters func(context.Context) ([]server, error), calls *call.Group, hub *queue.Hub, prefix string, sweep time.Duration) *listener {
	return &listener{
		masters: masters, calls: calls, hub: hub, prefix: prefix, sweep: sweep,
		known: make(chan struct{}), nodes: make(map[server]*node),
	}
}

// startWithin bounds how long an Open waits for servers that do not reply.
const startWithin = 3 * time.Second

var errStarting = errors.New("not subscribed to expiries yet")

// start begins to listen, once, and waits until it is known whether events come.
func (l *listener) start(ctx context.Context, log *slog.Logger) {
	if !l.launch(log) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	select {
	case <-l.known:
	case <-ctx.Done():
	}
}

// launch starts the goroutine of the listener, if none runs and it is not closed. It reports
// whether one runs.
func (l *listener) launch(log *slog.Logger) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop == nil && !l.closed {
		var ctx context.Context
		ctx, l.stop = context.WithCancel(context.Background())
		l.err = errStarting
		l.calls.Go(func() { l.run(ctx, log) })
	}
	return !l.closed
}

func (l *listener) run(ctx context.Context, log *slog.Logger) {
	l.follow(ctx, log)
	for _, n := range l.all() {
		<-n.tried
	}
	close(l.known)
	t := time.NewTicker(followEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			l.follow(ctx, log)
		case <-ctx.Done():
			return
		}
	}
}

// follow subscribes on new masters, and unsubscribes from servers that are no longer masters.
func (l *listener) follow(ctx context.Context, log *slog.Logger) {
	masters, err := call.Do(ctx, l.calls, l.masters)
	if l.listed(err) && ctx.Err() == nil {
		log.WarnContext(ctx, "delayq: keyspace cannot list the Cluster's masters; messages wait for the sweep", "sweep", l.sweep, "err", err)
	}
	if err != nil {
		return
	}
	l.leave(masters)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range masters {
		if l.nodes[m] == nil && !l.closed {
			n := newNode(m, l, log)
			l.nodes[m] = n
			l.calls.Go(func() { n.listen(ctx) })
		}
	}
}

func (l *listener) all() []*node {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.nodes))
}

// listed keeps the outcome of listing the masters, and reports whether it is a new failure.
func (l *listener) listed(err error) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	news = err != nil && (l.err == nil || errors.Is(l.err, errStarting))
	l.err = err
	return news
}

func (l *listener) leave(masters []server) {
	var gone []*node
	l.mu.Lock()
	for m, n := range l.nodes {
		if !slices.Contains(masters, m) {
			gone = append(gone, n)
			delete(l.nodes, m)
		}
	}
	l.mu.Unlock()
	for _, n := range gone {
		l.calls.Go(n.close) // it waits for a server that is being asked
	}
}

func (l *listener) degraded() error {
	var errs []error
	for _, n := range l.all() {
		if err := n.failure(); err != nil {
			errs = append(errs, err)
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(append(errs, l.err)...)
}

// close ends the subscriptions. The backend's Close waits for their goroutines.
func (l *listener) close() {
	l.mu.Lock()
	l.closed = true
	if l.stop != nil {
		l.stop()
	}
	l.mu.Unlock()
	l.leave(nil)
}

func listMasters(ctx context.Context, c cluster) ([]server, error) {
	var mu sync.Mutex
	var all []server
	err := c.ForEachMaster(ctx, func(_ context.Context, m *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, m)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the Cluster's masters: %w", err)
	}
	return all, nil
}
