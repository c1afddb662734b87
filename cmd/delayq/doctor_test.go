package main

import (
	neturl "net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/delayq/delayq/internal/testenv"
)

// findings are doctor's findings, by topic.
func findings(t *testing.T, url string, code int) map[string]findingJSON {
	t.Helper()
	r := delayqRun(t, "doctor", url, "--json")
	r.wantCode(t, code)
	return findingsIn(t, r)
}

func findingsIn(t *testing.T, r result) map[string]findingJSON {
	t.Helper()
	all := make(map[string]findingJSON)
	for _, f := range decodeLines[findingJSON](t, r.stdout) {
		all[f.About] = f
		if (f.Level == "warning" || f.Level == "problem") && f.Remedy == "" {
			t.Errorf("no remedy for %+v", f)
		}
	}
	return all
}

func wantFinding(t *testing.T, all map[string]findingJSON, about, level, text string) {
	t.Helper()
	if f := all[about]; f.Level != level || !strings.Contains(f.Text, text) {
		t.Errorf("about %s: got %+v; want %s, %q", about, f, level, text)
	}
}

func urlOf(server *testenv.RedisServer, scheme string) string {
	return scheme + strings.TrimPrefix(server.URL(), "redis") + "/orders"
}

// TestDoctorBadRedis has a server that evicts, forgets, and tells of no expiries.
func TestDoctorBadRedis(t *testing.T) {
	t.Parallel()
	// the first turns the notifications on
	for _, scheme := range []string{"keyspace", "zsetpoll", "redisson"} {
		server := testenv.Redis(t, testenv.MaxMemory("100mb", "allkeys-lru"), testenv.Directive("notify-keyspace-events", ""))
		all := findings(t, urlOf(server, scheme), exitBroken)
		wantFinding(t, all, "eviction", "warning", "allkeys-lru drops messages")
		wantFinding(t, all, "persistence", "warning", "keeps nothing on disk")
		wantFinding(t, all, "version", "ok", "Redis ")
		wantFinding(t, all, "replication", "ok", "")
		wantFinding(t, all, "clock", "ok", "this machine's, give or take")
		wantFinding(t, all, "probe", "ok", "a message was stored in")
		if all["eviction"].Servers != server.Addr() {
			t.Errorf("got %+v", all["eviction"])
		}
		if n, told := all["notifications"]; told != (scheme == "keyspace") || told && (n.Level != "note" || !strings.Contains(n.Text, `notify-keyspace-events is ""`)) {
			t.Errorf("%s: got %+v", scheme, n)
		}
		if left := keysOf(t, server.Client(t)); left != "" {
			t.Errorf("left behind: %s", left)
		}
	}
}

func TestDoctorGoodRedis(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.AOF(), testenv.MaxMemory("100mb", "noeviction"), testenv.Directive("notify-keyspace-events", "Ex"))
	for _, scheme := range []string{"keyspace", "zsetpoll", "redisson"} {
		url := urlOf(server, scheme)
		for about, f := range findings(t, url, exitOK) {
			if f.Level != "ok" {
				t.Errorf("%s: about %s: %+v", scheme, about, f)
			}
		}
		r := delayqRun(t, "doctor", url)
		r.wantOutput(t, "ok        eviction        nothing is evicted", "ok        probe ")
		r.wantWidth(t, page, server.Addr())
	}
}

// TestDoctorUnsaved has a server that cannot put its snapshot in place: a directory is there.
func TestDoctorUnsaved(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.AOF())
	client := server.Client(t)
	dir := client.ConfigGet(t.Context(), "dir").Val()["dir"]
	mustDo(t, os.MkdirAll(filepath.Join(dir, "dump.rdb", "in-the-way"), 0o700))
	mustDo(t, client.BgSave(t.Context()).Err())
	until(t, "failed snapshot", func() bool {
		return strings.Contains(client.Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
	})
	all := findings(t, urlOf(server, "zsetpoll"), exitBroken)
	wantFinding(t, all, "persistence", "warning", "rdb_last_bgsave_status:err")
}

// TestDoctorRefusedNotifications runs doctor as a user who may not set them.
func TestDoctorRefusedNotifications(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.AOF())
	client := server.Client(t)
	for user, right := range map[string]string{"noconfig": "-config", "noset": "-config|set"} {
		mustDo(t, client.Do(t.Context(), "acl", "setuser", user, "on", ">pa55", "~*", "&*", "+@all", right).Err())
		url := "keyspace://" + user + ":pa55@" + server.Addr() + "/orders"
		all := findings(t, url, exitBroken)
		wantFinding(t, all, "notifications", "warning", "messages wait for the sweep")
		wantFinding(t, all, "probe", "ok", "")
	}
}

