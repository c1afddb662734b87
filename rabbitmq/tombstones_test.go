package rabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/rabbitmq/tombstone"
	"github.com/delayq/delayq/rabbitmq/tombstone/redistomb"
)

// cancel cancels one message.
func cancel(ctx context.Context, q backend.Queue, id string) error {
	if errs := q.Cancel(ctx, []string{id}); errs != nil {
		return errs[0]
	}
	return nil
}

func wantCancel(ctx context.Context, t *testing.T, q backend.Queue, id string, want error) {
	t.Helper()
	if err := cancel(ctx, q, id); !errors.Is(err, want) {
		t.Fatalf("cancelling %q: %v, want %v", id, err, want)
	}
}

// inRedis returns a new store, on a client that ends calls with their contexts.
func inRedis(t *testing.T, server *testenv.RedisServer) *redistomb.Store {
	t.Helper()
	client := server.Client(t, func(o *redis.Options) { o.ContextTimeoutEnabled = true })
	return redistomb.New(client, redistomb.Prefix(fmt.Sprintf("test-%d", time.Now().UnixNano())))
}

// eachStore runs a test on both stores.
func eachStore(t *testing.T, test func(*testing.T, rabbitmq.Tombstones)) {
	t.Run("memory", func(t *testing.T) { t.Parallel(); test(t, tombstone.NewMemory()) })
	t.Run("redis", func(t *testing.T) { t.Parallel(); test(t, inRedis(t, testenv.SharedRedis(t))) })
}

// TestCancelBeforeDue cancels every second message before it is due. No cancelled message comes,
// and the broker keeps none.
func TestCancelBeforeDue(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store rabbitmq.Tombstones) {
		const n = 200
		ctx := deadline(t, patience)
		url := shared(t)
		q, ch := open(t, url, rabbitmq.WithTombstones(store)), channel(t, url)
		must(t, q.Schedule(ctx, batch("m", n, 700*time.Millisecond))...)
		for i := 0; i < n; i += 2 {
			wantCancel(ctx, t, q, fmt.Sprint("m-", i), nil)
		}
		wantCancel(ctx, t, q, "m-0", backend.ErrNotFound)
		wantOddMessages(ctx, t, q, n)
		must(t, q.Close())
		await(t, "an empty queue", func() bool {
			if ready(t, ch, ownQueue(t)) == 0 {
				return true
			}
			late := open(t, url, rabbitmq.WithTombstones(store)) // a slow broker passes messages on after the look for them
			wantNoMessage(t, late, 300*time.Millisecond)
			must(t, late.Close())
			return false
		})
	})
}

// wantOddMessages takes the messages of a batch with odd numbers, and no others.
func wantOddMessages(ctx context.Context, t *testing.T, q backend.Queue, n int) {
	t.Helper()
	came := make(map[string]bool)
	takeAll(ctx, t, q, n/2, func(d backend.Delivery) {
		var i int
		if _, err := fmt.Sscanf(d.ID, "m-%d", &i); err != nil || i%2 == 0 || came[d.ID] {
			t.Fatalf("message %s came twice or though it was cancelled, as attempt %d (%v)", d.ID, d.Attempt, err)
		}
		came[d.ID] = true
	})
	wantNoMessage(t, q, 300*time.Millisecond)
}

// TestCancelRacesDelivery cancels 1,000 messages through one handle while another takes them. Each
// message is either cancelled or handed out.
func TestCancelRacesDelivery(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store rabbitmq.Tombstones) {
		const n = 1000
		ctx := deadline(t, patience)
		url := shared(t)
		taker, canceler := open(t, url, rabbitmq.WithTombstones(store)), open(t, url, rabbitmq.WithTombstones(store))
		ms := make([]backend.Message, n)
		for i := range ms {
			ms[i] = message(fmt.Sprint(i), rand.N(600*time.Millisecond))[0]
		}
		must(t, taker.Schedule(ctx, ms)...)
		f := &outcomes{t: t, of: make(map[string][]string)}
		var all sync.WaitGroup
		for part := range 4 {
			all.Go(func() { f.cancel(ctx, canceler, ms, part, 600*time.Millisecond) })
		}
		for range 3 {
			all.Go(func() { f.take(ctx, taker, n) })
		}
		all.Wait()
		cancelled := 0
		for _, m := range ms {
			if of := f.of[m.ID]; len(of) != 1 {
				t.Errorf("message %s had the outcomes %v; it must have one", m.ID, of)
			} else if of[0] == "cancelled" {
				cancelled++
			}
		}
		t.Logf("%d cancelled, %d handed out", cancelled, n-cancelled)
	})
}

