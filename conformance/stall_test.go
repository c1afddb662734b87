package conformance_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/zsetpoll"
)

var stallRounds = flag.Int("stall.rounds", 0, "repeat TestStalledServer so often, at each reply, and allow 50ms instead of seconds: for a machine at rest, with -parallel 8")

const (
	stallFirst   = 15 * time.Millisecond // until the context of a call ends
	stallContext = 60 * time.Millisecond // until that of a call that would wait for ever
	stallBusy    = 2 * time.Second       // that a busy machine may add to it
	stallStrict  = 50 * time.Millisecond
	stallMost    = 1000 // replies that a call may need
)

// TestStalledServer has a server stop replying at each reply in turn, for each public call. The
// call returns when its context ends, whatever the client's options are, and its outcome is known
// or ErrOutcomeUnknown.
func TestStalledServer(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	for name, store := range stallStores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			times := new(stallTimes)
			for call, c := range stallCalls() {
				t.Run(call, func(t *testing.T) {
					t.Parallel()
					s := &stalls{T: t, store: store, server: store.serve(t), times: times}
					for round := range max(*stallRounds, 1) {
						s.all(c, round, false)
						s.all(c, round, true)
					}
				})
			}
			t.Cleanup(func() {
				t.Logf("the longest return after the end of a context: %v; %d calls, %d of them stalled", times.worst, times.calls, times.stalled)
			})
		})
	}
}

type stalls struct {
	*testing.T
	store  stallStore
	server *stallServer
	times  *stallTimes
}

// stallTimes are those of all calls on a store.
type stallTimes struct {
	mu             sync.Mutex
	worst          map[string]time.Duration // by how the context ended
	calls, stalled int
}

func (s *stallTimes) add(cause string, took time.Duration, stalled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if stalled {
		s.stalled++
	}
	if s.worst == nil {
		s.worst = make(map[string]time.Duration)
	}
	s.worst[cause] = max(s.worst[cause], took)
}

var stallQueues atomic.Int64

// nextStall skips most of the hundreds of replies in which RabbitMQ declares its levels. Each round
// of a repeated test has others of them.
func nextStall(replies, round int) int {
	switch {
	case replies < 8 || *stallRounds > 0 && replies < 32:
		return replies + 1
	case *stallRounds > 0 && replies == 32:
		return replies + 1 + round%16
	case *stallRounds > 0:
		return replies + 16
	}
	return 2 * replies
}

// all stalls the server at each reply. In nine of ten rounds the calls share a backend that has
// opened its connections before. In the others each call has its own. A context that ends before
// the server stalls proves nothing, and the next one lasts longer.
func (s *stalls) all(call stallCall, round int, expires bool) {
	all := &stallRound{T: s.T}
	defer all.end()
	var b backend.Backend
	if round%10 != 0 && !call.opens {
		b = s.store.open(all, s.server)
		all.Cleanup(func() { _ = b.Close() })
		s.undisturbed(b, call)
	}
	within := stallFirst
	for replies := 0; ; {
		stalled, done := s.once(b, call, expires, replies, within)
		switch {
		case done, call.waits && !stalled && within >= stallContext:
			return
		case stalled:
			replies = nextStall(replies, round)
		default:
			within *= 2
		}
		if replies > stallMost || within > time.Minute {
			s.Fatalf("the call has not returned after %d replies and %v", replies, within)
		}
	}
}

// undisturbed makes the call while the server replies.
func (s *stalls) undisturbed(b backend.Backend, call stallCall) {
	r := s.begin()
	defer r.end()
	if r.ready(b, call) != nil {
		return // once tells why
	}
	ctx, cancel := context.WithTimeout(s.Context(), stallContext)
	defer cancel()
	_ = call.do(ctx, r)
}

func (s *stalls) begin() *stallRound {
	return &stallRound{T: s.T, store: s.store, server: s.server, name: fmt.Sprintf("stall-%d-%d", time.Now().UnixNano(), stallQueues.Add(1))}
}

