package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/schedule"
	"github.com/delayq/delayq/zsetpoll"
)

var stallRounds = flag.Int("stall.rounds", 0, "repeat TestStalledServer so often, and allow 50ms instead of seconds: for a machine at rest, with -parallel 1")

const (
	stallContext = 60 * time.Millisecond // of a call
	stallBusy    = 2 * time.Second       // that a busy machine may add to it
	stallStrict  = 50 * time.Millisecond
	stallMost    = 32 // replies that a call may need
)

// A stallStore is a store behind a server that stops replying. Without a server nothing stalls.
type stallStore struct {
	upstream func(*testing.T) []string
	open     func(*testing.T, *stallServer) backend.Backend
	url      func(t *testing.T, s *stallServer, queue string) string // nil for none
	keeps    bool                                                    // a message that an ended Receive has claimed is handed out again as attempt 1
}

// A stallServer is the proxies before one server, or before each node of a Cluster.
type stallServer struct {
	route map[string]*testenv.FaultProxy // by the address behind it
	addr  string                         // of the first proxy
}

// serve returns nil for a store without a server.
func (s stallStore) serve(t *testing.T) *stallServer {
	t.Helper()
	if s.upstream == nil {
		return nil
	}
	server := &stallServer{route: make(map[string]*testenv.FaultProxy)}
	for _, addr := range s.upstream(t) {
		server.route[addr] = testenv.Proxy(t, addr)
		server.addr = cmp.Or(server.addr, server.route[addr].Addr())
	}
	return server
}

func (s *stallServer) stallAfter(replies int) {
	for _, p := range s.route {
		p.StallAfter(replies)
	}
}

func (s *stallServer) resume() {
	for _, p := range s.route {
		p.Resume()
	}
}

// dial connects to the proxies instead of the nodes' own addresses.
func (s *stallServer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, s.route[addr].Addr())
}

func stallStores() map[string]stallStore {
	redisAt := func(t *testing.T) []string { return []string{testenv.SharedRedis(t).Addr()} }
	clusterAt := func(t *testing.T) []string { return testenv.SharedRedisCluster(t).Addrs() }
	// The client library's defaults end no call by its context.
	onRedis := func(scheme string, open func(redis.UniversalClient) backend.Backend) stallStore {
		return stallStore{upstream: redisAt, keeps: true,
			open: func(t *testing.T, s *stallServer) backend.Backend {
				client := redis.NewClient(&redis.Options{Addr: s.addr})
				t.Cleanup(func() { _ = client.Close() })
				return open(client)
			},
			url: func(_ *testing.T, s *stallServer, queue string) string { return fmt.Sprintf(scheme, s.addr, queue) },
		}
	}
	onCluster := func(open func(redis.UniversalClient) backend.Backend) stallStore {
		return stallStore{upstream: clusterAt, keeps: true, open: func(t *testing.T, s *stallServer) backend.Backend {
			client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: testenv.SharedRedisCluster(t).Addrs(), Dialer: s.dial})
			t.Cleanup(func() { _ = client.Close() })
			return open(client)
		}}
	}
	claiming := func(name string, m zsetpoll.Mode) stallStore {
		return onRedis("zsetpoll://%s/%s?claims="+name, func(c redis.UniversalClient) backend.Backend { return zsetpoll.New(c, zsetpoll.Claims(m)) })
	}
	return map[string]stallStore{
		"memory":             {open: func(*testing.T, *stallServer) backend.Backend { return memory.New() }, keeps: true},
		"zsetpoll-cluster":   onCluster(func(c redis.UniversalClient) backend.Backend { return zsetpoll.New(c) }),
		"keyspace-cluster":   onCluster(func(c redis.UniversalClient) backend.Backend { return keyspace.New(c) }),
		"zsetpoll":           claiming("script", zsetpoll.Script),
		"zsetpoll-arbitrate": claiming("arbitrate", zsetpoll.Arbitrate),
		"zsetpoll-mover":     claiming("mover", zsetpoll.Mover),
		"zsetpoll-confirmed": onRedis("zsetpoll://%s/%s?wait_replicas=1,1ms", func(c redis.UniversalClient) backend.Backend {
			return zsetpoll.New(c, zsetpoll.WaitReplicas(1, time.Millisecond))
		}),
		"keyspace": onRedis("keyspace://%s/%s", func(c redis.UniversalClient) backend.Backend { return keyspace.New(c) }),
		"redisson": onRedis("redisson://%s/%s?format=both&codec=bytes", func(c redis.UniversalClient) backend.Backend {
			return redisson.New(c, redisson.WithCodec(redisson.Bytes), redisson.Format(redisson.Both))
		}),
		"redisson-envelope": onRedis("redisson://%s/%s?format=both", func(c redis.UniversalClient) backend.Backend {
			return redisson.New(c, redisson.Format(redisson.Both))
		}),
		"rabbitmq": stallRabbit(),
	}
}