// outcomes records how messages ended.
type outcomes struct {
	t *testing.T

	mu sync.Mutex
	of map[string][]string // by id
}

func (f *outcomes) note(id, outcome string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of[id] = append(f.of[id], outcome)
}

func (f *outcomes) known() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.of)
}

// cancel cancels every fourth message, spread over the time in which they fall due.
func (f *outcomes) cancel(ctx context.Context, q backend.Queue, ms []backend.Message, part int, over time.Duration) {
	began := time.Now()
	for i := part; i < len(ms); i += 4 {
		// The pace has cancels of waiting, arriving and held messages. Each outcome is checked.
		time.Sleep(time.Until(began.Add(over * time.Duration(i) / time.Duration(len(ms)))))
		switch err := cancel(ctx, q, ms[i].ID); {
		case err == nil:
			f.note(ms[i].ID, "cancelled")
		case !errors.Is(err, backend.ErrInFlight) && !errors.Is(err, backend.ErrNotFound):
			f.t.Errorf("cancelling %s: %v", ms[i].ID, err)
		}
	}
}

// take takes and acknowledges until all outcomes are known and no message comes any more.
func (f *outcomes) take(ctx context.Context, q backend.Queue, n int) {
	for over := false; !over; {
		known := f.known() == n
		short, stop := context.WithTimeout(ctx, 300*time.Millisecond)
		ds, err := q.Receive(short, 10, time.Minute)
		stop()
		for _, d := range ds {
			f.note(d.ID, "handed out")
		}
		if errs := q.Ack(ctx, leases(ds)); ds != nil && errors.Join(errs...) != nil {
			f.t.Errorf("acknowledging: %v", errs)
		}
		over = err != nil && (known || ctx.Err() != nil)
	}
}

// TestStoreDown kills or pauses the store's server while messages fall due. No message is handed
// out without the store's reply, and none is lost.
func TestStoreDown(t *testing.T) {
	t.Parallel()
	for what, outage := range map[string]struct{ begin, end func(*testenv.RedisServer) }{
		"killed": {(*testenv.RedisServer).Kill, (*testenv.RedisServer).Restart},
		"paused": {(*testenv.RedisServer).Pause, (*testenv.RedisServer).Resume},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			const n = 50
			ctx := deadline(t, patience)
			server := testenv.Redis(t, testenv.AOF(), testenv.Directive("appendfsync", "always"))
			q := open(t, shared(t), rabbitmq.WithTombstones(inRedis(t, server)))
			must(t, q.Schedule(ctx, message("held", 0))...)
			held := receiveAll(ctx, t, q, 1)[0]
			must(t, q.Schedule(ctx, batch("m", n, 500*time.Millisecond))...)
			for i := 0; i < n; i += 2 {
				wantCancel(ctx, t, q, fmt.Sprint("m-", i), nil)
			}
			outage.begin(server)
			wantNoMessage(t, q, 1500*time.Millisecond)
			wantFailures(t, q, held)
			outage.end(server)
			wantOddMessages(ctx, t, q, n)
			ack(ctx, t, q, held) // its lease is in force
		})
	}
}