// once stalls the server after some replies to a call. It reports whether a reply was held back
// when the call's context ended, and whether the call was done before that.
func (s *stalls) once(b backend.Backend, call stallCall, expires bool, replies int, within time.Duration) (stalled, done bool) {
	r := s.begin()
	defer r.end()
	if err := r.ready(b, call); errors.Is(err, delayq.ErrUnsupported) {
		return false, true
	} else if err != nil {
		s.Fatal(err)
	}
	if s.server != nil {
		s.server.stallAfter(replies)
		defer s.server.resume()
	}
	ctx, ended, cancel := stallContextOf(s.T, expires, within)
	defer cancel()
	err := call.do(ctx, r)
	took := time.Since(ended())
	stalled = s.server != nil && s.server.stalled()
	if ctx.Err() == nil {
		return stalled, true // with whatever it returned
	}
	s.times.add(ctx.Err().Error(), took, stalled)
	what := fmt.Sprintf("%d replies, context %v of %v", replies, ctx.Err(), within)
	allowed := stallBusy
	if *stallRounds > 0 {
		allowed = stallStrict
	}
	if took > allowed {
		s.Errorf("%s: the call returned %v after the end of its context, with: %v", what, took, err)
	}
	if err != nil && !errors.Is(err, ctx.Err()) {
		s.Errorf("%s: the call returned: %v", what, err)
	}
	if s.server == nil {
		return false, true
	}
	s.server.resume()
	if err := r.check(call, err); err != nil {
		s.Errorf("%s: %v", what, err)
	}
	return stalled, false
}

// ready opens the queue and prepares it for the call. Without a backend it opens one.
func (r *stallRound) ready(b backend.Backend, call stallCall) error {
	if call.opens {
		return nil
	}
	open := r.new
	if b != nil {
		open = func(ctx context.Context) error { return r.on(ctx, b) }
	}
	if err := open(r.Context()); err != nil {
		return err
	}
	if call.prepare == nil {
		return nil
	}
	return call.prepare(r)
}

// check looks at the queue after a call whose context ended, when the server replies again.
func (r *stallRound) check(call stallCall, err error) error {
	if err == nil {
		return nil
	}
	if call.after != nil {
		if err := call.after(r); err != nil {
			return fmt.Errorf("after the stall: %w", err)
		}
	}
	if call.untouched != nil && !errors.Is(err, delayq.ErrOutcomeUnknown) {
		if touched := call.untouched(r); touched != nil {
			return fmt.Errorf("the call returned: %w\nThat is no unknown outcome, but the call has changed something: %w", err, touched)
		}
	}
	return nil
}

// stallContextOf returns a context that ends soon, and the time of its end.
func stallContextOf(t *testing.T, expires bool, within time.Duration) (ctx context.Context, ended func() time.Time, cancel context.CancelFunc) {
	t.Helper()
	if expires {
		ctx, cancel = context.WithTimeout(t.Context(), within)
		deadline, _ := ctx.Deadline()
		return ctx, func() time.Time { return deadline }, cancel
	}
	ctx, end := context.WithCancel(t.Context())
	var mu sync.Mutex
	at := time.Now().Add(time.Hour) // not yet
	timer := time.AfterFunc(within, func() {
		mu.Lock()
		defer mu.Unlock()
		at = time.Now()
		end()
	})
	return ctx, func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return at
		}, func() {
			timer.Stop()
			end()
		}
}