func stallRabbit() stallStore {
	url := func(t *testing.T, s *stallServer) string {
		server := testenv.SharedRabbitMQ(t)
		return strings.Replace(server.VhostURL("/"), server.Addr(), s.addr, 1)
	}
	return stallStore{
		upstream: func(t *testing.T) []string { return []string{testenv.SharedRabbitMQ(t).Addr()} },
		open: func(t *testing.T, s *stallServer) backend.Backend {
			return &openedRabbit{Backend: rabbitmq.New(url(t, s))}
		},
		url: func(t *testing.T, s *stallServer, queue string) string {
			return strings.Replace(url(t, s), "amqp://", "rabbitmq://", 1) + "/" + queue
		},
	}
}

// A stallCall is one public call. prepare readies the queue while the server still replies.
type stallCall struct {
	prepare func(*stallRound) error
	do      func(context.Context, *stallRound) error
	after   func(*stallRound) error // runs when the server replies again after a call that failed; may be nil

	// untouched returns an error when the call has changed something. It runs when the server
	// replies again, after an error that does not match ErrOutcomeUnknown. It is nil for a call
	// that changes nothing that can be read.
	untouched func(*stallRound) error
}

// A stallRound is one call on a queue of its own.
type stallRound struct {
	t      *testing.T
	store  stallStore
	server *stallServer
	name   string
	q      delayq.Queue
	ids    []string
	ds     []*delayq.Delivery
}

