package backend

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Opener connects to the store that a URL names and returns the queue's name in it, which is empty
// where the URL names a store alone. It rejects unknown query parameters.
type Opener func(ctx context.Context, u *url.URL) (b Backend, queue string, err error)

// Translator turns a URL of an alias, which has no place for a queue's name, into one of a scheme
// that an [Opener] reads.
type Translator func(u *url.URL, queue string) (*url.URL, error)

// Mux maps URL schemes to backends. The zero value is empty and ready; it is safe
// for concurrent use.
type Mux struct {
	mu      sync.RWMutex
	openers map[string]Opener
	aliases map[string]Translator
}

// Register adds a scheme. It panics on one that is taken, as database/sql does:
// two packages under one name are a mistake of the program, not of its input.
func (m *Mux) Register(scheme string, open Opener) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mustBeFree(scheme, open == nil)
	if m.openers == nil {
		m.openers = make(map[string]Opener)
	}
	m.openers[scheme] = open
}

// Alias adds a scheme that people have in their settings for a store, such as redis, and whose path
// is no queue's name. The name is the URL's parameter "queue" or the caller's, and the translated
// URL is opened. It panics as Register does.
func (m *Mux) Alias(scheme string, translate Translator) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mustBeFree(scheme, translate == nil)
	if m.aliases == nil {
		m.aliases = make(map[string]Translator)
	}
	m.aliases[scheme] = translate
}

func (m *Mux) mustBeFree(scheme string, missing bool) {
	if m.openers[scheme] != nil || m.aliases[scheme] != nil || missing {
		panic(fmt.Sprintf("backend: scheme %q registered twice or without an opener", scheme))
	}
}

// Schemes returns the registered schemes, sorted.
func (m *Mux) Schemes() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	schemes := slices.AppendSeq(make([]string, 0, len(m.openers)+len(m.aliases)), maps.Keys(m.openers))
	schemes = slices.AppendSeq(schemes, maps.Keys(m.aliases))
	slices.Sort(schemes)
	return schemes
}

// Open connects to the store that rawURL names. The caller closes the backend. It
// returns [ErrUnknownScheme] for a scheme without a backend and [ErrInvalid] for a
// URL that cannot be read. Errors do not repeat the URL's password.
func (m *Mux) Open(ctx context.Context, rawURL string) (b Backend, queue string, err error) {
	return m.OpenNamed(ctx, rawURL, "")
}

// OpenNamed is Open for a URL that may leave the queue's name out: it is then name. An empty name
// is none. It returns [ErrInvalid] for a name that differs from the URL's, and for an alias without
// any.
func (m *Mux) OpenNamed(ctx context.Context, rawURL, name string) (b Backend, queue string, err error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		// The parser's own error repeats the URL, password and all.
		return nil, "", Invalid("URL", "(unreadable)", "scheme://[user:password@host]/queue, percent-encoded")
	}
	m.mu.RLock()
	translate, alias := m.aliases[u.Scheme]
	m.mu.RUnlock()
	switch {
	case alias:
		if u, err = translated(u, name, translate); err != nil {
			return nil, "", err
		}
	case name != "" && strings.Trim(u.Path, "/") == "" && u.Opaque == "":
		u.Path, u.RawPath = "/"+name, "/"+url.PathEscape(name)
	}
	m.mu.RLock()
	open, ok := m.openers[u.Scheme]
	m.mu.RUnlock()
	if !ok {
		return nil, "", fmt.Errorf("%w %q (forgotten import? known: %s)",
			ErrUnknownScheme, u.Scheme, strings.Join(m.Schemes(), ", "))
	}
	b, queue, err = open(ctx, u)
	if err == nil && queue != "" && name != "" && name != queue {
		_ = b.Close()
		return nil, "", twoNames(name, queue)
	}
	return b, cmp.Or(queue, name), err
}

// translated moves the parameter queue of an alias's URL, or the caller's name, to its place.
func translated(u *url.URL, name string, translate Translator) (*url.URL, error) {
	var others []string
	given := 0
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		value, found := strings.CutPrefix(pair, "queue=")
		if !found {
			others = append(others, pair)
			continue
		}
		queue, err := url.QueryUnescape(value)
		given++
		switch {
		case err != nil || queue == "" || given > 1 || strings.Contains(queue, "@"): // which may end a password
			return nil, Invalid("URL parameter queue", "(hidden)", "one queue name, percent-encoded")
		case name != "" && name != queue:
			return nil, twoNames(name, queue)
		}
		name = queue
	}
	if name == "" {
		return nil, Invalid("queue name", "",
			fmt.Sprintf(`one, since %s:// names a store alone: the option Named("orders"), or queue=orders in the URL`, u.Scheme))
	}
	store := *u
	store.RawQuery = strings.Join(others, "&")
	return translate(&store, name)
}

func twoNames(name, queue string) error {
	return Invalid("queue name", name, fmt.Sprintf("the URL's own, %.*q, or a name in one of the two places", shown, queue))
}

var defaultMux Mux

// Register adds a scheme to the mux that delayq.Open uses. A backend calls it from
// its init function.
func Register(scheme string, open Opener) { defaultMux.Register(scheme, open) }

// RegisterAlias adds an alias to the mux that delayq.Open uses.
func RegisterAlias(scheme string, translate Translator) { defaultMux.Alias(scheme, translate) }

// DefaultMux returns the mux that delayq.Open uses.
func DefaultMux() *Mux { return &defaultMux }
