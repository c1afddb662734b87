package handle

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// The tests run in bubbles of synctest: there, a minute of sleep takes no time, and an event happens
// at a certain time. The time of the store runs an hour ahead, since the server's clock may be wrong.
const ahead = time.Hour

// A store replies to claims as its test says. No other method but Nack may be called.
type store struct {
	Messages
	reply func(n int, c *Claim) error // to the n-th claim, from 0; nil for nothing
	fail  error                       // of Nack

	mu    sync.Mutex
	began time.Time
	asked []asked
	kept  []time.Duration // when the queue was maintained
	back  []string
}

// asked is one claim.
type asked struct {
	at    time.Duration // since the beginning
	limit int
	lease time.Duration
}

func (s *store) claim(_ context.Context, limit int, lease time.Duration) (Claim, error) {
	s.mu.Lock()
	n := len(s.asked)
	s.asked = append(s.asked, asked{time.Since(s.began), limit, lease})
	s.mu.Unlock()
	c := Claim{Now: time.Now().Add(ahead)}
	if s.reply == nil {
		return c, nil
	}
	err := s.reply(n, &c)
	return c, err
}

func (s *store) Nack(_ context.Context, rs []backend.Return) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range rs {
		s.back = append(s.back, fmt.Sprint(b.Lease.ID, " ", b.Untouched))
	}
	if s.fail != nil {
		return backend.FailAll(len(rs), s.fail)
	}
	return nil
}

// claims are the times of the claims.
func (s *store) claims() (at []time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.asked {
		at = append(at, a.at)
	}
	return at
}

// maintained are the times at which the queue was.
func (s *store) maintained() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.kept)
}

func (s *store) returned() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.back)
}

// A fixture is a handle on a store, in a bubble.
type fixture struct {
	*Queue
	store *store
	log   *bytes.Buffer
}

// poll is the hub's in all tests.
const poll = time.Minute

// open opens a handle, which is closed at the end.
func open(t *testing.T, s *store, tune ...func(*Source)) fixture {
	t.Helper()
	return openOn(t, &Hub{Poll: poll}, s, tune...)
}

func openOn(t *testing.T, h *Hub, s *store, tune ...func(*Source)) fixture {
	t.Helper()
	source := Source{Messages: s, Name: "orders", Claim: s.claim}
	for _, set := range tune {
		set(&source)
	}
	s.began = time.Now()
	f := fixture{store: s, log: new(bytes.Buffer)}
	f.Queue = New(source, h, slog.New(slog.NewTextHandler(f.log, nil)), nil)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func on(clock clockwork.Clock) func(*Source) { return func(s *Source) { s.Clock = clock } }

// receive starts a Receive of up to limit messages for a minute.
func (f fixture) receive(ctx context.Context, limit int) <-chan received {
	return f.receiveFor(ctx, limit, time.Minute)
}

func (f fixture) receiveFor(ctx context.Context, limit int, lease time.Duration) <-chan received {
	got := make(chan received, 1)
	go func() {
		ds, err := f.Receive(ctx, limit, lease)
		got <- received{ds, err}
	}()
	synctest.Wait()
	return got
}

// after lets a time of the bubble pass.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// deliveries are messages of the ids from to to-1.
func deliveries(from, to int) (ds []backend.Delivery) {
	for i := from; i < to; i++ {
		ds = append(ds, backend.Delivery{ID: fmt.Sprint(i)})
	}
	return ds
}

func ids(ds []backend.Delivery) (ids []string) {
	for _, d := range ds {
		ids = append(ids, d.ID)
	}
	return ids
}

func equal[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// bubble runs a test in a bubble.
func bubble(t *testing.T, f func(*testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, f)
}
