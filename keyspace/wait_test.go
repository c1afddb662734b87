package keyspace_test

import (
	"errors"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/testenv"
)

// The option reaches the store, by which zsetpoll's tests have tried it: a push says that there is
// no replica to have the message.
func TestWaitReplicas(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.AOF())
	q, err := delayq.Open(t.Context(), "keyspace://"+server.Addr()+"/orders?wait_replicas=1,1ms")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = q.Close() }()
	if _, err := q.Push(t.Context(), nil, delayq.After(time.Hour)); !errors.Is(err, delayq.ErrUnconfirmed) {
		t.Errorf("without a replica a push returns %v", err)
	}
	for _, bad := range []string{"wait_replicas=0,1s", "wait_disk=-1,1s", "wait_disk=1"} {
		if _, err := delayq.Open(t.Context(), "keyspace://"+server.Addr()+"/orders?"+bad); !errors.Is(err, delayq.ErrInvalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
