package sqlite_test

import (
	"errors"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/delayq/delayq/backend"
)

func TestURLs(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	path := (&url.URL{Path: dir}).EscapedPath()
	for _, c := range []struct{ url, name, file, queue string }{
		{"sqlite://" + path + "/a.db/orders", "", "a.db", "orders"},
		{"sqlite://" + path + "/a%20b/or%2Fders", "", "a b", "or/ders"},
		{"sqlite://b.db/orders?busy_timeout=1s&synchronous=normal", "", "b.db", "orders"},
		{"sqlite://c.db", "orders", "c.db", "orders"},
		{"sqlite://" + path + "/a.db/orders", "orders", "a.db", "orders"},
		{"sqlite://" + path + "/d.db", "orders", "d.db", "orders"},
	} {
		b, queue, err := backend.DefaultMux().OpenNamed(t.Context(), c.url, c.name)
		if err != nil || queue != c.queue {
			t.Errorf("%s: queue %q, %v", c.url, queue, err)
			continue
		}
		if _, err := b.Open(t.Context(), queue, backend.Options{Logger: slog.New(slog.DiscardHandler)}); err != nil {
			t.Errorf("%s: %v", c.url, err)
		}
		if _, err := os.Stat(c.file); err != nil {
			t.Errorf("%s: %v", c.url, err)
		}
		_ = b.Close()
	}
}

func TestBadURLs(t *testing.T) {
	for _, c := range []struct{ url, name, shows string }{
		{"sqlite:orders", "", "sqlite URL"},
		{"sqlite:///orders", "", "without a file"},
		{"sqlite:///dir/a.db/", "", "sqlite URL"},
		{"sqlite://user:secret@a.db/orders", "", "sqlite URL"},
		{"sqlite://a.db:80/orders", "", "sqlite URL"},
		{"sqlite:///a.db/orders#x", "", "sqlite URL"},
		{"sqlite:///a.db/orders?busy_timeout=0s", "", "BusyTimeout"},
		{"sqlite:///a.db/orders?busy_timeout=5", "", "busy_timeout"},
		{"sqlite:///a.db/orders?synchronous=off", "", "synchronous"},
		{"sqlite:///a.db/orders?synchronous=full&synchronous=full", "", `"full,full"`},
		{"sqlite:///a.db/orders?mode=ro", "", `parameter "mode"`},
		{"sqlite:///dir/a", "orders", "queue name"},
	} {
		_, _, err := backend.DefaultMux().OpenNamed(t.Context(), c.url, c.name)
		if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), c.shows) {
			t.Errorf("%s: want an error with %q, got %v", c.url, c.shows, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the password: %v", c.url, err)
		}
	}
}