// wantFailures makes the calls that need the store while it does not reply. m-0 is cancelled already: a
// paused server that has the call carries it out later.
func wantFailures(t *testing.T, q backend.Queue, held backend.Delivery) {
	t.Helper()
	ctx := deadline(t, 300*time.Millisecond)
	if err := cancel(ctx, q, "m-0"); err == nil || errors.Is(err, backend.ErrNotFound) || errors.Is(err, backend.ErrInFlight) {
		t.Errorf("cancelling without the store: %v", err)
	}
	if err := errors.Join(q.Schedule(deadline(t, 300*time.Millisecond), message("m-x", 0))...); err == nil {
		t.Error("a push succeeded without the store")
	}
	if _, errs := q.Extend(deadline(t, 300*time.Millisecond), []backend.Lease{held.Lease()}, time.Hour); errors.Join(errs...) == nil {
		t.Error("a lease was extended without the store")
	}
}

// TestCancelAndPushAgain cancels a message and pushes another with its id, as a way to reschedule.
// The new one comes.
func TestCancelAndPushAgain(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store rabbitmq.Tombstones) {
		ctx := deadline(t, patience)
		q := open(t, shared(t), rabbitmq.WithTombstones(store))
		for range 5 {
			must(t, q.Schedule(ctx, message("a", 150*time.Millisecond))...)
			wantCancel(ctx, t, q, "a", nil)
		}
		must(t, q.Schedule(ctx, message("a", 300*time.Millisecond))...)
		a := receiveOne(ctx, t, q, "a")
		if a.Attempt != 1 {
			t.Errorf("it came at attempt %d", a.Attempt)
		}
		wantCancel(ctx, t, q, "a", backend.ErrInFlight)
		nack(ctx, t, q, a, 200*time.Millisecond)
		wantCancel(ctx, t, q, "a", nil) // the retry
		wantNoMessage(t, q, 500*time.Millisecond)
	})
}

// TestCancelDeadLetter cannot cancel a dead letter, but can cancel it after Redrive.
func TestCancelDeadLetter(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	q := open(t, shared(t), rabbitmq.WithTombstones(inRedis(t, testenv.SharedRedis(t))))
	must(t, q.Schedule(ctx, message("a", 0))...)
	for range 2 {
		deadLetter(ctx, t, q, receiveOne(ctx, t, q, "a"))
		wantCancel(ctx, t, q, "a", backend.ErrNotFound)
		await(t, "the dead letter", func() bool { return q.Redrive(ctx, []string{"a"})[0] == nil })
	}
	wantCancel(ctx, t, q, "a", nil)
	wantNoMessage(t, q, 300*time.Millisecond)
}

// TestHoldsEnd ends deliveries in all ways except an ack. Then the messages can be cancelled.
func TestHoldsEnd(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store rabbitmq.Tombstones) {
		url, proxy := behindProxy(t, shared(t))
		for what, end := range map[string]func(backend.Queue, backend.Delivery) error{
			"connection": func(backend.Queue, backend.Delivery) error { proxy.CloseAll(); return nil },
			"close":      func(q backend.Queue, _ backend.Delivery) error { return q.Close() },
			"nack": func(q backend.Queue, d backend.Delivery) error {
				return errors.Join(q.Nack(deadline(t, patience), []backend.Return{{Lease: d.Lease(), Untouched: true}})...)
			},
			"lease": func(q backend.Queue, d backend.Delivery) error {
				_, errs := q.Extend(deadline(t, patience), []backend.Lease{d.Lease()}, 50*time.Millisecond)
				return errors.Join(errs...)
			},
		} {
			t.Run(what, func(t *testing.T) {
				ctx := deadline(t, patience)
				b := newBackend(t, url, rabbitmq.WithTombstones(store))
				q, other := openOn(t, b, queueOf(t)), openOn(t, b, queueOf(t))
				must(t, q.Schedule(ctx, message("a", 0))...)
				d := receiveOne(ctx, t, q, "a")
				_, errs := q.Extend(ctx, []backend.Lease{d.Lease()}, time.Hour)
				must(t, errs...)
				wantCancel(ctx, t, other, "a", backend.ErrInFlight)
				must(t, end(q, d))
				await(t, "the end of the hold", func() bool {
					err := cancel(ctx, other, "a")
					if err != nil && !errors.Is(err, backend.ErrInFlight) {
						t.Fatal(err)
					}
					return err == nil
				})
				wantNoMessage(t, other, 300*time.Millisecond)
			})
		}
	})
}