func stallCalls() map[string]stallCall {
	fresh := func(do func(context.Context, *stallRound) error) stallCall { return stallCall{do: do} }
	waits := func(do func(context.Context, *stallRound) error) stallCall {
		return stallCall{prepare: (*stallRound).later, do: do}
	}
	pushes := func(do func(context.Context, *stallRound) error) stallCall {
		return stallCall{do: do, untouched: (*stallRound).empty}
	}
	takes := func(do func(context.Context, *stallRound) error) stallCall {
		return stallCall{prepare: (*stallRound).push, do: do, after: (*stallRound).comesAgain}
	}
	// once fails the second time.
	once := func(prepare func(*stallRound) error, do func(context.Context, *stallRound) error) stallCall {
		return stallCall{prepare: prepare, do: do, untouched: func(r *stallRound) error { return do(r.t.Context(), r) }}
	}
	settles := func(do func(context.Context, *stallRound) error) stallCall { return once((*stallRound).receive, do) }
	one := func(do func(context.Context, *delayq.Delivery) error) stallCall {
		return settles(func(ctx context.Context, r *stallRound) error { return do(ctx, r.ds[0]) })
	}
	dead := func(do func(context.Context, *stallRound, delayq.DeadLetters) error) stallCall {
		return once((*stallRound).deadLetter, func(ctx context.Context, r *stallRound) error { return do(ctx, r, r.q.Dead()) })
	}
	return map[string]stallCall{
		"New":  fresh(func(ctx context.Context, r *stallRound) error { return r.new(ctx) }),
		"Open": fresh(func(ctx context.Context, r *stallRound) error { return r.open(ctx) }),
		"Push": pushes(func(ctx context.Context, r *stallRound) error { return second(r.q.Push(ctx, []byte("x"))) }),
		"PushBatch": pushes(func(ctx context.Context, r *stallRound) error {
			return second(r.q.PushBatch(ctx, make([]delayq.Message, 3)))
		}),
		"Stats":  fresh(func(ctx context.Context, r *stallRound) error { return second(r.q.Stats(ctx)) }),
		"Purge":  once((*stallRound).later, func(ctx context.Context, r *stallRound) error { return single(r.q.Purge(ctx)) }),
		"Cancel": once((*stallRound).later, func(ctx context.Context, r *stallRound) error { return r.q.Cancel(ctx, r.ids[0]) }),
		"Reschedule": {prepare: (*stallRound).later, untouched: (*stallRound).dueInAnHour, do: func(ctx context.Context, r *stallRound) error {
			return r.q.Reschedule(ctx, r.ids[0], time.Now().Add(2*time.Hour))
		}},
		"Peek":          waits(func(ctx context.Context, r *stallRound) error { _, _, err := r.q.Peek(ctx, "", 10); return err }),
		"Receive":       takes(func(ctx context.Context, r *stallRound) error { return second(r.q.Receive(ctx)) }),
		"Receive, none": fresh(func(ctx context.Context, r *stallRound) error { return second(r.q.Receive(ctx)) }),
		"ReceiveBatch":  takes(func(ctx context.Context, r *stallRound) error { return second(r.q.ReceiveBatch(ctx, 10)) }),
		"AckBatch":      settles(func(ctx context.Context, r *stallRound) error { return r.q.AckBatch(ctx, r.ds) }),
		"Ack":           one(func(ctx context.Context, d *delayq.Delivery) error { return d.Ack(ctx) }),
		"Nack":          one(func(ctx context.Context, d *delayq.Delivery) error { return d.Nack(ctx, time.Hour) }),
		"Nack, headers": one(func(ctx context.Context, d *delayq.Delivery) error {
			return d.Nack(ctx, time.Hour, delayq.NackHeaders(map[string]string{"tries": "1"}))
		}),
		"NackBatch":    settles(func(ctx context.Context, r *stallRound) error { return r.q.NackBatch(ctx, r.ds, time.Hour) }),
		"Release":      one(func(ctx context.Context, d *delayq.Delivery) error { return d.Release(ctx) }),
		"ReleaseBatch": settles(func(ctx context.Context, r *stallRound) error { return r.q.ReleaseBatch(ctx, r.ds) }),
		"ExtendBatch":  settles(func(ctx context.Context, r *stallRound) error { return r.q.ExtendBatch(ctx, r.ds, time.Minute) }),
		"DeadBatch":    settles(func(ctx context.Context, r *stallRound) error { return r.q.DeadBatch(ctx, r.ds, "reason") }),
		"Extend":       one(func(ctx context.Context, d *delayq.Delivery) error { return d.Extend(ctx, time.Minute) }),
		"Dead":         one(func(ctx context.Context, d *delayq.Delivery) error { return d.Dead(ctx, "reason") }),
		"Repeat": fresh(func(ctx context.Context, r *stallRound) error {
			return schedule.Repeat(ctx, r.q, "hourly", schedule.Every(time.Hour), []byte("x"))
		}),
		"Dead.List": dead(func(ctx context.Context, _ *stallRound, l delayq.DeadLetters) error {
			_, _, err := l.List(ctx, "", 10)
			return err
		}),
		"Dead.Redrive": dead(func(ctx context.Context, r *stallRound, l delayq.DeadLetters) error {
			return l.Redrive(ctx, r.ds[0].ID)
		}),
		"Dead.Delete":     dead(func(ctx context.Context, r *stallRound, l delayq.DeadLetters) error { return l.Delete(ctx, r.ds[0].ID) }),
		"Dead.RedriveAll": dead(func(ctx context.Context, _ *stallRound, l delayq.DeadLetters) error { return single(l.RedriveAll(ctx)) }),
	}
}