// TestQueuesOfAStalledServer has many queues of one backend wait, each with a context of its own.
func TestQueuesOfAStalledServer(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	for name, store := range stallStores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if store.upstream == nil {
				t.Skip("there is no server that could stall")
			}
			server := store.serve(t)
			b := store.open(t, server)
			defer func() {
				server.resume()
				if err := b.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}()
			var qs []delayq.Queue
			for i := range 20 {
				q, err := delayq.New(t.Context(), fmt.Sprintf("stall-%d-%d", time.Now().UnixNano(), i), delayq.WithBackend(b), delayq.WithLogger(slog.New(slog.DiscardHandler)))
				if err != nil {
					t.Fatal(err)
				}
				qs = append(qs, q)
			}
			server.stallAfter(0)
			const within = 300 * time.Millisecond
			var receiving sync.WaitGroup
			for _, q := range qs {
				receiving.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), within)
					defer cancel()
					began := time.Now()
					_, err := q.Receive(ctx)
					if took := time.Since(began); took > within+stallBusy || !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("Receive took %v, with: %v", took, err)
					}
				})
			}
			receiving.Wait()
		})
	}
}

// closeMost is the documented 5s, and what a busy machine adds.
const closeMost = 5*time.Second + 2*stallBusy

// TestCloseOnAStalledServer closes a queue and its backend while a call, a Receive and the
// subscription wait for the server. No goroutine is left when the client gives up, or the server
// replies again.
func TestCloseOnAStalledServer(t *testing.T) {
	upstream := testenv.SharedRedis(t).Addr()
	for name, tt := range map[string]struct {
		open    func(redis.UniversalClient) backend.Backend
		timeout time.Duration
	}{
		"zsetpoll":          {func(c redis.UniversalClient) backend.Backend { return zsetpoll.New(c) }, time.Second},
		"zsetpoll, patient": {func(c redis.UniversalClient) backend.Backend { return zsetpoll.New(c) }, -1},
		"zsetpoll-arbitrate": {func(c redis.UniversalClient) backend.Backend {
			return zsetpoll.New(c, zsetpoll.Claims(zsetpoll.Arbitrate))
		}, time.Second},
		"keyspace": {func(c redis.UniversalClient) backend.Backend { return keyspace.New(c) }, time.Second},
		"redisson": {func(c redis.UniversalClient) backend.Backend {
			return redisson.New(c, redisson.WithCodec(redisson.Bytes))
		}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := testenv.Proxy(t, upstream)
			client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), ReadTimeout: tt.timeout, MaxRetries: -1})
			defer func() { _ = client.Close() }()
			ignored := goleak.IgnoreCurrent()
			b := tt.open(client)
			q, err := delayq.New(t.Context(), fmt.Sprintf("stall-%d", time.Now().UnixNano()), delayq.WithBackend(b), delayq.WithLogger(slog.New(slog.DiscardHandler)))
			if err != nil {
				t.Fatal(err)
			}
			proxy.StallAfter(0)
			ctx, cancel := context.WithTimeout(t.Context(), stallContext)
			defer cancel()
			for what, call := range map[string]func() error{
				"Push":    func() error { return second(q.Push(ctx, []byte("x"))) },
				"Receive": func() error { return second(q.Receive(ctx)) },
			} {
				if err := call(); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s returned: %v", what, err)
				}
			}
			began := time.Now()
			err = errors.Join(q.Close(), b.Close())
			if took := time.Since(began); took > closeMost || tt.timeout < 0 && !errors.Is(err, delayq.ErrUnavailable) {
				t.Errorf("closing took %v, with: %v", took, err)
			}
			proxy.Resume()
			noneLeft(t, ignored)
		})
	}
}

// noneLeft waits until no goroutine is left but those of the test's own proxy and client.
func noneLeft(t *testing.T, ignored goleak.Option) {
	t.Helper()
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		err = goleak.Find(ignored, goleak.IgnoreAnyFunction("github.com/delayq/delayq/internal/testenv.(*link).run"),
			goleak.IgnoreAnyFunction("github.com/delayq/delayq/internal/testenv.(*link).passRequests"),
			goleak.IgnoreAnyFunction("github.com/delayq/delayq/internal/testenv.(*link).takeReplies"),
			goleak.IgnoreAnyFunction("github.com/delayq/delayq/internal/testenv.(*link).passReplies"))
		if err == nil {
			return
		}
	}
	t.Errorf("after Close: %v", err)
}
