package backend_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/delayq/delayq/backend"
)

var errOpened = errors.New("opened")

// opens is an opener that records its calls.
func opens(_ context.Context, u *url.URL) (backend.Backend, string, error) {
	return nil, u.Path, errOpened
}

func TestMuxOpensByScheme(t *testing.T) {
	t.Parallel()
	var m backend.Mux
	m.Register("one", opens)
	for _, rawURL := range []string{"one://host/orders?x=1", "ONE:///orders"} {
		_, name, err := m.Open(t.Context(), rawURL)
		if !errors.Is(err, errOpened) || name != "/orders" {
			t.Errorf("%s: opened %q with %v", rawURL, name, err)
		}
	}
}

func TestMuxRefusesUnknownSchemes(t *testing.T) {
	t.Parallel()
	var empty, m backend.Mux
	m.Register("two", opens)
	m.Register("one", opens)
	for _, tt := range []struct {
		mux    *backend.Mux
		rawURL string
		want   string
	}{
		{&m, "three://user:hunter2@host/orders", `unknown URL scheme "three" (forgotten import? known: one, two)`},
		{&m, "orders", `unknown URL scheme "" (forgotten import? known: one, two)`},
		{&empty, "one:///orders", `unknown URL scheme "one" (forgotten import? known: )`},
	} {
		_, _, err := tt.mux.Open(t.Context(), tt.rawURL)
		if !errors.Is(err, backend.ErrUnknownScheme) || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.rawURL, err, tt.want)
		}
	}
}

func TestMuxKeepsPasswordsOutOfErrors(t *testing.T) {
	t.Parallel()
	var m backend.Mux
	m.Register("one", opens)
	for _, rawURL := range []string{
		"one://user:hunter2@[::1/orders", "one://user:hunter2@host:port/orders", "one://user:hunter2@host/%zz",
		"one://us er:hunter2@host/", "://user:hunter2@host", "two://user:hunter2@host/", "user:hunter2@host/orders",
	} {
		_, _, err := m.Open(t.Context(), rawURL)
		if !errors.Is(err, backend.ErrInvalid) && !errors.Is(err, backend.ErrUnknownScheme) {
			t.Errorf("%s: %v", rawURL, err)
		}
		if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "hunter2") {
			t.Errorf("%v tells the password", err)
		}
	}
}

func TestMuxRefusesASecondRegistration(t *testing.T) {
	t.Parallel()
	var m backend.Mux
	m.Register("one", opens)
	for name, register := range map[string]func(){
		"taken":   func() { m.Register("one", opens) },
		"nothing": func() { m.Register("two", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "scheme") {
					t.Errorf("panicked with %v, want one that names the scheme", v)
				}
			}()
			register()
		})
	}
	if got := m.Schemes(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("schemes %q, want the first alone", got)
	}
}

func TestMuxSortsItsSchemes(t *testing.T) {
	t.Parallel()
	var m backend.Mux
	if got := m.Schemes(); len(got) != 0 {
		t.Errorf("schemes %q before any is registered", got)
	}
	want := []string{"a", "b", "c", "d", "e", "f"}
	for _, s := range []string{"d", "a", "f", "c", "b", "e"} {
		m.Register(s, opens)
	}
	if got := m.Schemes(); !slices.Equal(got, want) {
		t.Errorf("schemes %q, want %q", got, want)
	}
}

func TestMuxIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	var m backend.Mux
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			scheme := fmt.Sprint("s", i)
			m.Register(scheme, opens)
			if _, _, err := m.Open(t.Context(), scheme+":///orders"); !errors.Is(err, errOpened) {
				t.Errorf("%s: %v", scheme, err)
			}
			_, _, _ = m.Open(t.Context(), "none:///orders")
		})
	}
	all.Wait()
	if got := len(m.Schemes()); got != 20 {
		t.Errorf("%d schemes, want 20", got)
	}
}

