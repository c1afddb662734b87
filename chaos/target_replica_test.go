package chaos

import (
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// lagging is the window of a failover to a replica. Replication is asynchronous, so the replica may
// lack writes that were acknowledged shortly before. On one machine it lacks much less.
var lagging = judge.Window{Breaks: true, Undo: int64(time.Second), Pushes: true}

// A pair is a master and its replica, which change places.
type pair struct {
	servers []*testenv.RedisServer
	clients []*redis.Client
	master  int
	proxy   toxicProxy // leads to the master
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := new(pair)
	for range 2 {
		s := testenv.Redis(t, durable(testenv.Directive("repl-diskless-sync-delay", "0"))...)
		p.servers, p.clients = append(p.servers, s), append(p.clients, s.Client(t, retrying))
	}
	p.proxy = newToxicProxy(t, p.servers[0].Addr())
	p.replicate(t)
	return p
}

// replicate makes the other server a replica, and waits until it has caught up.
func (p *pair) replicate(t *testing.T) {
	t.Helper()
	host, port := split(t, p.servers[p.master].Addr())
	replica := p.clients[1-p.master]
	must(t, replica.Do(t.Context(), "replicaof", host, port).Err())
	if !poll(20*time.Second, func() bool { return caughtUp(t, replica) }) {
		t.Fatal("the replica does not catch up")
	}
}

func split(t *testing.T, addr string) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	must(t, err)
	return host, port
}

// replication returns the section of INFO; nil for a server that does not reply.
func replication(t *testing.T, c *redis.Client) map[string]string {
	t.Helper()
	return c.InfoMap(t.Context(), "replication").Val()["Replication"]
}

// caughtUp reports whether a server is a replica with all data of its master.
func caughtUp(t *testing.T, c *redis.Client) bool {
	t.Helper()
	info := replication(t, c)
	return info["role"] == "slave" && info["master_link_status"] == "up" && info["master_sync_in_progress"] == "0"
}

// promoted reports whether the other server is the master, and the old master a replica or down.
func (p *pair) promoted(t *testing.T) bool {
	t.Helper()
	return replication(t, p.clients[1-p.master])["role"] == "master" && replication(t, p.clients[p.master])["role"] != "master"
}

// switchOver leads clients to the other server.
func (p *pair) switchOver(t *testing.T) {
	t.Helper()
	p.master = 1 - p.master
	p.proxy.restart(t, p.servers[p.master].Addr())
}

// replicaTarget is a master with a replica. Clients reach the master under one address, as behind a
// load balancer.
func replicaTarget(t *testing.T) *target {
	t.Helper()
	p := newPair(t)
	return onRedis("replica", Endpoint{Backend: "zsetpoll", Addr: p.proxy.Listen}, plannedFailover(p), masterKilled(p))
}

// plannedFailover makes the master hand over with FAILOVER. That loses nothing: the master waits
// until the replica has everything.
func plannedFailover(p *pair) *fault {
	return instant("FAILOVER", 2, breaks, func(i *injection) int {
		must(i.T, p.clients[p.master].Do(i.Context(), "failover").Err())
		changed := poll(10*time.Second, func() bool { return p.promoted(i.T) })
		p.switchOver(i.T)
		return count(changed)
	}).alone()
}

// masterKilled kills the master and promotes the replica.
func masterKilled(p *pair) *fault {
	return instant("master killed", 1, lagging, func(i *injection) int {
		old := p.servers[p.master]
		old.Kill()
		must(i.T, p.clients[1-p.master].Do(i.Context(), "replicaof", "no", "one").Err())
		p.switchOver(i.T)
		changed := replication(i.T, p.clients[p.master])["role"] == "master"
		old.Restart()
		p.replicate(i.T)
		return count(changed)
	}).alone()
}

const masterName = "main"

// sentinelTarget is a master with a replica, watched by a Sentinel.
func sentinelTarget(t *testing.T) *target {
	t.Helper()
	p := newPair(t)
	addr := testenv.Sentinel(t, masterName, p.servers[0].Addr(),
		"sentinel down-after-milliseconds "+masterName+" 1000", "sentinel failover-timeout "+masterName+" 2000")
	return onRedis("Sentinel", Endpoint{Backend: "zsetpoll", Addr: addr, Master: masterName}, sentinelFailover(t, p, addr))
}

// sentinelFailover makes Sentinel promote the replica, while the master takes writes for a moment.
func sentinelFailover(t *testing.T, p *pair, addr string) *fault {
	t.Helper()
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = sentinel.Close() })
	return instant("Sentinel failover", 1, lagging, func(i *injection) int {
		if !poll(20*time.Second, func() bool { return sentinel.Failover(i.Context(), masterName).Err() == nil }) {
			i.Fatal("Sentinel does not fail over")
		}
		changed := poll(20*time.Second, func() bool {
			at := sentinel.GetMasterAddrByName(i.Context(), masterName).Val()
			return len(at) == 2 && net.JoinHostPort(at[0], at[1]) == p.servers[1-p.master].Addr() && p.promoted(i.T) && caughtUp(i.T, p.clients[p.master])
		})
		p.master = 1 - p.master
		return count(changed)
	}).alone()
}
