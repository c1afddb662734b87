package chaos_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// everysec is what a server with appendfsync everysec may lose when the power goes: the second between two syncs, and the second that a sync
// may take.
const everysec = int64(2 * time.Second)

// slowSync is more than a sync may take for everysec to hold.
const slowSync = 500 * time.Millisecond

// syncing are the options of a server whose power can be cut. It is to be started under testdata/synced.c. Without rewriting, all but the last of
// its files are older than what the cut is about.
func syncing(policy string) []testenv.Option {
	return []testenv.Option{
		testenv.AOF(), testenv.Directive("appendfsync", policy), testenv.Directive("auto-aof-rewrite-percentage", "0"),
		testenv.Directive("aof-load-truncated", "yes"),
	}
}

// powerCut takes the power from a server: it is killed, and its append-only file keeps what had been synced. To kill it alone loses
// nothing, for the kernel has the rest.
func powerCut(t *testing.T, s *testenv.RedisServer, admin *redis.Client, declared int64) *fault {
	t.Helper()
	log := openLog(t, admin)
	cut := int64(0)
	f := &fault{
		Kind:   chaos.Kind{Name: "power cut", Weight: 1, Alone: true},
		window: judge.Window{Breaks: true, Undo: declared, Pushes: declared > 0},
		off:    func(*testing.T) int { return max(int(cut), 1) },
	}
	f.on = func(t *testing.T, dice *rand.Rand) {
		log.await(t, admin, sinceSync(dice, declared > 0))
		f.window.Start = time.Now().UnixNano()
		s.Kill()
		cut = log.cut(t)
		s.Restart()
	}
	return f
}

// sinceSync is how long before the cut the last sync began. A server that always syncs is cut at any moment.
func sinceSync(dice *rand.Rand, seldom bool) time.Duration {
	if !seldom {
		return 0
	}
	return time.Duration(100+dice.IntN(700)) * time.Millisecond
}

// openLog finds the append-only file of a server.
func openLog(t *testing.T, admin *redis.Client) aofLog {
	t.Helper()
	set := admin.ConfigGet(t.Context(), "*append*").Val()
	dir := admin.ConfigGet(t.Context(), "dir").Val()["dir"]
	found, err := filepath.Glob(filepath.Join(dir, set["appenddirname"], "*.incr.aof"))
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("the append-only files in %s are %q; want one", dir, found)
	}
	return aofLog(found[0])
}

// An aofLog is the append-only file that a server writes to.
type aofLog string

// synced is the last sync that came back, as testdata/synced.c has noted it: what was there when it began is on the disk.
type synced struct{ size, began, ended int64 }

func (l aofLog) synced(t *testing.T) (s synced) {
	t.Helper()
	text, err := os.ReadFile(string(l) + ".synced")
	if errors.Is(err, fs.ErrNotExist) {
		return synced{}
	}
	must(t, err)
	if _, err := fmt.Sscan(string(text), &s.size, &s.began, &s.ended); err != nil {
		t.Fatalf("reading when %s was synced: %v", l, err)
	}
	return s
}

// await returns so long after a sync began, if the disk keeps up: where a sync takes longer, Redis promises less.
func (l aofLog) await(t *testing.T, admin *redis.Client, since time.Duration) {
	t.Helper()
	now := func() bool {
		s := l.synced(t)
		return s.ended-s.began < int64(slowSync) && time.Now().UnixNano()-s.began >= int64(since) && info(t, admin, "persistence", "aof_pending_bio_fsync") == 0
	}
	if !poll(30*time.Second, now) {
		t.Fatal("the disk takes longer for a sync than everysec allows for")
	}
}

// cut leaves what was synced of the log of a server that does not run, and returns how many bytes that cost.
func (l aofLog) cut(t *testing.T) int64 {
	t.Helper()
	all, err := os.Stat(string(l))
	must(t, err)
	kept := l.synced(t).size
	must(t, os.Truncate(string(l), kept))
	return all.Size() - kept
}
