package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// behind is how long before a failover a write may have been acknowledged that the replica has not got: replication is asynchronous, and
// that is what Redis declares. Here, on one machine, it is much less.
const behind = int64(time.Second)

// A pair is a master and its replica, which change places.
type pair struct {
	servers []*testenv.RedisServer
	clients []*redis.Client
	master  int
	wire    *wire // leads to the master; nil where a Sentinel tells who that is
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := new(pair)
	for range 2 {
		s := testenv.Redis(t, testenv.AOF(), testenv.Directive("appendfsync", "always"), testenv.Directive("repl-diskless-sync-delay", "0"))
		p.servers, p.clients = append(p.servers, s), append(p.clients, s.Client(t, patiently))
	}
	p.follow(t)
	return p
}

// follow makes the other server a replica, and waits until it has caught up.
func (p *pair) follow(t *testing.T) {
	t.Helper()
	host, port, err := net.SplitHostPort(p.servers[p.master].Addr())
	must(t, err)
	replica := p.clients[1-p.master]
	must(t, replica.Do(t.Context(), "replicaof", host, port).Err())
	if !poll(20*time.Second, func() bool { return replicating(t, replica) }) {
		t.Fatal("the replica does not catch up")
	}
}

func replicating(t *testing.T, replica *redis.Client) bool {
	t.Helper()
	info := replica.InfoMap(t.Context(), "replication").Val()["Replication"]
	return info["master_link_status"] == "up" && info["master_sync_in_progress"] == "0"
}

func (p *pair) isMaster(t *testing.T, i int) bool {
	t.Helper()
	return p.clients[i].InfoMap(t.Context(), "replication").Val()["Replication"]["role"] == "master"
}

// change has clients led to the other server.
func (p *pair) change(t *testing.T) {
	t.Helper()
	p.master = 1 - p.master
	p.wire.lead(t, p.servers[p.master].Addr())
}

// replicaVenue is a master with a replica. Clients reach the master under one address, as behind a load balancer.
func replicaVenue(t *testing.T) *venue {
	t.Helper()
	p := newPair(t)
	p.wire = newWire(t, p.servers[0].Addr())
	at := chaos.Endpoint{Backend: "zsetpoll", Addr: p.wire.addr}
	return &venue{
		name: "zsetpoll, replica", rate: 1500, patient: time.Minute, repeats: true, left: remains, straight: at, bent: at,
		opens: []chaos.OpenFunc{at.Open}, faults: []*fault{plannedFailover(p), masterKilled(p)},
	}
}

// plannedFailover has the master hand over with FAILOVER, which loses nothing: the master waits until the replica has everything.
func plannedFailover(p *pair) *fault {
	changed := false
	return &fault{
		Kind: chaos.Kind{Name: "FAILOVER", Weight: 2, Alone: true}, window: judge.Window{Breaks: true},
		on: func(t *testing.T, _ *rand.Rand) {
			other := 1 - p.master
			must(t, p.clients[p.master].Do(t.Context(), "failover").Err())
			changed = poll(10*time.Second, func() bool { return p.isMaster(t, other) && !p.isMaster(t, p.master) })
			p.change(t)
		},
		off: func(*testing.T) int { return count(changed) },
	}
}

// masterKilled kills the master and promotes the replica, which may lack what was acknowledged last.
func masterKilled(p *pair) *fault {
	changed := false
	return &fault{
		Kind: chaos.Kind{Name: "master killed", Weight: 1, Alone: true}, window: judge.Window{Breaks: true, Undo: behind, Pushes: true},
		on: func(t *testing.T, _ *rand.Rand) {
			old := p.master
			p.servers[old].Kill()
			must(t, p.clients[1-old].Do(t.Context(), "replicaof", "no", "one").Err())
			p.change(t)
			changed = p.isMaster(t, p.master)
			p.servers[old].Restart()
			p.follow(t)
		},
		off: func(*testing.T) int { return count(changed) },
	}
}

const masterName = "main"

// sentinelVenue is a master with a replica that a Sentinel watches.
func sentinelVenue(t *testing.T) *venue {
	t.Helper()
	p := newPair(t)
	addr := startSentinel(t, p.servers[0].Addr())
	at := chaos.Endpoint{Backend: "zsetpoll", Addr: addr, Master: masterName}
	return &venue{
		name: "zsetpoll, Sentinel", rate: 1500, patient: time.Minute, repeats: true, left: remains, straight: at, bent: at,
		opens: []chaos.OpenFunc{at.Open}, faults: []*fault{sentinelFailover(t, p, addr)},
	}
}

// startSentinel starts a Sentinel that watches a master.
func startSentinel(t *testing.T, master string) (addr string) {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr = l.Addr().String()
	must(t, l.Close())
	host, port, err := net.SplitHostPort(master)
	must(t, err)
	_, own, err := net.SplitHostPort(addr)
	must(t, err)
	file := filepath.Join(t.TempDir(), "sentinel.conf")
	config := fmt.Sprintf("bind 127.0.0.1\nport %s\nsentinel monitor %s %s %s 1\nsentinel down-after-milliseconds %s 1000\nsentinel failover-timeout %s 2000\n",
		own, masterName, host, port, masterName, masterName)
	must(t, os.WriteFile(file, []byte(config), 0o600))
	p, err := testenv.StartProgram(exec.Command(binary, file, "--sentinel"), filepath.Join(filepath.Dir(file), "sentinel.log"))
	must(t, err)
	t.Cleanup(func() { _ = p.Close() })
	if !poll(20*time.Second, func() bool { _, ok := redisGreeting.answer(addr, time.Second); return ok }) {
		t.Fatal("the Sentinel does not answer")
	}
	return addr
}

// sentinelFailover has Sentinel promote the replica, while the master goes on taking writes for a moment.
func sentinelFailover(t *testing.T, p *pair, addr string) *fault {
	t.Helper()
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = sentinel.Close() })
	changed := false
	return &fault{
		Kind: chaos.Kind{Name: "Sentinel failover", Weight: 1, Alone: true}, window: judge.Window{Breaks: true, Undo: behind, Pushes: true},
		on: func(t *testing.T, _ *rand.Rand) {
			other := 1 - p.master
			if !poll(20*time.Second, func() bool { return sentinel.Failover(t.Context(), masterName).Err() == nil }) {
				t.Fatal("Sentinel does not fail over")
			}
			changed = poll(20*time.Second, func() bool {
				at := sentinel.GetMasterAddrByName(t.Context(), masterName).Val()
				return slices.Equal(at, split(p.servers[other].Addr())) && p.isMaster(t, other) && !p.isMaster(t, p.master) && replicating(t, p.clients[p.master])
			})
			p.master = other
		},
		off: func(*testing.T) int { return count(changed) },
	}
}

func split(addr string) []string {
	host, port, _ := net.SplitHostPort(addr)
	return []string{host, port}
}