func TestDoctorCluster(t *testing.T) {
	t.Parallel()
	cluster := testenv.RedisCluster(t, testenv.AOF())
	addr := cluster.Addrs()[0]
	all := findings(t, "keyspace://"+addr+"/orders?cluster=true", exitOK)
	wantFinding(t, all, "cluster", "ok", "a Cluster")
	if n := strings.Count(all["persistence"].Servers, ", "); n != len(cluster.Addrs())-1 {
		t.Errorf("got %+v", all["persistence"])
	}
	wantFinding(t, findings(t, "zsetpoll://"+addr+"/orders", exitBroken), "cluster", "problem", "not one of a Cluster")
}

func TestDoctorMemory(t *testing.T) {
	t.Parallel()
	all := findings(t, "memory:///orders", exitOK)
	wantFinding(t, all, "persistence", "note", "lost with it")
	wantFinding(t, all, "probe", "ok", "a message was stored in")
}

func TestDoctorRabbitMQ(t *testing.T) {
	t.Parallel()
	all := findings(t, rabbitURL(t), exitOK)
	wantFinding(t, all, "quorum queues", "ok", "")
	wantFinding(t, all, "alarms", "ok", "takes messages")
	wantFinding(t, all, "probe", "ok", "a message was stored in")
	wantFinding(t, all, "clock", "note", "due time")
}

// TestDoctorUnreachable says so on both streams, and no password.
func TestDoctorUnreachable(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"zsetpoll", "rabbitmq"} {
		r := delayqRun(t, "doctor", scheme+"://u:secret@127.0.0.1:1/q")
		r.wantCode(t, exitStore)
		r.wantOutput(t, "problem   connection", "→ see that the server runs")
		if !strings.Contains(r.stderr, "refused") || strings.Contains(r.stdout+r.stderr, "secret") {
			t.Errorf("got %s%s", r.stdout, r.stderr)
		}
	}
	r := delayqRun(t, "doctor", "zsetpoll://localhost")
	r.wantCode(t, exitUnusable)
	if r.stdout != "" {
		t.Errorf("got %s", r.stdout)
	}
}

// TestDoctorOwnForm has a codec that takes no text.
func TestDoctorOwnForm(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.AOF())
	all := findings(t, urlOf(server, "redisson")+"?codec=jackson-object", exitOK)
	wantFinding(t, all, "probe", "note", "no message was sent")
}

// TestDoctorBrokenStore finds that messages come early. On a busy machine the probe may look too late
// to see that, so it looks again.
func TestDoctorBrokenStore(t *testing.T) {
	t.Parallel()
	r := delayqRun(t, "doctor", "broken-early:///orders", "--json")
	for tries := 1; r.code == exitOK && tries < 20; tries++ {
		r = delayqRun(t, "doctor", "broken-early:///orders", "--json")
	}
	r.wantCode(t, exitBroken)
	wantFinding(t, findingsIn(t, r), "probe", "problem", "after it was due")
}

// TestDoctorReplica asks a server that takes no writes.
func TestDoctorReplica(t *testing.T) {
	t.Parallel()
	master := testenv.Redis(t, testenv.AOF())
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica := testenv.Redis(t, testenv.AOF(), testenv.Directive("replicaof", host, port))
	all := findings(t, urlOf(replica, "zsetpoll"), exitBroken)
	wantFinding(t, all, "replication", "problem", "read-only replica")
	wantFinding(t, all, "probe", "problem", "did not get through")
}

// TestDoctorRedisson names members that would stop Java's transfers, and a queue whose name another
// program uses.
func TestDoctorRedisson(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.AOF())
	url := urlOf(server, "redisson")
	wantFinding(t, findings(t, url, exitOK), "member format", "ok", "every version of Redisson reads")
	wantFinding(t, findings(t, url+"?format=v2", exitOK), "member format", "note", "Redisson 3.21.0 and older stops at the first of them")
	u, err := neturl.Parse(url)
	mustDo(t, err)
	mustDo(t, server.Client(t).SAdd(t.Context(), strings.TrimPrefix(u.Path, "/"), "x").Err())
	wantFinding(t, findings(t, url, exitBroken), "keys", "problem", "holds a set")
}
