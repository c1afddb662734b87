package chaos

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/delayq/delayq/internal/judge"
)

// sqliteFaults are what other programs do to a file.
func sqliteFaults(t *testing.T, path string) []*fault {
	t.Helper()
	return []*fault{
		// As a shell does in which somebody has begun a transaction.
		onConnection("write lock held", 2, 800*time.Millisecond, breaks, path, "BEGIN IMMEDIATE", func(*injection, *sqlite3.Conn) int { return 1 }),
		// As a backup does: what is written meanwhile has to stay in the log.
		onConnection("read held", 2, 1500*time.Millisecond, judge.Window{}, path, "BEGIN; SELECT count(*) FROM delayq_message", func(i *injection, _ *sqlite3.Conn) int {
			other := connectTo(i, path, 0)
			defer func() { must(i.T, other.Close()) }()
			return count(!checkpointed(i, other))
		}),
		instant("checkpoint", 2, judge.Window{}, func(i *injection) int {
			c := connectTo(i, path, time.Second)
			defer func() { must(i.T, c.Close()) }()
			return count(checkpointed(i, c))
		}),
		// It rewrites the whole file, under the lock.
		instant("VACUUM", 1, breaks, func(i *injection) int {
			c := connectTo(i, path, 10*time.Second)
			defer func() { must(i.T, c.Close()) }()
			must(i.T, c.Exec("VACUUM"))
			return 1
		}),
	}
}

// onConnection keeps a connection in the state after some statements. effect is read at the end.
func onConnection(name string, weight int, length time.Duration, w judge.Window, path, statements string, effect func(*injection, *sqlite3.Conn) int) *fault {
	return lasting(name, weight, length, w, func(i *injection) func() int {
		c := connectTo(i, path, 10*time.Second)
		must(i.T, c.Exec(statements))
		return func() int {
			defer func() { must(i.T, c.Close()) }()
			return effect(i, c)
		}
	}).alone()
}

func connectTo(i *injection, path string, busy time.Duration) *sqlite3.Conn {
	i.Helper()
	c, err := sqlite3.Open(path)
	must(i.T, err)
	must(i.T, c.BusyTimeout(busy))
	return c
}

// checkpointed has everything moved from the log to the file, and reports whether that was possible.
func checkpointed(i *injection, c *sqlite3.Conn) bool {
	i.Helper()
	s, _, err := c.Prepare("PRAGMA wal_checkpoint(TRUNCATE)")
	must(i.T, err)
	defer func() { must(i.T, s.Close()) }()
	if !s.Step() {
		must(i.T, s.Err())
	}
	return s.ColumnInt(0) == 0
}

// tornLog writes random bytes over some of what follows the last commit in a log, and beyond its end.
// A power cut may do that: none of it was synced for anybody. It returns how many bytes it wrote.
func tornLog(i *injection, path string) int {
	i.Helper()
	log, err := os.ReadFile(path)
	must(i.T, err)
	end := committed(log)
	from := end + i.rng.IntN(len(log)-end+1)
	torn := make([]byte, 1+i.rng.IntN(10_000))
	for k := range torn {
		torn[k] = byte(i.rng.Uint32())
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(i.T, err)
	defer func() { must(i.T, f.Close()) }()
	_, err = f.WriteAt(torn, int64(from))
	must(i.T, err)
	return len(torn)
}

// committed returns where the last commit of a write-ahead log ends, as
// https://www.sqlite.org/fileformat2.html#walformat has it.
func committed(log []byte) (end int) {
	const logHeader, frameHeader = 32, 24
	if len(log) < logHeader {
		return len(log)
	}
	var words binary.ByteOrder = binary.LittleEndian
	if log[3]&1 == 1 {
		words = binary.BigEndian
	}
	page := int(binary.BigEndian.Uint32(log[8:]))
	var a, b uint32
	add := func(part []byte) {
		for ; len(part) > 0; part = part[8:] {
			a += words.Uint32(part) + b
			b += words.Uint32(part[4:]) + a
		}
	}
	add(log[:24])
	end = logHeader
	for at := logHeader; at+frameHeader+page <= len(log); at += frameHeader + page {
		frame := log[at : at+frameHeader+page]
		add(frame[:8])
		add(frame[frameHeader:])
		if string(frame[8:16]) != string(log[16:24]) || binary.BigEndian.Uint32(frame[16:]) != a || binary.BigEndian.Uint32(frame[20:]) != b {
			break // of an earlier use of the log, or not whole
		}
		if binary.BigEndian.Uint32(frame[4:]) != 0 {
			end = at + frameHeader + page
		}
	}
	return end
}

// TestCommitted compares the end of the last commit in a log with SQLite's own account.
func TestCommitted(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file.db")
	c, err := sqlite3.Open(path)
	must(t, err)
	defer func() { must(t, c.Close()) }()
	must(t, c.Exec("PRAGMA journal_mode = WAL; CREATE TABLE t (x)"))
	for range 20 {
		must(t, c.Exec("INSERT INTO t VALUES (randomblob(3000))"))
	}
	must(t, c.Exec("PRAGMA wal_checkpoint(RESTART); INSERT INTO t VALUES (1)")) // frames of the first use follow
	log, err := os.ReadFile(path + "-wal")
	must(t, err)
	s, _, err := c.Prepare("PRAGMA wal_checkpoint(PASSIVE)")
	must(t, err)
	defer func() { must(t, s.Close()) }()
	if !s.Step() {
		t.Fatal(s.Err())
	}
	frames := s.ColumnInt(1)
	if got, want := committed(log), 32+frames*(24+4096); got != want || got >= len(log) {
		t.Errorf("the last commit ends at %d of %d; want %d", got, len(log), want)
	}
}
