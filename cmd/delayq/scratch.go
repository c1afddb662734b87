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
	url       string
	prefix    string // of all names
	namespace bool   // whether the URL names one of its own
	log       *slog.Logger

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
	if err != nil || !strings.HasPrefix(u.Scheme, "rabbitmq") && !strings.HasPrefix(u.Scheme, "amqp") {
		return // opening it returns the error
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return
	}
	query.Set("namespace", strings.TrimSuffix(s.prefix, "."))
	u.RawQuery = query.Encode()
	s.url, s.namespace = u.String(), true
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

// Queues is as in admin.Lister.
func (b *fenced) Queues(ctx context.Context) ([]string, error) {
	if l, ok := b.Backend.(admin.Lister); ok {
		return l.Queues(ctx)
	}
	return nil, backend.ErrUnsupported
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

// clear removes the queues of the scratch, and its namespace, and names what it could not remove.
func (s *scratch) clear(ctx context.Context) (left []string, err error) {
	left = s.names()
	if len(left) == 0 {
		return nil, nil
	}
	b, err := s.open(ctx)
	if err == nil {
		defer func() { err = errors.Join(err, b.Close()) }()
		left, err = s.remove(ctx, b.Backend, left)
	}
	if err != nil {
		err = fmt.Errorf("clearing up: %w", err)
	}
	return left, err
}

func (s *scratch) remove(ctx context.Context, b backend.Backend, names []string) (left []string, err error) {
	r, ok := b.(admin.Remover)
	if !ok {
		return names, nil
	}
	for _, name := range names {
		if err := r.Remove(ctx, name); err != nil {
			return names, fmt.Errorf("removing queue %q: %w", name, err)
		}
	}
	if left, err = r.Remains(ctx, names...); err != nil {
		return left, err
	}
	if n, ok := b.(namespaced); ok && s.namespace {
		return left, n.RemoveNamespace(ctx)
	}
	return left, nil
}

// A namespaced backend has more in the store than its queues.
type namespaced interface {
	RemoveNamespace(ctx context.Context) error
}
