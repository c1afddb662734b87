// Package redis_test holds the tests that run over all backends on Redis.
package redis_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// backends are those on Redis, by the scheme of their URLs.
var backends = []struct {
	scheme  string
	queries []string // of URLs that open it
	key     string   // a part of each key, with ?prefix=mine
}{
	{"zsetpoll", []string{"", "?claims=script", "?claims=arbitrate", "?claims=mover&poll=50ms", "?db=2&pool_size=4"}, "mine:{orders}:"},
	{"keyspace", []string{"", "?sweep=50ms", "?db=2&pool_size=4"}, "mine:{orders}:"},
	{"redisson", []string{
		"", "?codec=bytes&prefix=1:", "?codec=kryo5&format=v1&prefix=2:", "?codec=envelope&index=false&prefix=3:",
		"?codec=marshalling&format=both&any_format=true&sweep=50ms&prefix=4:", "?db=2&pool_size=4&index=true&any_format=false",
	}, "mineorders"},
}

// eachScheme runs a test for each backend.
func eachScheme(t *testing.T, f func(t *testing.T, scheme string)) {
	t.Parallel()
	for _, b := range backends {
		t.Run(b.scheme, func(t *testing.T) {
			t.Parallel()
			f(t, b.scheme)
		})
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// deadline bounds a test that waits for events; it only matters when something is broken.
func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
