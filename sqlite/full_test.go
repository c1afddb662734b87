package sqlite

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/sqlqueue"
)

// TestFullDisk has SQLite report a full disk, by a limit on its pages. A push returns ErrFull and
// stores nothing; messages that are there can be handed out and settled, and make room.
func TestFullDisk(t *testing.T) {
	b := New(filepath.Join(t.TempDir(), "delay.db"))
	defer func() { _ = b.Close() }()
	q, err := b.Open(t.Context(), "q", backend.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	b.file.writer.outside(func(c *conn) { err = c.Exec("PRAGMA max_page_count = 100") })
	if err != nil {
		t.Fatal(err)
	}
	stored := 0
	for err == nil {
		err = errors.Join(q.Schedule(t.Context(), []backend.Message{{ID: fmt.Sprint(stored), Body: make([]byte, 3000)}})...)
		stored++
	}
	stored--
	if !errors.Is(err, backend.ErrFull) || errors.Is(err, backend.ErrOutcomeUnknown) || stored < 10 {
		t.Fatalf("push %d returned %v, want ErrFull", stored, err)
	}
	if _, errs := q.Get(t.Context(), []string{fmt.Sprint(stored)}); errs == nil || !errors.Is(errs[0], backend.ErrNotFound) {
		t.Errorf("the refused message: %v", errs)
	}
	for range stored {
		ds, err := q.Receive(t.Context(), 1, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if errs := q.Ack(t.Context(), []backend.Lease{ds[0].Lease()}); errs != nil {
			t.Fatal(errs)
		}
	}
	if errs := q.Schedule(t.Context(), []backend.Message{{ID: "again", Body: make([]byte, 3000)}}); errs != nil {
		t.Errorf("a push into an empty queue: %v", errs)
	}
}

// A file that turns read-only, as on a file system that the kernel has remounted, says so.
func TestReadOnly(t *testing.T) {
	b := New(filepath.Join(t.TempDir(), "delay.db"))
	defer func() { _ = b.Close() }()
	q, err := b.Open(t.Context(), "q", backend.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	b.file.writer.outside(func(c *conn) { err = c.Exec("PRAGMA query_only = 1") })
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(q.Schedule(t.Context(), []backend.Message{{ID: "a"}})...)
	if err == nil || !strings.Contains(err.Error(), "give this process the right to write") {
		t.Errorf("got %v", err)
	}
}

// Each statement that finds messages by time uses the index, whatever the tables hold: none sorts
// and none walks over all messages of a queue.
func TestPlans(t *testing.T) {
	b := New(filepath.Join(t.TempDir(), "delay.db"))
	defer func() { _ = b.Close() }()
	if _, err := b.Open(t.Context(), "q", backend.Options{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"look":         "SEARCH delayq_message USING COVERING INDEX delayq_message_by_time (queue=? AND state=?)",
		"select_due":   "SEARCH m USING INDEX delayq_message_by_time (queue=? AND state=? AND at<?)",
		"lease_due":    "SEARCH delayq_message USING INDEX delayq_message_by_time (queue=? AND state=? AND (at,place)<(?,?))",
		"list_dead":    "SEARCH m USING INDEX delayq_message_by_time (queue=? AND state=? AND (at,place)>(?,?))",
		"find_message": "SEARCH delayq_message USING PRIMARY KEY (queue=? AND id=?)",
		"ack":          "SEARCH delayq_message USING PRIMARY KEY (queue=? AND id=?)",
	} {
		plan := ""
		b.file.writer.outside(func(c *conn) {
			s, _, err := c.Prepare("EXPLAIN QUERY PLAN " + sqlqueue.Statement(files, "sql", name))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			for s.Step() {
				plan += s.ColumnText(3) + "\n"
			}
		})
		if !strings.Contains(plan, want) || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s:\n%swant %s", name, plan, want)
		}
	}
}
