package redistest

import (
	"errors"
	"net/url"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/setup"
)

// FuzzURL wants each URL rejected with a typed error, or options of which a backend can be made:
// check returns why not.
func FuzzURL[Option any](f *testing.F, parse setup.Parser[Option], check func(redis.UniversalClient, []Option) error, seeds ...string) {
	f.Helper()
	for _, seed := range seeds {
		f.Add(seed)
	}
	client := redis.NewClient(&redis.Options{Addr: "localhost:1"}) // never dialled
	f.Cleanup(func() { _ = client.Close() })
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil {
			t.Skip("the parser of package url rejects it")
		}
		target, opts, err := parse(u)
		if err != nil {
			if !errors.Is(err, backend.ErrInvalid) {
				t.Fatalf("%q is rejected with %v", text, err)
			}
			return
		}
		if err := check(client, opts); err != nil || target.Queue == "" {
			t.Fatalf("%q gives queue %q and %v", text, target.Queue, err)
		}
	})
}
