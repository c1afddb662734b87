package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
)

// A scratch is a part of a store that no other program uses: queues whose names begin with an
// unlikely prefix. The queue that the URL names is never opened.
type scratch struct {
	url    string
	prefix string // of all names
	log    *slog.Logger

	mu     sync.Mutex
	opened map[string]bool
}

// newScratch returns a scratch on the store that a URL names.
func newScratch(rawURL, what string, log *slog.Logger) *scratch {
	token := strings.ToLower(rand.Text()[:10])
	return &scratch{url: rawURL, prefix: what + "-" + token + ".", log: log, opened: make(map[string]bool)}
}

// useNamespace moves the URL to a namespace of its own, where the scheme has namespaces.
func (s *scratch) useNamespace() {
	u, err := url.Parse(s.url)
	if err != nil || !strings.HasPrefix(u.Scheme, "rabbitmq") {
		return // opening it returns the error
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return
	}
	query.Set("namespace", strings.TrimSuffix(s.prefix, "."))
	u.RawQuery = query.Encode()
	s.url = u.String()
}

// open connects to the store.
func (s *scratch) open(ctx context.Context) (*fenced, error) {
	b, queue, err := backend.DefaultMux().Open(ctx, s.url)
	if err != nil {
		return nil, err
	}
	return &fenced{Backend: b, scratch: s, named: queue}, nil
}

// A fenced backend opens queues of the scratch and no others.
type fenced struct {
	backend.Backend
	scratch *scratch
	named   string // by the URL

	mu   sync.Mutex
	mine map[string]bool // opened through it
}

// Open is as in backend.Backend.
func (b *fenced) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	if !strings.HasPrefix(strings.ToLower(name), b.scratch.prefix) {
		return nil, backend.Invalid("queue name", name, "one that begins with "+b.scratch.prefix)
	}
	if b.scratch.log != nil {
		o.Logger = b.scratch.log.With("queue", name)
	}
	b.scratch.mu.Lock()
	b.scratch.opened[name] = true
	b.scratch.mu.Unlock()
	b.mu.Lock()
	set(&b.mine, name, true)
	b.mu.Unlock()
	return b.Backend.Open(ctx, name, o)
}

// left names the messages left in queues that were opened through this backend.
func (b *fenced) left(ctx context.Context) ([]string, error) {
	r, ok := b.Backend.(admin.Remover)
	if !ok {
		return nil, nil
	}
	b.mu.Lock()
	names := slices.Sorted(maps.Keys(b.mine))
	b.mu.Unlock()
	return r.Remains(ctx, names...)
}

func (s *scratch) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.opened))
}

// clear removes the queues of the scratch, and names those that it could not remove.
func (s *scratch) clear(ctx context.Context) (left []string, err error) {
	names := s.names()
	if len(names) == 0 {
		return nil, nil
	}
	b, err := s.open(ctx)
	if err != nil {
		return names, fmt.Errorf("clearing up: %w", err)
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	r, ok := b.Backend.(admin.Remover)
	if !ok {
		return names, nil
	}
	for _, name := range names {
		if err := r.Remove(ctx, name); err != nil {
			return names, fmt.Errorf("clearing up: removing queue %q: %w", name, err)
		}
	}
	if left, err = r.Remains(ctx, names...); err != nil {
		return left, fmt.Errorf("clearing up: %w", err)
	}
	return left, nil
}

// A namespaced backend has more in the store than its queues.
type namespaced interface {
	RemoveNamespace(ctx context.Context) error
}

// clearNamespace is clear after useNamespace.
func (s *scratch) clearNamespace(ctx context.Context) (left []string, err error) {
	left, err = s.clear(ctx)
	if err != nil || len(s.names()) == 0 {
		return left, err
	}
	b, err := s.open(ctx)
	if err != nil {
		return left, fmt.Errorf("clearing up: %w", err)
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if n, ok := b.Backend.(namespaced); ok {
		if err := n.RemoveNamespace(ctx); err != nil {
			return left, fmt.Errorf("clearing up: %w", err)
		}
	}
	return left, nil
}
