package zsetpoll_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/zsetpoll"
)

// A pair is a master and its replica, with a link between them that can be cut.
type pair struct {
	master  *testenv.RedisServer
	link    *testenv.FaultProxy
	replica *redis.Client
}

func newPair(t *testing.T) pair {
	t.Helper()
	p := pair{master: testenv.Redis(t, testenv.AOF())}
	p.link = testenv.Proxy(t, p.master.Addr())
	host, port, err := net.SplitHostPort(p.link.Addr())
	must(t, err)
	p.replica = testenv.Redis(t, testenv.Directive("replicaof", host, port)).Client(t)
	p.awaitLink(t, "up")
	return p
}

func (p pair) cut(t *testing.T) {
	t.Helper()
	p.link.Refuse(true)
	p.link.CloseAll()
	p.awaitLink(t, "down")
}

// awaitLink waits until the replica says that of the link to its master.
func (p pair) awaitLink(t *testing.T, status string) {
	t.Helper()
	await(t, "the link to be "+status, func() bool {
		info, err := p.replica.Info(t.Context(), "replication").Result()
		return err == nil && strings.Contains(info, "master_link_status:"+status)
	})
}

func (p pair) queue(t *testing.T, opts ...zsetpoll.Option) delayq.Queue {
	t.Helper()
	return openWaiting(t, p.master.Client(t), opts...)
}

func openWaiting(t *testing.T, client redis.UniversalClient, opts ...zsetpoll.Option) delayq.Queue {
	t.Helper()
	q, err := delayq.New(t.Context(), "orders", delayq.WithBackend(zsetpoll.New(client, opts...)), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	must(t, err)
	t.Cleanup(func() { _ = q.Close() })
	return q
}

func pushLater(t *testing.T, q delayq.Queue, id string) error {
	t.Helper()
	_, err := q.Push(t.Context(), []byte("body"), delayq.ID(id), delayq.After(time.Hour))
	return err
}

// A push that returns nil is on the replica, and one that it does not reach says so. Pushed again,
// it waits again.
func TestWaitReplicas(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	q, err := delayq.Open(t.Context(), "zsetpoll://"+p.master.Addr()+"/orders?wait_replicas=1,100ms", delayq.WithLogger(slog.New(slog.DiscardHandler)))
	must(t, err)
	defer func() { must(t, q.Close()) }()
	await(t, "a confirmed push", func() bool { return errors.Is(pushLater(t, q, "first"), delayq.ErrDuplicate) })
	if n := p.replica.ZCard(t.Context(), "delayq:{orders}:due").Val(); n != 1 {
		t.Errorf("the replica has %d messages after the push", n)
	}
	p.cut(t)
	for range 2 {
		if err := pushLater(t, q, "second"); !errors.Is(err, delayq.ErrUnconfirmed) || !strings.Contains(err.Error(), "0 of 1 replicas") {
			t.Errorf("with the replica away a push returns %v", err)
		}
	}
	if s, err := q.Stats(t.Context()); err != nil || s.Scheduled != 2 {
		t.Errorf("got %+v, %v; want both messages stored", s, err)
	}
	p.link.Refuse(false)
	await(t, "the replica to have it", func() bool { return errors.Is(pushLater(t, q, "second"), delayq.ErrDuplicate) })
}

// From Redis 7.2 on, WAIT waits for the last write of its connection. So a push that is refused, since
// another connection stored the message, writes too.
func TestRefusedPushWrites(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	q := p.queue(t)
	must(t, pushLater(t, q, "first"))
	client := p.master.Client(t)
	offset := func() string {
		info, err := client.Info(t.Context(), "replication").Result()
		must(t, err)
		_, rest, _ := strings.Cut(info, "master_repl_offset:")
		text, _, _ := strings.Cut(rest, "\r\n")
		return text
	}
	// A write that nobody asked for, such as PING to the replica, would pass for the push's own.
	must(t, client.ConfigSet(t.Context(), "repl-ping-replica-period", "3600").Err())
	before := offset()
	if _, err := q.Push(t.Context(), []byte("body"), delayq.ID("first"), delayq.After(time.Hour), delayq.UniqueFor(time.Hour)); !errors.Is(err, delayq.ErrDuplicate) {
		t.Errorf("got %v", err)
	}
	if after := offset(); after == before {
		t.Errorf("the offset is %s before and after the push", before)
	}
}

// The replica is promoted while the master's writes do not reach it. Asynchronous replication loses
// messages then, and a push that waits returns an error for them.
func TestWaitNarrowsLoss(t *testing.T) {
	t.Parallel()
	const messages = 50
	p := newPair(t)
	plain, waiting := p.queue(t), p.queue(t, zsetpoll.WaitReplicas(1, time.Millisecond))
	p.cut(t)
	told, toldWaiting := 0, 0
	for i := range messages {
		if pushLater(t, plain, fmt.Sprint("plain-", i)) == nil {
			told++
		}
		if pushLater(t, waiting, fmt.Sprint("waiting-", i)) == nil {
			toldWaiting++
		}
	}
	must(t, p.replica.Do(t.Context(), "replicaof", "no", "one").Err())
	p.master.Kill()
	s, err := openWaiting(t, p.replica).Stats(t.Context())
	if err != nil || s.Scheduled != 0 {
		t.Fatalf("the new master has %+v, %v; want no message that did not reach it", s, err)
	}
	t.Logf("lost though a push returned nil: %d of %d without WaitReplicas, %d with it", told, messages, toldWaiting)
	if told != messages || toldWaiting != 0 {
		t.Errorf("lost though a push returned nil: %d without WaitReplicas, want %d; %d with it, want 0", told, messages, toldWaiting)
	}
}

// On a Cluster the push waits at the master of its slot.
func TestWaitReplicasOnACluster(t *testing.T) {
	t.Parallel()
	q := openWaiting(t, testenv.SharedRedisCluster(t).Client(t), zsetpoll.WaitReplicas(1, time.Millisecond), zsetpoll.Prefix(t.Name()))
	if err := pushLater(t, q, "x"); !errors.Is(err, delayq.ErrUnconfirmed) {
		t.Errorf("masters without replicas return %v", err)
	}
}

// WaitDisk is for servers that have it, and an error of Open on others.
func TestWaitDisk(t *testing.T) {
	t.Parallel()
	kept := testenv.Redis(t, testenv.AOF()).Client(t)
	b := zsetpoll.New(kept, zsetpoll.WaitDisk(0, 10*time.Second))
	if kept.Do(t.Context(), "waitaof", 0, 0, 1).Err() != nil {
		_, err := b.Open(t.Context(), "orders", redistest.Silent())
		if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "Redis 7.2") {
			t.Errorf("a server without WAITAOF: Open returns %v", err)
		}
		return
	}
	q := openWaiting(t, kept, zsetpoll.WaitDisk(0, 10*time.Second))
	if err := pushLater(t, q, "x"); err != nil {
		t.Error(err)
	}
	forgetful := zsetpoll.New(testenv.Redis(t).Client(t), zsetpoll.WaitDisk(0, time.Second))
	if _, err := forgetful.Open(t.Context(), "orders", redistest.Silent()); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("a server without an append-only file: Open returns %v", err)
	}
}
