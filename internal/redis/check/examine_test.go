package check

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/testenv"
)

// found returns the finding on a topic.
func found(t *testing.T, fs []admin.Finding, about string) (all []admin.Finding) {
	t.Helper()
	for _, f := range fs {
		if f.About == about {
			all = append(all, f)
		}
	}
	return all
}

// TestJudged has the expected findings of each topic, once for all servers that are alike.
func TestJudged(t *testing.T) {
	t.Parallel()
	named := func(name string, change ...func(*Facts)) Facts {
		f := well(change...)
		f.Server = name
		return f
	}
	evicts := func(f *Facts) { f.MaxMemory, f.Policy = 9, "allkeys-lru" }
	fs := judged([]Facts{named("b:1"), named("a:1"), named("c:1", evicts), named("d:1", func(f *Facts) { f.AOF, f.Snapshots = Unknown, Unknown })})
	if v := found(t, fs, "version"); len(v) != 1 || v[0].Servers != "a:1, b:1, c:1, d:1" || v[0].Severity != admin.Fine {
		t.Errorf("version: %+v", v)
	}
	if e := found(t, fs, "eviction"); len(e) != 2 || e[1].Servers != "c:1" || e[1].Severity != admin.Warning || e[1].Remedy == "" {
		t.Errorf("eviction: %+v", e)
	}
	if p := found(t, fs, "persistence"); len(p) != 2 || p[1].Severity != admin.Note {
		t.Errorf("persistence: %+v", p)
	}
	bad := judged([]Facts{{Version: "3.2", MaxMemory: 9, Policy: "allkeys-random", AOF: No, Snapshots: No, ReadOnly: Yes, Astray: true}})
	for i, want := range []admin.Severity{admin.Problem, admin.Problem, admin.Problem, admin.Warning, admin.Warning} {
		if len(bad) != 5 || bad[i].Severity != want {
			t.Errorf("got %+v", bad)
		}
	}
}

// TestExamineClock reads the clock of a server on this machine, which is this machine's.
func TestExamineClock(t *testing.T) {
	t.Parallel()
	x, err := Examine(t.Context(), testenv.Redis(t, testenv.Private()).Client(t))
	if err != nil || len(x.Clocks) != 1 {
		t.Fatalf("got %+v, %v", x, err)
	}
	if d := x.Clocks[0]; d.Within <= 0 || d.Ahead.Abs() > d.Within+time.Millisecond {
		t.Errorf("got %v", d)
	}
}

// TestExamineWithoutRights tells a server that refuses commands from one that is gone.
func TestExamineWithoutRights(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.AOF())
	x, err := Examine(t.Context(), asUser(t, server, "+@all", "-info", "-config", "-time"))
	if err != nil || len(found(t, x.Findings, "permissions")) != 2 || len(x.Findings) != 2 {
		t.Errorf("got %+v, %v", x, err)
	}
	client := server.Client(t)
	server.Kill()
	if x, err := Examine(t.Context(), client); err == nil {
		t.Errorf("of a server that is gone: %+v", x)
	}
}

// TestExamineACluster asks all masters, also after one has failed.
func TestExamineACluster(t *testing.T) {
	t.Parallel()
	cluster := testenv.RedisCluster(t, testenv.AOF())
	client := cluster.Client(t)
	x, err := Examine(t.Context(), client)
	if err != nil || len(x.Clocks) != len(cluster.Nodes()) || len(found(t, x.Findings, "version")) != 1 {
		t.Errorf("got %+v, %v", x, err)
	}
	failed := errors.New("failed")
	n := 0
	err = Each(t.Context(), client, func(context.Context, string, redis.Cmdable) error { n++; return failed })
	if n != len(cluster.Nodes()) || !errors.Is(err, failed) {
		t.Errorf("%d calls: %v", n, err)
	}
}
