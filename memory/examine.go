package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/delayq/delayq/backend/admin"
)

var (
	_ admin.Examiner = (*Backend)(nil)
	_ admin.Lister   = (*Backend)(nil)
	_ admin.Remover  = (*Backend)(nil)
)

// Examine is as in admin.Examiner.
func (b *Backend) Examine(ctx context.Context) (admin.Examination, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usableLocked(ctx); err != nil {
		return admin.Examination{}, err
	}
	return admin.Examination{Findings: []admin.Finding{
		{
			Severity: admin.Note, About: "persistence", Text: "messages live in this process, and are lost with it",
			Remedy: "for messages that must survive use zsetpoll, keyspace, redisson or rabbitmq",
		},
		{About: "clock", Text: "due times are by this machine's own clock"},
	}}, nil
}

// Remove is as in admin.Remover. Handles that are still open on the queue work on a store of their
// own.
func (b *Backend) Remove(ctx context.Context, queue string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usableLocked(ctx); err != nil {
		return err
	}
	delete(b.stores, queue)
	return nil
}

// Remains is as in admin.Remover.
func (b *Backend) Remains(ctx context.Context, queues ...string) (left []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usableLocked(ctx); err != nil {
		return nil, err
	}
	for _, q := range queues {
		if s := b.stores[q]; s != nil {
			if messages, bytes := s.usage(); messages > 0 || bytes > 0 {
				left = append(left, fmt.Sprintf("%d messages of %d bytes in queue %s", messages, bytes, q))
			}
		}
	}
	return left, nil
}

// Queues is as in admin.Lister: the queues that hold anything, and those with an open handle.
func (b *Backend) Queues(ctx context.Context) (names []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usableLocked(ctx); err != nil {
		return nil, err
	}
	open := make(map[*store]bool)
	for q := range b.handles {
		open[q.store] = true
	}
	for name, s := range b.stores {
		if messages, bytes := s.usage(); open[s] || messages > 0 || bytes > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}
