package backend

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Opener connects to the store that a URL names and returns the queue's name in it. It rejects
// unknown query parameters.
type Opener func(ctx context.Context, u *url.URL) (b Backend, queue string, err error)

// Mux maps URL schemes to backends. The zero value is empty and ready; it is safe
// for concurrent use.
type Mux struct {
	mu      sync.RWMutex
	openers map[string]Opener
}

// Register adds a scheme. It panics on one that is taken, as database/sql does:
// two packages under one name are a mistake of the program, not of its input.
func (m *Mux) Register(scheme string, open Opener) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.openers[scheme]; taken || open == nil {
		panic(fmt.Sprintf("backend: scheme %q registered twice or without an opener", scheme))
	}
	if m.openers == nil {
		m.openers = make(map[string]Opener)
	}
	m.openers[scheme] = open
}

// Schemes returns the registered schemes, sorted.
func (m *Mux) Schemes() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	schemes := make([]string, 0, len(m.openers))
	for s := range m.openers {
		schemes = append(schemes, s)
	}
	slices.Sort(schemes)
	return schemes
}

// Open connects to the store that rawURL names. The caller closes the backend. It
// returns [ErrUnknownScheme] for a scheme without a backend and [ErrInvalid] for a
// URL that cannot be read. Errors do not repeat the URL's password.
func (m *Mux) Open(ctx context.Context, rawURL string) (b Backend, queue string, err error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		// The parser's own error repeats the URL, password and all.
		return nil, "", Invalid("URL", "(unreadable)", "scheme://[user:password@host]/queue, percent-encoded")
	}
	m.mu.RLock()
	open, ok := m.openers[u.Scheme]
	m.mu.RUnlock()
	if !ok {
		return nil, "", fmt.Errorf("%w %q (forgotten import? known: %s)",
			ErrUnknownScheme, u.Scheme, strings.Join(m.Schemes(), ", "))
	}
	return open(ctx, u)
}

var defaultMux Mux

// Register adds a scheme to the mux that delayq.Open uses. A backend calls it from
// its init function.
func Register(scheme string, open Opener) { defaultMux.Register(scheme, open) }

// DefaultMux returns the mux that delayq.Open uses.
func DefaultMux() *Mux { return &defaultMux }
