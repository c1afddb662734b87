package testenv

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) { Main(m) }

// oneTry makes a client return the first error instead of trying again.
func oneTry(opt *redis.Options) {
	opt.MaxRetries = -1
	opt.ReadTimeout, opt.DialTimeout = 10*time.Second, 10*time.Second
}

// hasty is oneTry for a test in which nothing comes.
func hasty(opt *redis.Options) {
	oneTry(opt)
	opt.ReadTimeout = 50 * time.Millisecond
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustPing(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	must(t, client.Ping(context.Background()).Err())
}
