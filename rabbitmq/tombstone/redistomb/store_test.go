package redistomb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/rabbitmq/tombstone/redistomb"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestLostReplies cuts connections before the reply comes. A repeated call returns the outcome of
// the first try.
func TestLostReplies(t *testing.T) {
	server := testenv.Redis(t)
	proxy := testenv.Proxy(t, server.Addr())
	proxy.CutReplies(0.2)
	o := server.Options()
	o.Addr = proxy.Addr()
	client := redis.NewClient(o)
	t.Cleanup(func() { _ = client.Close() })
	s := redistomb.New(client, redistomb.Prefix(fmt.Sprint("lost-", time.Now().UnixNano())))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 30 {
				if err := once(t.Context(), s, fmt.Sprintf("%d-%d", i, j)); err != nil {
					t.Errorf("message %d-%d: %v", i, j, err)
				}
			}
		})
	}
	all.Wait()
	if proxy.Cuts() == 0 {
		t.Error("no reply was cut off")
	}
}

// once cancels, pushes anew and settles a message. Each step is repeated while its outcome is
// unknown.
func once(ctx context.Context, s *redistomb.Store, id string) error {
	var h rabbitmq.Hold
	enroll := func() error {
		stamps, err := s.Enroll(ctx, "orders", []string{id})
		if err == nil {
			h = rabbitmq.Hold{ID: id, Stamp: stamps[0], Token: id}
		}
		return err
	}
	known := true // unless a whole call failed
	cancel := func() error {
		err := s.Cancel(ctx, "orders", []string{id}, time.Hour)
		switch {
		case err == nil, !known && errors.Is(err[0], backend.ErrNotFound):
			return nil
		case errors.Is(err[0], backend.ErrNotFound):
			return wrongError{err[0]}
		}
		known = false
		return err[0]
	}
	take := func() error {
		cancelled, err := s.Take(ctx, "orders", []rabbitmq.Hold{h}, time.Hour)
		if err == nil && cancelled[0] {
			return wrongError{errors.New("cancelled, although it was pushed anew")}
		}
		return err
	}
	settle := func() error { return s.Settle(ctx, "orders", []rabbitmq.Hold{h}, time.Hour) }
	for i, step := range []func() error{enroll, cancel, enroll, take, settle} {
		if err := untilKnown(ctx, step); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	if err := s.Cancel(ctx, "orders", []string{id}, time.Hour); err == nil {
		return errors.New("it was cancelled after it was settled")
	}
	return nil
}

// A wrongError is a wrong reply, as opposed to no reply.
type wrongError struct{ error }

func untilKnown(ctx context.Context, step func() error) error {
	for {
		err := step()
		var wrong wrongError
		if err == nil || errors.As(err, &wrong) || ctx.Err() != nil {
			return err
		}
	}
}

// TestKeysExpire lets all records of a queue expire. Only the last stamp is left, and it expires
// too.
func TestKeysExpire(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := testenv.SharedRedis(t).Client(t)
	prefix := fmt.Sprint("expire-", time.Now().UnixNano())
	s := redistomb.New(client, redistomb.Prefix(prefix))
	const brief = 100 * time.Millisecond
	stamps, err := s.Enroll(ctx, "/:delayq.v1.q.orders", []string{"done", "held", "free"})
	must(t, err)
	hs := make([]rabbitmq.Hold, len(stamps))
	for i, id := range []string{"done", "held", "free"} {
		hs[i] = rabbitmq.Hold{ID: id, Stamp: stamps[i], Token: "1"}
	}
	_, err = s.Take(ctx, "/:delayq.v1.q.orders", hs[:1], time.Hour)
	must(t, err)
	_, err = s.Take(ctx, "/:delayq.v1.q.orders", hs[1:], brief)
	must(t, err)
	must(t, s.Settle(ctx, "/:delayq.v1.q.orders", hs[:1], brief), s.Release(ctx, "/:delayq.v1.q.orders", hs[2:]))
	must(t, s.Cancel(ctx, "/:delayq.v1.q.orders", []string{"gone"}, brief)...)
	last := prefix + ":{%2F:delayq.v1.q.orders}"
	for {
		keys, err := client.Keys(ctx, prefix+"*").Result()
		must(t, err)
		if len(keys) == 1 && keys[0] == last {
			break
		}
		for _, k := range keys {
			if ttl := client.PTTL(ctx, k).Val(); ttl == -1 {
				t.Fatalf("key %q does not expire", k)
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	if ttl := client.PTTL(ctx, last).Val(); ttl <= 0 {
		t.Errorf("the last stamp ends in %v", ttl)
	}
}

// TestClockSetBack has the last stamp ahead of the server's clock, as after the clock was set back.
// Later stamps still rise.
func TestClockSetBack(t *testing.T) {
	client := testenv.SharedRedis(t).Client(t)
	prefix := fmt.Sprint("back-", time.Now().UnixNano())
	s := redistomb.New(client, redistomb.Prefix(prefix))
	ahead := time.Now().Add(time.Hour).UnixMicro()
	must(t, client.Set(t.Context(), prefix+":{orders}", ahead, time.Hour).Err())
	stamps, err := s.Enroll(t.Context(), "orders", []string{"a"})
	must(t, err)
	must(t, s.Cancel(t.Context(), "orders", []string{"a"}, time.Hour)...)
	again, err := s.Enroll(t.Context(), "orders", []string{"a"})
	must(t, err)
	cancelled, err := s.Take(t.Context(), "orders", []rabbitmq.Hold{{ID: "a", Stamp: stamps[0], Token: "1"}, {ID: "a", Stamp: again[0], Token: "2"}}, time.Hour)
	must(t, err)
	if stamps[0] <= ahead || !cancelled[0] || cancelled[1] {
		t.Errorf("stamps %d and %d after %d; cancelled are %v", stamps[0], again[0], ahead, cancelled)
	}
}

func TestBadOptions(t *testing.T) {
	client := testenv.SharedRedis(t).Client(t)
	for what, s := range map[string]*redistomb.Store{
		"no prefix": redistomb.New(client, redistomb.Prefix("")), "braces": redistomb.New(client, redistomb.Prefix("{a}")),
		"a long prefix": redistomb.New(client, redistomb.Prefix(strings.Repeat("x", 65))), "no client": redistomb.New(nil),
	} {
		_, enroll := s.Enroll(t.Context(), "orders", []string{"a"})
		_, take := s.Take(t.Context(), "orders", []rabbitmq.Hold{{ID: "a"}}, time.Hour)
		for _, err := range append(s.Cancel(t.Context(), "orders", []string{"a"}, time.Hour), enroll, take) {
			if !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}