func second[T any](_ T, err error) error { return err }

// single rejects the success of a call that found another number of messages than one.
func single[T int | int64](n T, err error) error {
	if err == nil && n != 1 {
		err = fmt.Errorf("it found %d messages, want 1", n)
	}
	return err
}

func (r *stallRound) push() error {
	id, err := r.q.Push(r.t.Context(), []byte("x"))
	r.ids = append(r.ids, id)
	return stored(err)
}

func (r *stallRound) later() error {
	id, err := r.q.Push(r.t.Context(), []byte("x"), delayq.After(time.Hour))
	r.ids = append(r.ids, id)
	return stored(err)
}

// stored accepts a push that no replica has confirmed: there is none.
func stored(err error) error {
	if errors.Is(err, delayq.ErrUnconfirmed) {
		return nil
	}
	return err
}

func (r *stallRound) receive() error {
	if err := r.push(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	d, err := r.q.Receive(ctx)
	r.ds = append(r.ds, d)
	return err
}

// comesAgain wants the message that a Receive may have claimed after it had returned.
func (r *stallRound) comesAgain() error {
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	d, err := r.q.Receive(ctx)
	if err == nil && (d.ID != r.ids[0] && r.ids[0] != "" || r.store.keeps && d.Attempt != 1) {
		err = fmt.Errorf("attempt %d of %q came, want attempt 1 of %q", d.Attempt, d.ID, r.ids[0])
	}
	return err
}

// empty wants no message in the queue.
func (r *stallRound) empty() error {
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Second)
	defer cancel()
	if d, err := r.q.Receive(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("received %v, with: %w", d, err)
	}
	return nil
}

// dueInAnHour wants the message of later where it was.
func (r *stallRound) dueInAnHour() error {
	page, _, err := r.q.Peek(r.t.Context(), "", 1)
	if err == nil && (len(page) != 1 || time.Until(page[0].Due) > time.Hour) {
		err = fmt.Errorf("the queue has %v", page)
	}
	return err
}

func (r *stallRound) deadLetter() error {
	if err := r.receive(); err != nil {
		return err
	}
	return r.ds[0].Dead(r.t.Context(), "reason")
}

func (r *stallRound) new(ctx context.Context) error {
	b := r.store.open(r.t, r.server)
	q, err := delayq.New(ctx, r.name, delayq.WithBackend(b), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	r.closeLater(q, err, b.Close)
	return cmp.Or(err, ctx.Err())
}

func (r *stallRound) open(ctx context.Context) error {
	if r.store.url == nil {
		return nil
	}
	q, err := delayq.Open(ctx, r.store.url(r.t, r.server, r.name), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	r.closeLater(q, err, func() error { return nil })
	return cmp.Or(err, ctx.Err())
}

// closeLater closes the queue when the server replies again.
func (r *stallRound) closeLater(q delayq.Queue, err error, closeBackend func() error) {
	r.t.Cleanup(func() {
		if err == nil {
			_ = q.Close()
		}
		_ = closeBackend()
	})
}

// TestStalledServer has a server stop replying at each reply in turn, for each public call. The
// call returns when its context ends, whatever the client's options are, and its outcome is known
// or ErrOutcomeUnknown.
func TestStalledServer(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	for name, store := range stallStores() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			longest := new(stallTimes)
			for call, c := range stallCalls() {
				t.Run(call, func(t *testing.T) {
					t.Parallel()
					s := &stalls{t: t, store: store, server: store.serve(t), times: longest}
					for range max(*stallRounds, 1) {
						s.all(c)
					}
				})
			}
			t.Cleanup(func() {
				t.Logf("the longest return after the end of a context: %v cancelled, %v expired; %d calls", longest.worst[0], longest.worst[1], longest.calls)
			})
		})
	}
}