// A slowStore is a store whose replies a test can delay. It can also forget cancellations sooner.
type slowStore struct {
	rabbitmq.Tombstones
	asked, reply chan struct{}
	keep         time.Duration
}

func (b *slowStore) Take(ctx context.Context, queue string, hs []rabbitmq.Hold, lasts time.Duration) ([]bool, error) {
	if b.asked != nil {
		b.asked <- struct{}{}
		<-b.reply
	}
	return b.Tombstones.Take(ctx, queue, hs, lasts)
}

func (b *slowStore) Cancel(ctx context.Context, queue string, ids []string, keep time.Duration) []error {
	if b.keep > 0 {
		keep = b.keep
	}
	return b.Tombstones.Cancel(ctx, queue, ids, keep)
}

// TestSlowStore delays the store's reply about a message. Meanwhile the handle goes on, and the
// connection breaks. The late reply has no effect, and the message comes once.
func TestSlowStore(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	url, proxy := behindProxy(t, shared(t))
	store := &slowStore{Tombstones: tombstone.NewMemory()}
	q := open(t, url, rabbitmq.WithTombstones(store))
	must(t, q.Schedule(ctx, message("a", 0))...)
	a := receiveOne(ctx, t, q, "a")
	store.asked, store.reply = make(chan struct{}), make(chan struct{})
	must(t, q.Schedule(ctx, message("b", 0))...)
	got := make(chan []backend.Delivery, 1)
	go func() {
		ds, _ := q.Receive(ctx, 1, time.Minute)
		got <- ds
	}()
	<-store.asked
	ack(ctx, t, q, a)
	proxy.CloseAll()
	<-store.asked // about the redelivered message
	store.reply <- struct{}{}
	store.reply <- struct{}{}
	ds := <-got
	if len(ds) != 1 || ds[0].ID != "b" || ds[0].Attempt != 2 {
		t.Fatalf("got %+v, want b at attempt 2", ds)
	}
	wantCancel(ctx, t, q, "b", backend.ErrInFlight)
	ack(ctx, t, q, ds...)
}

