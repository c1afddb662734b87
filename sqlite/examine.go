package sqlite

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/ncruces/go-sqlite3"

	"github.com/delayq/delayq/backend/admin"
)

var (
	_ admin.Examiner      = (*Backend)(nil)
	_ admin.QueueExaminer = (*Backend)(nil)
	_ admin.Lister        = (*Backend)(nil)
	_ admin.Remover       = (*Backend)(nil)
)

// Examine is as in admin.Examiner: how the file is set up, and whether SQLite finds it whole.
func (b *Backend) Examine(ctx context.Context) (admin.Examination, error) {
	f, err := b.open(ctx)
	if err != nil {
		return admin.Examination{}, err
	}
	findings := []admin.Finding{
		{About: "clock", Text: "due times are by this machine's own clock"},
		{About: "durability", Text: "each commit is on the disk before it returns (synchronous = FULL)"},
	}
	if f.sync != "FULL" {
		findings[1] = admin.Finding{
			Severity: admin.Warning, About: "durability", Text: "a power cut may lose the last commits (synchronous = NORMAL)",
			Remedy: "leave the option Relaxed, or the parameter synchronous, out",
		}
	}
	err = f.read(ctx, func(c *conn) error {
		pages, size := int64(0), int64(0)
		if err := c.rows("page_count", func(s *sqlite3.Stmt) bool {
			pages, size = s.ColumnInt64(0), s.ColumnInt64(1)
			return true
		}); err != nil {
			return err
		}
		findings = append(findings, admin.Finding{About: "size", Text: fmt.Sprintf("%d bytes are in use", pages*size)})
		var broken string
		err := c.rows("quick_check", func(s *sqlite3.Stmt) bool {
			broken = s.ColumnText(0)
			return false
		})
		if broken != "ok" {
			findings = append(findings, admin.Finding{
				Severity: admin.Problem, About: "file", Text: "SQLite finds the file damaged: " + broken,
				Remedy: "stop its programs, keep a copy, and restore it from a backup or with sqlite3's .recover",
			})
		}
		return err
	})
	return admin.Examination{Findings: findings}, err
}

// ExamineQueue is as in admin.QueueExaminer: whether the queue is paused.
func (b *Backend) ExamineQueue(ctx context.Context, queue string) ([]admin.Finding, error) {
	f, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	var paused int64
	err = f.read(ctx, func(c *conn) (err error) {
		n, err := c.number("find_queue", queue)
		if err == nil {
			paused, err = c.number("read_pause", n)
		}
		return err
	})
	if err != nil || paused == 0 {
		return nil, err
	}
	if paused <= time.Now().UnixNano() {
		return nil, nil
	}
	text := "the queue is paused: no worker gets a message"
	if paused < math.MaxInt64 {
		text += " before " + moment(paused).Format(time.RFC3339)
	}
	return []admin.Finding{{Severity: admin.Note, About: "pause", Text: text, Remedy: "end it by delayq resume, when it is no longer meant"}}, nil
}

// Queues is as in admin.Lister: every queue that was opened in the file and not removed.
func (b *Backend) Queues(ctx context.Context) (names []string, err error) {
	f, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	err = f.read(ctx, func(c *conn) error {
		return c.rows("list_queues", func(s *sqlite3.Stmt) bool {
			names = append(names, s.ColumnText(0))
			return true
		})
	})
	slices.Sort(names)
	return names, err
}

// Remove is as in admin.Remover.
func (b *Backend) Remove(ctx context.Context, queue string) error {
	f, err := b.open(ctx)
	if err != nil {
		return err
	}
	number, err := f.find(ctx, queue)
	if err != nil || number == 0 {
		return err
	}
	m := &messages{file: f, name: queue, queue: number, clock: clockwork.NewRealClock()}
	if _, err := m.Purge(ctx); err != nil {
		return err
	}
	return f.writer.submit(ctx, func(t *tx) error {
		_, err := t.exec("remove_queue", number)
		return err
	})
}

// Remains is as in admin.Remover.
func (b *Backend) Remains(ctx context.Context, queues ...string) (left []string, err error) {
	f, err := b.open(ctx)
	if err != nil {
		return nil, err
	}
	for _, queue := range queues {
		number, err := f.find(ctx, queue)
		if err != nil {
			return nil, err
		}
		var rows int64
		err = f.read(ctx, func(c *conn) (err error) {
			rows, err = c.number("count_rows", number)
			return err
		})
		if err != nil {
			return nil, err
		}
		if rows > 0 {
			left = append(left, fmt.Sprintf("%d rows of queue %s", rows, queue))
		}
	}
	return left, nil
}

// find returns the number of a queue, 0 where there is none.
func (f *file) find(ctx context.Context, queue string) (n int64, err error) {
	err = f.read(ctx, func(c *conn) (err error) {
		n, err = c.number("find_queue", queue)
		return err
	})
	return n, err
}