type stalls struct {
	t      *testing.T
	store  stallStore
	server *stallServer
	times  *stallTimes
}

// stallTimes are those of all calls on a store.
type stallTimes struct {
	mu    sync.Mutex
	worst [2]time.Duration
	calls int
}

func (s *stallTimes) add(kind int, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.worst[kind] = max(s.worst[kind], took)
}

var stallQueues atomic.Int64

// nextStall skips some of the many replies that RabbitMQ's connections take to open, unless the
// test is repeated.
func nextStall(replies int) int {
	if replies < 8 || *stallRounds > 0 {
		return replies + 1
	}
	return 2 * replies
}

func (s *stalls) all(call stallCall) {
	for kind, expires := range []bool{false, true} {
		for replies := 0; replies <= stallMost; replies = nextStall(replies) {
			var done bool
			kept := s.t.Run(fmt.Sprintf("expires=%v/%d", expires, replies), func(t *testing.T) { done = s.once(t, call, kind, expires, replies) })
			if done || !kept {
				break
			}
		}
	}
}

// once reports whether the call needed no more replies than that.
func (s *stalls) once(t *testing.T, call stallCall, kind int, expires bool, replies int) (done bool) {
	r := &stallRound{t: t, store: s.store, server: s.server, name: fmt.Sprintf("stall-%d-%d", time.Now().UnixNano(), stallQueues.Add(1))}
	b := s.store.open(t, s.server)
	q, err := delayq.New(t.Context(), r.name, delayq.WithBackend(b), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = errors.Join(q.Close(), b.(admin.Remover).Remove(context.WithoutCancel(t.Context()), r.name), b.Close())
	}()
	r.q = q
	if call.prepare != nil {
		if err := call.prepare(r); errors.Is(err, delayq.ErrUnsupported) {
			return true
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if s.server != nil {
		s.server.stallAfter(replies)
		defer s.server.resume()
	}
	ctx, ended, cancel := stallContextOf(t, expires)
	defer cancel()
	err = call.do(ctx, r)
	took := time.Since(ended())
	s.times.add(kind, took)
	allowed := stallBusy
	if *stallRounds > 0 {
		allowed = stallStrict
	}
	if took > allowed {
		t.Errorf("the call returned %v after the end of its context, with: %v", took, err)
	}
	if ctx.Err() == nil {
		return true // with whatever it returned
	}
	if err != nil && !errors.Is(err, ctx.Err()) {
		t.Errorf("after the end of its context the call returned: %v", err)
	}
	if s.server == nil {
		return true
	}
	s.server.resume()
	if call.after != nil && err != nil {
		if err := call.after(r); err != nil {
			t.Errorf("after the stall: %v", err)
		}
	}
	if call.untouched != nil && err != nil && !errors.Is(err, delayq.ErrOutcomeUnknown) {
		if touched := call.untouched(r); touched != nil {
			t.Errorf("the call returned: %v\nThat is no unknown outcome, but the call has changed something: %v", err, touched)
		}
	}
	return false
}

// stallContextOf returns a context that ends soon, and the time of its end.
func stallContextOf(t *testing.T, expires bool) (ctx context.Context, ended func() time.Time, cancel context.CancelFunc) {
	t.Helper()
	if expires {
		ctx, cancel = context.WithTimeout(t.Context(), stallContext)
		deadline, _ := ctx.Deadline()
		return ctx, func() time.Time { return deadline }, cancel
	}
	ctx, end := context.WithCancel(t.Context())
	var mu sync.Mutex
	at := time.Now().Add(time.Hour) // not yet
	timer := time.AfterFunc(stallContext, func() {
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
