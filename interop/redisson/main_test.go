package interop

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/redisson"
	"github.com/redis/go-redis/v9"
)

// TestMain also runs the workers that are killed, whose mode is a layout.
func TestMain(m *testing.M) {
	redistest.Main(m, func(mode string, client redis.UniversalClient) backend.Backend {
		layout, err := strconv.Atoi(mode)
		if err != nil {
			panic(err)
		}
		return redisson.New(client, redisson.Format(redisson.MemberFormat(layout)))
	})
}

// testContext bounds a test's calls, below the time limit of the tests.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

var must = redistest.Must

// got fails the test on an error, and passes the value on.
func got[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		must(t, err)
		return value
	}
}

// eventually waits for a condition.
func eventually(ctx context.Context, t *testing.T, what string, condition func() bool) {
	t.Helper()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("waiting for %s: %v", what, ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
}
