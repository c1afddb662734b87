package keyspace

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/redis/call"
	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/testenv"
)

func listening(t *testing.T, client *redis.Client) int {
	t.Helper()
	n, err := client.PubSubNumSub(t.Context(), expiries(client)).Result()
	if err != nil {
		t.Fatal(err)
	}
	return int(n[expiries(client)])
}

// A Cluster's masters come and go. Two servers and a list replace one here.
func TestListenerFollowsMasters(t *testing.T) {
	t.Parallel()
	a, b := testenv.Redis(t, testenv.Private()).Client(t), testenv.Redis(t, testenv.Private()).Client(t)
	var masters atomic.Pointer[[]server]
	masters.Store(&[]server{a})
	list := func(context.Context) ([]server, error) {
		if all := masters.Load(); all != nil {
			return *all, nil
		}
		return nil, errors.New("no list")
	}
	l := newListener(list, new(call.Group), queue.NewHub(a, time.Second), "p", time.Second)
	defer l.close()
	log := slog.New(slog.DiscardHandler)
	l.start(t.Context(), log)
	for _, tt := range []struct {
		masters *[]server
		a, b    int
	}{
		{&[]server{a}, 1, 0},
		{&[]server{a, b}, 1, 1},
		{nil, 1, 1},
		{&[]server{b}, 0, 1},
		{&[]server{a, b}, 1, 1},
	} {
		masters.Store(tt.masters)
		l.follow(t.Context(), log)
		deadline := time.Now().Add(time.Minute)
		for listening(t, a) != tt.a || listening(t, b) != tt.b || (l.degraded() != nil) != (tt.masters == nil) {
			if time.Now().After(deadline) {
				t.Fatalf("%d and %d subscriptions; want %d and %d; degraded: %v", listening(t, a), listening(t, b), tt.a, tt.b, l.degraded())
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// An outcome that was overtaken changes nothing.
func TestConfirmationEndsTheWait(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { _ = client.Close() })
	n := newNode(client, &listener{}, slog.New(slog.DiscardHandler))
	n.report(t.Context(), errUnconfirmed)
	if err := n.failure(); !errors.Is(err, errUnconfirmed) {
		t.Errorf("failure is %v", err)
	}
	n.subscribed = true
	n.report(t.Context(), nil)
	n.report(t.Context(), errUnconfirmed)
	if err := n.failure(); err != nil {
		t.Errorf("failure is %v after the confirmation", err)
	}
}
