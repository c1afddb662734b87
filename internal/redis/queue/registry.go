package queue

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/call"
	"github.com/delayq/delayq/internal/redis/script"
)

const (
	mostNames    = 10_000               // in a registry
	keepRegistry = 400 * 24 * time.Hour // after the last handle was open
	oldName      = 24 * time.Hour       // then a queue without keys is removed
	enterEvery   = time.Hour            // while handles are open
	enterSoon    = time.Second          // after a failure; doubled after each one
	enterAgain   = time.Minute          // and at most
	enterWithin  = 10 * time.Second
	enterLast    = time.Second // when the backend is closed
	namesAtOnce  = 500
)

//go:embed lua/*.lua
var files embed.FS

var enterScript, forgetScript = load("enter"), load("forget")

func load(name string) *script.Script {
	text, err := files.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // the file is embedded
	}
	return script.Parse(name, string(text))
}

// A registry keeps the names of queues in one sorted set, with the times when a handle was last
// seen open: Redis cannot list the queues among millions of other keys. Handles enter their names
// in the background, when they open and once an hour. No push does. A queue with messages and
// without a handle stays in it for as long as it has keys.
type registry struct {
	script.Runner
	keysOf func(queue string) []string
	life   context.Context //nolint:containedctx // ends when the backend is closed: a timer enters names
	end    context.CancelFunc

	mu      sync.Mutex
	open    map[string]int      // handles
	enter   map[string]struct{} // names to enter
	entered chan struct{}       // closed when the entering that is under way has ended; nil without
	timer   *time.Timer
	wait    time.Duration // until names that failed are entered again
	warned  bool
}

// newRegistry returns the registry of a backend; nil where its settings name no key.
func newRegistry(c *Config) *registry {
	if c.Registry == "" {
		return nil
	}
	r := &registry{
		Runner: script.Runner{Client: c.Client, Calls: c.Calls, Keys: []string{c.Registry}},
		keysOf: c.Keys, open: make(map[string]int), enter: make(map[string]struct{}),
	}
	r.life, r.end = context.WithCancel(context.Background())
	return r
}

// opened notes an open handle.
func (r *registry) opened(name string, log *slog.Logger) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open[name]++
	if r.open[name] > 1 || r.life.Err() != nil {
		return
	}
	r.enter[name] = struct{}{}
	r.startLocked(log)
}

// closed notes a handle that closes.
func (r *registry) closed(name string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open[name]--; r.open[name] <= 0 {
		delete(r.open, name)
	}
	if len(r.open) == 0 && len(r.enter) == 0 && r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
}

// startLocked starts to enter names, unless a goroutine is doing so.
func (r *registry) startLocked(log *slog.Logger) {
	if r.entered != nil {
		return
	}
	r.entered = make(chan struct{})
	r.Calls.Go(func() { r.run(log) })
}

// run enters names until there are no more, and sets the timer of the next time.
func (r *registry) run(log *slog.Logger) {
	for {
		r.mu.Lock()
		names := slices.Collect(maps.Keys(r.enter))
		names = names[:min(namesAtOnce, len(names))]
		for _, name := range names {
			delete(r.enter, name)
		}
		if len(names) == 0 {
			r.doneLocked(enterEvery, log)
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		err := r.enterNames(r.life, names)
		r.mu.Lock()
		if err == nil {
			r.wait = 0
			r.mu.Unlock()
			continue
		}
		// Those whose handles have closed since are entered too: a queue keeps its messages.
		for _, name := range names {
			r.enter[name] = struct{}{}
		}
		r.wait = min(max(2*r.wait, enterSoon), enterAgain)
		r.warnLocked(err, log)
		r.doneLocked(r.wait, log)
		r.mu.Unlock()
		return
	}
}

func (r *registry) doneLocked(next time.Duration, log *slog.Logger) {
	close(r.entered)
	r.entered = nil
	if r.timer != nil {
		r.timer.Stop()
		r.timer = nil
	}
	if len(r.open) == 0 && len(r.enter) == 0 || r.life.Err() != nil {
		return
	}
	r.timer = time.AfterFunc(next, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.life.Err() != nil {
			return
		}
		for name := range r.open {
			r.enter[name] = struct{}{}
		}
		r.startLocked(log)
	})
}