// TestCloseDuringStoreQuery closes a handle that waits for the store. The message goes to another
// handle, without an attempt.
func TestCloseDuringStoreQuery(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	store := &slowStore{Tombstones: tombstone.NewMemory(), asked: make(chan struct{}), reply: make(chan struct{})}
	url := shared(t)
	q, other := open(t, url, rabbitmq.WithTombstones(store)), open(t, url, rabbitmq.WithTombstones(store.Tombstones))
	must(t, q.Schedule(ctx, message("a", 0))...)
	var receiving, closing sync.WaitGroup
	receiving.Go(func() {
		if ds, err := q.Receive(ctx, 1, time.Minute); !errors.Is(err, backend.ErrClosed) {
			t.Errorf("got %+v, %v from a closed handle", ds, err)
		}
	})
	<-store.asked
	closing.Go(func() {
		if err := q.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	receiving.Wait() // the handle is about to close
	store.reply <- struct{}{}
	closing.Wait()
	a := receiveOne(ctx, t, other, "a")
	if a.Attempt != 1 {
		t.Errorf("it came at attempt %d", a.Attempt)
	}
	ack(ctx, t, other, a)
	wantCancel(ctx, t, other, "a", backend.ErrNotFound) // no hold is left
}

// TestForgottenCancel shows a limit: a message that is due after its cancellation is forgotten is
// handed out.
func TestForgottenCancel(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	store := &slowStore{Tombstones: tombstone.NewMemory(), keep: time.Millisecond}
	q := open(t, shared(t), rabbitmq.WithTombstones(store))
	must(t, q.Schedule(ctx, message("a", 500*time.Millisecond))...)
	wantCancel(ctx, t, q, "a", nil)
	ack(ctx, t, q, receiveOne(ctx, t, q, "a"))
}

// TestPushedWithoutStore shows another limit: an earlier cancellation covers messages that are
// pushed without the store.
func TestPushedWithoutStore(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	url := shared(t)
	q, plain := open(t, url, rabbitmq.WithTombstones(tombstone.NewMemory())), open(t, url)
	must(t, plain.Schedule(ctx, message("a", 200*time.Millisecond))...)
	wantCancel(ctx, t, q, "a", nil)
	must(t, plain.Schedule(ctx, message("a", 200*time.Millisecond))...)
	must(t, plain.Schedule(ctx, message("b", 0))...)
	b := receiveOne(ctx, t, q, "b")
	wantCancel(ctx, t, q, "b", backend.ErrInFlight)
	ack(ctx, t, q, b)
	wantCancel(ctx, t, q, "b", backend.ErrNotFound)
	wantNoMessage(t, q, 600*time.Millisecond)
}

// TestCancellingIsAFeature requires Cancelling with and without a store, and Rescheduling with one.
func TestCancellingIsAFeature(t *testing.T) {
	t.Parallel()
	url := shared(t)
	for _, c := range []struct {
		what    string
		opts    []rabbitmq.Option
		feature delayq.Feature
		want    error
	}{
		{"no store", nil, delayq.Cancelling, delayq.ErrUnsupported},
		{"a store", []rabbitmq.Option{rabbitmq.WithTombstones(tombstone.NewMemory())}, delayq.Cancelling, nil},
		{"a store", []rabbitmq.Option{rabbitmq.WithTombstones(tombstone.NewMemory())}, delayq.Rescheduling, delayq.ErrUnsupported},
	} {
		b := rabbitmq.New(url, c.opts...)
		_, err := newQueue(t, b, queueOf(t), delayq.Require(c.feature))
		if !errors.Is(err, c.want) {
			t.Errorf("requiring %v with %s: %v, want %v", c.feature, c.what, err, c.want)
		}
		must(t, b.Close())
	}
}

// TestDelaysThatOutliveCancels pushes delays around the limit that KeepCancelled sets.
func TestDelaysThatOutliveCancels(t *testing.T) {
	t.Parallel()
	ctx := deadline(t, patience)
	b := newBackend(t, shared(t), rabbitmq.WithTombstones(tombstone.NewMemory()), rabbitmq.KeepCancelled(2*time.Hour))
	q, err := newQueue(t, b, queueOf(t))
	must(t, err)
	_, far := q.Push(ctx, nil, delayq.After(time.Hour+1))
	_, farther := q.Push(ctx, nil, delayq.At(time.Now().Add(2*time.Hour)))
	_, near := q.Push(ctx, nil, delayq.After(time.Hour))
	if !errors.Is(far, delayq.ErrInvalid) || !errors.Is(farther, delayq.ErrInvalid) || near != nil {
		t.Errorf("just too far: %v; too far: %v; just not: %v", far, farther, near)
	}
}

func TestBadTombstoneOptions(t *testing.T) {
	store := rabbitmq.WithTombstones(tombstone.NewMemory())
	for what, opts := range map[string][]rabbitmq.Option{
		"no store":           {rabbitmq.WithTombstones(nil)},
		"short cancellation": {store, rabbitmq.KeepCancelled(59 * time.Second)},
		"short settlement":   {store, rabbitmq.KeepSettled(time.Millisecond)},
		"nothing to keep":    {rabbitmq.KeepSettled(time.Minute)},
		"nothing to cancel":  {rabbitmq.KeepCancelled(time.Hour)},
	} {
		b := rabbitmq.New("amqp://127.0.0.1:1/", opts...)
		if _, err := b.Open(t.Context(), "orders", quiet()); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
		must(t, b.Close())
	}
}