// withStore is a mux with a scheme whose path is the queue's name, and an alias of it.
func withStore() *backend.Mux {
	m := new(backend.Mux)
	m.Register("own", func(_ context.Context, u *url.URL) (backend.Backend, string, error) {
		return nil, u.Host + " " + u.EscapedPath() + " " + u.RawQuery, errOpened
	})
	m.Alias("alias", func(u *url.URL, queue string) (*url.URL, error) {
		if u.Host == "bad" {
			return nil, backend.Invalid("host", u.Host, "another")
		}
		return &url.URL{Scheme: "own", Host: u.Host, Path: u.Path + "/" + queue, RawQuery: u.RawQuery}, nil
	})
	return m
}

func TestMuxOpensAliases(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rawURL, name, want string
	}{
		{"alias://h?queue=orders", "", "h /orders "},
		{"alias://h/0?a=%26b&queue=orders&c&a=2", "", "h /0/orders a=%26b&c&a=2"},
		{"alias://h/0?queue=a%3Ab%20c", "", "h /0/a:b%20c "},
		{"ALIAS://h/0?a=1", "orders", "h /0/orders a=1"},
		{"alias://h?queue=orders", "orders", "h /orders "},
		{"own://h?queue=orders", "refunds", "h /refunds queue=orders"}, // a parameter that own refuses
		{"own://h/", "a/b", "h /a%2Fb "},
		{"own://h", "orders", "h /orders "},
		{"own://h/orders", "", "h /orders "},
		{"own://h", "", "h  "},
	} {
		_, got, err := withStore().OpenNamed(t.Context(), tt.rawURL, tt.name)
		if !errors.Is(err, errOpened) || got != tt.want {
			t.Errorf("%s named %q: opened %q with %v, want %q", tt.rawURL, tt.name, got, err, tt.want)
		}
	}
}

func TestMuxRefusesNamesOfAliases(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rawURL, name, want string
	}{
		{"alias://u:hunter2@h/0", "", `invalid queue name "": allowed is one, since alias:// names a store alone: the option Named("orders"), or queue=orders in the URL`},
		{"alias://u:hunter2@h?queue=a", "b", `invalid queue name "b": allowed is the URL's own, "a", or a name in one of the two places`},
		{"alias://h?queue=", "b", `invalid URL parameter queue "(hidden)": allowed is one queue name, percent-encoded`},
		{"alias://h?queue=a&queue=a", "", `invalid URL parameter queue "(hidden)": allowed is one queue name, percent-encoded`},
		{"alias://h?queue=%zz", "", `invalid URL parameter queue "(hidden)": allowed is one queue name, percent-encoded`},
		{"alias://u:1?queue=hunter2@h", "", `invalid URL parameter queue "(hidden)": allowed is one queue name, percent-encoded`},
		{"alias://bad?queue=a", "", `invalid host "bad": allowed is another`},
	} {
		_, _, err := withStore().OpenNamed(t.Context(), tt.rawURL, tt.name)
		if !errors.Is(err, backend.ErrInvalid) || err.Error() != tt.want {
			t.Errorf("%s named %q: got %v, want %s", tt.rawURL, tt.name, err, tt.want)
		}
	}
}

func TestMuxListsAliases(t *testing.T) {
	t.Parallel()
	m := withStore()
	if got := m.Schemes(); !slices.Equal(got, []string{"alias", "own"}) {
		t.Errorf("schemes %q", got)
	}
	for name, register := range map[string]func(){
		"an alias's":    func() { m.Register("alias", opens) },
		"a scheme's":    func() { m.Alias("own", func(u *url.URL, _ string) (*url.URL, error) { return u, nil }) },
		"no translator": func() { m.Alias("third", nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("registered")
				}
			}()
			register()
		})
	}
}

// A scheme stays registered, also when the test runs again.
var registerOnce sync.Once

func TestDefaultMux(t *testing.T) {
	t.Parallel()
	registerOnce.Do(func() { backend.Register("default-mux-test", opens) })
	if got := backend.DefaultMux().Schemes(); !slices.Equal(got, []string{"default-mux-test"}) {
		t.Errorf("schemes %q", got)
	}
	if _, _, err := backend.DefaultMux().Open(t.Context(), "default-mux-test:///orders"); !errors.Is(err, errOpened) {
		t.Error(err)
	}
}