// warnLocked logs once that a server rejects the names. It does not log a server that cannot be
// reached, since all other calls fail then too.
func (r *registry) warnLocked(err error, log *slog.Logger) {
	if reply := redis.Error(nil); r.warned || !errors.As(err, &reply) {
		return
	}
	r.warned = true
	log.Warn("delayq: the server rejects the list of queues; Queues does not list this process's", "key", r.Keys[0], "err", err)
}

// enterNames enters names, and removes old ones whose queues have no keys.
func (r *registry) enterNames(ctx context.Context, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, enterWithin)
	defer cancel()
	args := []any{mostNames, int64(keepRegistry / time.Second), int64(oldName / time.Second)}
	for _, name := range names {
		args = append(args, name)
	}
	reply, err := r.Run(ctx, enterScript, args...)
	if err != nil {
		return err
	}
	old, _ := reply.([]any)
	if len(old) == 0 {
		return nil
	}
	return r.forgetGone(ctx, old)
}

// forgetGone removes those of the names whose queues have no keys.
func (r *registry) forgetGone(ctx context.Context, old []any) error {
	gone, err := call.Do(ctx, r.Calls, func(ctx context.Context) ([]any, error) {
		pipe := r.Client.Pipeline()
		counts := make([]*redis.IntCmd, len(old))
		for i, name := range old {
			counts[i] = pipe.Exists(ctx, r.keysOf(fmt.Sprint(name))...)
		}
		if _, err := pipe.Exec(ctx); err != nil {
			return nil, fmt.Errorf("looking for the keys of queues: %w", err)
		}
		var gone []any
		for i, n := range counts {
			if n.Val() == 0 {
				gone = append(gone, old[i])
			}
		}
		return gone, nil
	})
	if err != nil || len(gone) == 0 {
		return err
	}
	_, err = r.Run(ctx, forgetScript, append([]any{int64(oldName / time.Second)}, gone...)...)
	return err
}

// names returns the names of the registry and of the open handles, sorted.
func (r *registry) names(ctx context.Context) ([]string, error) {
	if err := r.enterNames(ctx, nil); err != nil {
		return nil, err
	}
	names, err := call.Do(ctx, r.Calls, func(ctx context.Context) ([]string, error) {
		return r.Client.ZRange(ctx, r.Keys[0], 0, -1).Result()
	})
	if err != nil {
		return nil, fmt.Errorf("reading the list of queues: %w", script.OfRead(ctx, err))
	}
	r.mu.Lock()
	names = slices.AppendSeq(names, maps.Keys(r.open))
	r.mu.Unlock()
	slices.Sort(names)
	return slices.Compact(names), nil
}

// remove removes a name, after this process has entered the names of its handles.
func (r *registry) remove(ctx context.Context, name string) error {
	if r == nil {
		return nil
	}
	if err := r.settled(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	delete(r.enter, name)
	r.mu.Unlock()
	_, err := r.Run(ctx, forgetScript, 0, name)
	return err
}

// close waits up to a second for the names that are being entered, for programs that only push
// once. Then it stops entering names.
func (r *registry) close() {
	if r == nil {
		return
	}
	within, cancel := context.WithTimeout(r.life, enterLast)
	defer cancel()
	_ = r.settled(within)
	r.end()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
}

// settled waits until this process has entered the names of its handles.
func (r *registry) settled(ctx context.Context) error {
	r.mu.Lock()
	entered := r.entered
	r.mu.Unlock()
	if entered == nil {
		return nil
	}
	select {
	case <-entered:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Queues is as in admin.Lister.
func (b *Backend) Queues(ctx context.Context) ([]string, error) {
	if err := b.usable(); err != nil {
		return nil, err
	}
	if b.registry == nil {
		return nil, backend.ErrUnsupported
	}
	return b.registry.names(ctx)
}
