package chaos_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// failoverVenue is a Redis Cluster whose masters have a replica each.
func failoverVenue(t *testing.T) *venue {
	t.Helper()
	r := newRing(t, testenv.Replicas(1), testenv.Directive("cluster-node-timeout", "1000"))
	at := chaos.Endpoint{Backend: "zsetpoll", Cluster: r.addrs}
	return &venue{
		name: "zsetpoll, Cluster with replicas", rate: 1500, patient: time.Minute, repeats: true, left: remains, straight: at, bent: at,
		opens: []chaos.OpenFunc{at.Open}, faults: []*fault{ownerKilled(r, behind/2)},
	}
}

// ownerKilled kills the master of the slot, whose replica has heard nothing of it for a while before, at most lag ns. The Cluster promotes the
// replica by itself, and what that takes stays. The old master comes back with all that it had, and follows.
func ownerKilled(r *ring, lag int64) *fault {
	heir := -1
	f := &fault{
		Kind: chaos.Kind{Name: "owner killed", Weight: 2, Alone: true}, window: judge.Window{Breaks: true, Undo: behind, Pushes: true},
		off: func(t *testing.T) int { return count(r.owner(t) == heir) },
	}
	f.on = func(t *testing.T, dice *rand.Rand) {
		old := r.owner(t)
		heir = r.replicaOf(t, old)
		r.detach(t, old, heir)
		time.Sleep(time.Duration(dice.Int64N(lag))) // for how long the replica lags behind
		f.window.Start = time.Now().UnixNano()
		r.servers[old].Kill()
		r.inherit(t, heir)
		f.window.Safe = time.Now().UnixNano()
		r.comeBack(t, old)
	}
	return f
}

// inherit waits until a replica without a master has been promoted.
func (r *ring) inherit(t *testing.T, heir int) {
	t.Helper()
	must(t, r.clients[heir].ConfigSet(t.Context(), "masterauth", "").Err())
	if !poll(30*time.Second, func() bool { return r.serves(t, heir) }) {
		t.Fatal("the replica is not promoted")
	}
}

// comeBack starts a node again, and waits until it follows who has taken its place.
func (r *ring) comeBack(t *testing.T, old int) {
	t.Helper()
	r.servers[old].Restart()
	if !poll(30*time.Second, func() bool { return r.follows(t, old) }) {
		t.Fatal("the old master does not follow the new one")
	}
	r.whole()
}

// detach cuts the replication between two nodes, and keeps it cut: the replica gives a password that the master does not know.
func (r *ring) detach(t *testing.T, master, replica int) {
	t.Helper()
	must(t, r.clients[replica].ConfigSet(t.Context(), "masterauth", "unknown").Err())
	killClients(t, r.clients[master], "replica")
}

// replicaOf finds the node that follows a master.
func (r *ring) replicaOf(t *testing.T, master int) int {
	t.Helper()
	_, port, _ := strings.Cut(r.addrs[master], ":")
	for i, c := range r.clients {
		if info := c.InfoMap(t.Context(), "replication").Val()["Replication"]; info["role"] == "slave" && info["master_port"] == port {
			return i
		}
	}
	t.Fatalf("nobody follows node %d", master)
	return -1
}

// serves reports whether a node is a master of a Cluster that serves all slots.
func (r *ring) serves(t *testing.T, i int) bool {
	t.Helper()
	role := r.clients[i].InfoMap(t.Context(), "replication").Val()["Replication"]["role"]
	return role == "master" && strings.Contains(r.clients[i].ClusterInfo(t.Context()).Val(), "cluster_state:ok")
}

// follows reports whether a node is a replica that is as far as its master.
func (r *ring) follows(t *testing.T, i int) bool {
	t.Helper()
	role := r.clients[i].InfoMap(t.Context(), "replication").Val()["Replication"]["role"]
	return role == "slave" && replicating(t, r.clients[i])
}
