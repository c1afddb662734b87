package conformance_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"slices"
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

var stallRounds = flag.Int("stall.rounds", 0, "repeat TestStalledServer so often, at each reply, and allow 50ms instead of seconds: for a machine at rest, with -parallel 8")

const (
	stallFirst   = 15 * time.Millisecond // until the context of a call ends
	stallContext = 60 * time.Millisecond // until that of a call that would wait for ever
	stallBusy    = 2 * time.Second       // that a busy machine may add to it
	stallStrict  = 50 * time.Millisecond
	stallMost    = 1000 // replies that a call may need
)

// A stallStore is a store behind a server that stops replying. Without a server nothing stalls.
type stallStore struct {
	upstream func(*testing.T) []string
	open     func(testing.TB, *stallServer) backend.Backend
	url      func(t testing.TB, s *stallServer, queue string) string // nil for none
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

// stalled reports whether a reply is held back.
func (s *stallServer) stalled() bool {
	for _, p := range s.route {
		if p.Stalled() {
			return true
		}
	}
	return false
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
			open: func(t testing.TB, s *stallServer) backend.Backend {
				client := redis.NewClient(&redis.Options{Addr: s.addr})
				t.Cleanup(func() { _ = client.Close() })
				return open(client)
			},
			url: func(_ testing.TB, s *stallServer, queue string) string { return fmt.Sprintf(scheme, s.addr, queue) },
		}
	}
	onCluster := func(open func(redis.UniversalClient) backend.Backend) stallStore {
		return stallStore{upstream: clusterAt, keeps: true, open: func(t testing.TB, s *stallServer) backend.Backend {
			client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: testenv.SharedRedisCluster(t).Addrs(), Dialer: s.dial})
			t.Cleanup(func() { _ = client.Close() })
			return open(client)
		}}
	}
	claiming := func(name string, m zsetpoll.Mode) stallStore {
		return onRedis("zsetpoll://%s/%s?claims="+name, func(c redis.UniversalClient) backend.Backend { return zsetpoll.New(c, zsetpoll.Claims(m)) })
	}
	return map[string]stallStore{
		"memory":             {open: func(testing.TB, *stallServer) backend.Backend { return memory.New() }, keeps: true},
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
	url := func(t testing.TB, s *stallServer) string {
		server := testenv.SharedRabbitMQ(t)
		return strings.Replace(server.VhostURL("/"), server.Addr(), s.addr, 1)
	}
	return stallStore{
		upstream: func(t *testing.T) []string { return []string{testenv.SharedRabbitMQ(t).Addr()} },
		open: func(t testing.TB, s *stallServer) backend.Backend {
			return &openedRabbit{Backend: rabbitmq.New(url(t, s))}
		},
		url: func(t testing.TB, s *stallServer, queue string) string {
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

	opens bool // it needs no queue
	waits bool // it returns when its context ends, though the server replies
}

// A stallRound is one call on a queue of its own. Its clean-ups run after the call.
type stallRound struct {
	*testing.T
	store    stallStore
	server   *stallServer
	name     string
	q        delayq.Queue
	ids      []string
	ds       []*delayq.Delivery
	cleanups []func()
}

func (r *stallRound) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *stallRound) end() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
}

func stallCalls() map[string]stallCall {
	opens := func(do func(context.Context, *stallRound) error) stallCall { return stallCall{do: do, opens: true} }
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
		return stallCall{prepare: prepare, do: do, untouched: func(r *stallRound) error { return do(r.Context(), r) }}
	}
	settles := func(do func(context.Context, *stallRound) error) stallCall { return once((*stallRound).receive, do) }
	one := func(do func(context.Context, *delayq.Delivery) error) stallCall {
		return settles(func(ctx context.Context, r *stallRound) error { return do(ctx, r.ds[0]) })
	}
	dead := func(do func(context.Context, *stallRound, delayq.DeadLetters) error) stallCall {
		return once((*stallRound).deadLetter, func(ctx context.Context, r *stallRound) error { return do(ctx, r, r.q.Dead()) })
	}
	return map[string]stallCall{
		"New":  opens(func(ctx context.Context, r *stallRound) error { return r.new(ctx) }),
		"Open": opens(func(ctx context.Context, r *stallRound) error { return r.open(ctx) }),
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
		"Receive, none": {waits: true, do: func(ctx context.Context, r *stallRound) error { return second(r.q.Receive(ctx)) }},
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
		"Repeat": {waits: true, do: func(ctx context.Context, r *stallRound) error {
			return schedule.Repeat(ctx, r.q, "hourly", schedule.Every(time.Hour), []byte("x"))
		}},
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
	id, err := r.q.Push(r.Context(), []byte("x"))
	r.ids = append(r.ids, id)
	return stored(err)
}

func (r *stallRound) later() error {
	id, err := r.q.Push(r.Context(), []byte("x"), delayq.After(time.Hour))
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
	ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
	defer cancel()
	d, err := r.q.Receive(ctx)
	r.ds = append(r.ds, d)
	return err
}

// comesAgain wants the message that a Receive may have claimed after it had returned.
func (r *stallRound) comesAgain() error {
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	d, err := r.q.Receive(ctx)
	if err == nil && (d.ID != r.ids[0] && r.ids[0] != "" || r.store.keeps && d.Attempt != 1) {
		err = fmt.Errorf("attempt %d of %q came, want attempt 1 of %q", d.Attempt, d.ID, r.ids[0])
	}
	return err
}

// empty wants no message in the queue.
func (r *stallRound) empty() error {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	if d, err := r.q.Receive(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("received %v, with: %w", d, err)
	}
	return nil
}

// dueInAnHour wants the message of later where it was.
func (r *stallRound) dueInAnHour() error {
	page, _, err := r.q.Peek(r.Context(), "", 1)
	if err == nil && (len(page) != 1 || time.Until(page[0].Due) > time.Hour) {
		err = fmt.Errorf("the queue has %v", page)
	}
	return err
}

func (r *stallRound) deadLetter() error {
	if err := r.receive(); err != nil {
		return err
	}
	return r.ds[0].Dead(r.Context(), "reason")
}

func (r *stallRound) new(ctx context.Context) error {
	b := r.store.open(r, r.server)
	r.Cleanup(func() { _ = b.Close() })
	return r.on(ctx, b)
}

// on opens the round's queue. It is closed and removed when the server replies again.
func (r *stallRound) on(ctx context.Context, b backend.Backend) error {
	q, err := delayq.New(ctx, r.name, delayq.WithBackend(b), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	r.q = q
	r.Cleanup(func() {
		if err == nil {
			_ = q.Close()
		}
		_ = b.(admin.Remover).Remove(context.WithoutCancel(r.Context()), r.name)
	})
	return cmp.Or(err, ctx.Err())
}

func (r *stallRound) open(ctx context.Context) error {
	if r.store.url == nil {
		return nil
	}
	q, err := delayq.Open(ctx, r.store.url(r, r.server, r.name), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	r.Cleanup(func() {
		b := r.store.open(r.T, r.server)
		if err == nil {
			_ = q.Close()
		}
		_ = errors.Join(b.(admin.Remover).Remove(context.WithoutCancel(r.Context()), r.name), b.Close())
	})
	return cmp.Or(err, ctx.Err())
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
