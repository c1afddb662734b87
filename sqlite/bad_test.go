package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/ncruces/go-sqlite3"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/sqlite"
)

// TestBadFiles opens what cannot be a store: each error says what to do, and the file stays as it
// is.
func TestBadFiles(t *testing.T) {
	for name, c := range map[string]struct {
		make  func(t *testing.T, path string) string // returns another path, or ""
		shows string
	}{
		"no database": {func(t *testing.T, path string) string {
			return write(t, path, strings.Repeat("this is a text\n", 1000))
		}, "no SQLite database"},
		"a directory":  {func(t *testing.T, path string) string { return filepath.Dir(path) }, "cannot be opened"},
		"no directory": {func(_ *testing.T, path string) string { return path + "/sub/delay.db" }, "make it first"},
		"newer": {func(t *testing.T, path string) string {
			return run(t, path, "CREATE TABLE delayq_store (version INTEGER, next INTEGER); INSERT INTO delayq_store VALUES (99, 1)")
		}, "version 99"},
		"no path": {func(*testing.T, string) string { return "" }, "invalid sqlite file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := c.make(t, newFile(t))
			before, _ := os.ReadFile(path)
			b := sqlite.New(path)
			defer func() { _ = b.Close() }()
			_, err := openOn(b)
			if err == nil || !strings.Contains(err.Error(), c.shows) {
				t.Errorf("got %v, want an error with %q", err, c.shows)
			}
			if after, _ := os.ReadFile(path); name == "no database" && string(after) != string(before) {
				t.Error("the file has changed")
			}
		})
	}
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs statements on the file, as another program does.
func run(t *testing.T, path, statements string) string {
	t.Helper()
	c := connect(t, path)
	defer func() { _ = c.Close() }()
	if err := c.Exec(statements); err != nil {
		t.Fatal(err)
	}
	return path
}

func connect(t *testing.T, path string) *sqlite3.Conn {
	t.Helper()
	c, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.BusyTimeout(patience); err != nil { // a handle may write its activity
		t.Fatal(err)
	}
	return c
}

// TestLocked has another program hold the write lock. A call waits for it within its busy timeout,
// and reports a store that is unavailable after that.
func TestLocked(t *testing.T) {
	path := newFile(t)
	patient, hasty := open(t, path, sqlite.BusyTimeout(time.Minute)), open(t, path, sqlite.BusyTimeout(50*time.Millisecond))
	c := connect(t, path)
	defer func() { _ = c.Close() }()
	if err := c.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	pushed := make(chan error, 1)
	go func() { pushed <- push(patient, "patient", 0) }()
	err := push(hasty, "hasty", 0)
	if !errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrOutcomeUnknown) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	select {
	case err := <-pushed:
		t.Fatalf("pushed while another holds the lock: %v", err)
	default:
	}
	if err := c.Exec("COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-pushed; err != nil {
		t.Error(err)
	}
	if _, errs := hasty.Get(t.Context(), []string{"hasty"}); errs == nil || !errors.Is(errs[0], backend.ErrNotFound) {
		t.Errorf("a push that failed is there: %v", errs)
	}
}

// Another program has written to the activity of a queue: Stats has the other counts, and the activity
// begins at 0 again.
func TestBadActivity(t *testing.T) {
	for _, bad := range []string{"", "garbage", "{}", "null", "[1.5]", `["1"]`, "[1e400]", "[-1, -2, -3]"} {
		t.Run(bad, func(t *testing.T) {
			path := newFile(t)
			check := func(want int64) {
				q := open(t, path)
				if s, err := q.Stats(t.Context()); err != nil || s.Activity != (backend.Activity{Pushed: want}) || s.Ready != 2 {
					t.Errorf("got %+v, %v, want %d pushes", s, err, want)
				}
			}
			b := sqlite.New(path)
			defer func() { must(t, b.Close()) }()
			stands := backend.Options{Clock: clockwork.NewFakeClock()} // or it would add the activity a second later
			q, err := b.Open(t.Context(), "q", stands)
			must(t, err)
			mustPush(t, q, "a", 0)
			mustPush(t, q, "b", 0)
			run(t, path, "UPDATE delayq_queue SET activity = '"+bad+"'")
			check(0)
			_ = q.Close() // adds
			check(2)
		})
	}
}

// A call whose context ends while another program has the lock has certainly not happened.
func TestLeavesWhileLocked(t *testing.T) {
	path := newFile(t)
	q := open(t, path, sqlite.BusyTimeout(time.Minute))
	c := connect(t, path)
	defer func() { _ = c.Close() }()
	if err := c.Exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := errors.Join(q.Schedule(ctx, []backend.Message{{ID: "hasty"}, {ID: "too"}})...)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, backend.ErrOutcomeUnknown) {
		t.Errorf("got %v, want the error of the context alone", err)
	}
	if err := c.Exec("COMMIT"); err != nil {
		t.Fatal(err)
	}
	mustPush(t, q, "patient", 0) // the writer takes this one later
	if s, err := q.Stats(t.Context()); err != nil || s.Ready != 1 {
		t.Errorf("got %d messages, %v, want the one that was pushed later", s.Ready, err)
	}
}

// The file lives beside the tables of a program: its own tables stay.
func TestBesideOtherTables(t *testing.T) {
	path := run(t, newFile(t), "CREATE TABLE orders (id INTEGER PRIMARY KEY); INSERT INTO orders VALUES (7)")
	q := open(t, path)
	mustPush(t, q, "a", 0)
	ack(t, q, mustReceive(t, q, 1))
	run(t, path, "UPDATE orders SET id = 8 WHERE id = 7")
}

func TestOptions(t *testing.T) {
	for name, opt := range map[string]sqlite.Option{
		"no timeout": sqlite.BusyTimeout(0), "long timeout": sqlite.BusyTimeout(time.Hour), "nil": nil,
	} {
		b := sqlite.New(newFile(t), opt)
		if _, err := openOn(b); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%s: got %v", name, err)
		}
		_ = b.Close()
	}
	q := open(t, newFile(t), sqlite.Relaxed())
	mustPush(t, q, "a", 0)
	ack(t, q, mustReceive(t, q, 1))
}
