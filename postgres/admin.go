package postgres

import (
	"context"
	"fmt"

	"github.com/delayq/delayq/backend/admin"
)

var (
	_ admin.Lister  = (*Backend)(nil)
	_ admin.Remover = (*Backend)(nil)
)

// Queues is as in admin.Lister: the queues that have messages, ids that UniqueFor keeps, or a pause.
func (b *Backend) Queues(ctx context.Context) ([]string, error) {
	if err := b.check(ctx); err != nil {
		return nil, err
	}
	return call(ctx, b, b.cfg.call("list_queues"), nil, func(names *[]string, s scan) error {
		var name string
		err := s(&name)
		*names = append(*names, name)
		return err
	})
}

// Remove is as in admin.Remover.
func (b *Backend) Remove(ctx context.Context, queue string) error {
	if err := b.check(ctx); err != nil {
		return err
	}
	m := &messages{b: b, queue: queue}
	if _, err := m.Purge(ctx); err != nil {
		return err
	}
	if err := m.ResumeAll(ctx); err != nil {
		return err
	}
	return m.do(ctx, b.cfg.call("forget_counts", "text"), queue)
}

// Remains is as in admin.Remover.
func (b *Backend) Remains(ctx context.Context, queues ...string) ([]string, error) {
	if err := b.check(ctx); err != nil {
		return nil, err
	}
	return call(ctx, b, "SELECT queue, count(*) FROM "+b.cfg.name("messages")+" WHERE queue = ANY ($1::text[]) GROUP BY queue ORDER BY queue",
		[]any{append([]string{}, queues...)}, func(left *[]string, s scan) error {
			var name string
			var n int64
			err := s(&name, &n)
			*left = append(*left, fmt.Sprintf("%d rows of queue %s", n, name))
			return err
		})
}
