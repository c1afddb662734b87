package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/redis/call"
	"github.com/delayq/delayq/internal/redis/check"
)

// Remove is as in admin.Remover: a purge deletes all keys of a queue but that of its pause.
func Remove(ctx context.Context, b *Backend, queue string) error {
	if err := b.usable(); err != nil {
		return err
	}
	s, err := b.Source(ctx, queue, backend.Options{Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		_, err = s.Purge(ctx)
	}
	if err == nil {
		err = s.ResumeAll(ctx)
	}
	if err == nil && s.Remove != nil {
		err = s.Remove(ctx)
	}
	if err == nil {
		err = b.registry.remove(ctx, queue)
	}
	return err
}

// Reshard changes the number of shards of a queue.
func Reshard(ctx context.Context, b *Backend, queue string, n int) error {
	if err := b.usable(); err != nil {
		return err
	}
	s, err := b.Source(ctx, queue, backend.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	if s.Reshard == nil {
		return backend.Invalid("backend for Reshard", b.Name, "one that claims by script")
	}
	return s.Reshard(ctx, n)
}

// Examine is as in admin.Examiner.
func Examine(ctx context.Context, b *Backend) (admin.Examination, error) {
	if err := b.usable(); err != nil {
		return admin.Examination{}, err
	}
	return call.Do(ctx, b.Calls, func(ctx context.Context) (admin.Examination, error) { return check.Examine(ctx, b.Client) })
}

// ExamineQueue is as in admin.QueueExaminer: it tells of a pause.
func ExamineQueue(ctx context.Context, b *Backend, queue string) ([]admin.Finding, error) {
	if err := b.usable(); err != nil {
		return nil, err
	}
	s, err := b.Source(ctx, queue, backend.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	paused, until, err := s.Paused(ctx)
	if err != nil || !paused {
		return nil, err
	}
	text := "the queue is paused: no worker gets a message"
	if !until.IsZero() {
		text += " before " + until.Format(time.RFC3339)
	}
	return []admin.Finding{{Severity: admin.Note, About: "pause", Text: text, Remedy: "end it by delayq resume, when it is no longer meant"}}, nil
}

func (b *Backend) usable() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return backend.ErrClosed
	}
	return b.Err
}

// Remains is as in admin.Remover. It scans all keys of the server, so that it also finds keys
// that a script left by mistake.
func Remains(ctx context.Context, b *Backend, queues ...string) (left []string, err error) {
	if err := b.usable(); err != nil || len(queues) == 0 {
		return nil, err
	}
	return call.Do(ctx, b.Calls, func(ctx context.Context) ([]string, error) { return remains(ctx, b, queues) })
}

func remains(ctx context.Context, b *Backend, queues []string) (left []string, err error) {
	pattern := "*" + literalPattern(common(queues)) + "*"
	err = check.Each(ctx, b.Client, func(ctx context.Context, _ string, c redis.Cmdable) error {
		keys := c.Scan(ctx, 0, pattern, 1000).Iterator()
		for keys.Next(ctx) {
			if slices.ContainsFunc(queues, func(q string) bool { return b.KeyOf(keys.Val(), q) }) {
				left = append(left, "key "+keys.Val())
			}
		}
		if err := keys.Err(); err != nil {
			return fmt.Errorf("looking for keys: %w", err)
		}
		return nil
	})
	slices.Sort(left)
	return slices.Compact(left), errors.Join(err, ctx.Err()) // a scan may return a key twice
}

// common returns the prefix that all names share.
func common(names []string) string {
	c := names[0]
	for _, n := range names[1:] {
		for !strings.HasPrefix(n, c) {
			c = c[:len(c)-1]
		}
	}
	return c
}

var literal = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`)

// literalPattern returns a pattern that matches the text alone.
func literalPattern(text string) string { return literal.Replace(text) }
