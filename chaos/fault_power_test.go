package chaos

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// everysec is the loss of a server with appendfsync everysec in a power cut: the second between two
// syncs, and the second that a sync may take.
const everysec = int64(2 * time.Second)

// slowSync is longer than a sync may take for everysec to hold.
const slowSync = 500 * time.Millisecond

// powerCut cuts the power of a server: it kills the server, and truncates its append-only file to
// the synced part. A kill alone loses nothing, because the kernel has the rest.
func powerCut(t *testing.T, s *testenv.RedisServer, admin *redis.Client, declared int64) *fault {
	t.Helper()
	log := openLog(t, admin)
	return instant("power cut", 1, judge.Window{Breaks: true, Undo: declared, Pushes: declared > 0}, func(i *injection) int {
		since := time.Duration(0) // a server that always syncs loses its power at any moment
		if declared > 0 {
			since = time.Duration(100+i.rng.IntN(700)) * time.Millisecond
		}
		log.await(t, admin, since)
		i.window.Start = time.Now().UnixNano()
		s.Kill()
		lost := log.cut(t)
		s.Restart()
		return max(int(lost), 1)
	}).alone()
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

// An aofLog is the path of a server's append-only file.
type aofLog string

// synced is the last sync that returned, as testdata/synced.c noted it. The file's content from when
// it began is on the disk.
type synced struct{ size, began, ended int64 }

func (l aofLog) synced(t *testing.T) (s synced) {
	t.Helper()
	text, err := os.ReadFile(string(l) + ".synced")
	if errors.Is(err, fs.ErrNotExist) {
		return synced{}
	}
	must(t, err)
	_, err = fmt.Sscan(string(text), &s.size, &s.began, &s.ended)
	must(t, err)
	return s
}

// await returns a while after the start of a sync that was fast enough: Redis promises less where
// syncs take longer.
func (l aofLog) await(t *testing.T, admin *redis.Client, since time.Duration) {
	t.Helper()
	now := func() bool {
		s := l.synced(t)
		return s.ended-s.began < int64(slowSync) && time.Now().UnixNano()-s.began >= int64(since) && info(t, admin, "persistence", "aof_pending_bio_fsync") == 0
	}
	if !poll(30*time.Second, now) {
		t.Fatal("the disk takes longer for a sync than everysec allows")
	}
}

// cut truncates the log of a stopped server to its synced part, and returns the loss in bytes.
func (l aofLog) cut(t *testing.T) int64 {
	t.Helper()
	all, err := os.Stat(string(l))
	must(t, err)
	kept := l.synced(t).size
	must(t, os.Truncate(string(l), kept))
	return all.Size() - kept
}
