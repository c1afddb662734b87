package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/redisson"
	"github.com/delayq/delayq/zsetpoll"
)

// TestLargeDeadLetters lists and redrives dead letters that are too many bytes for one reply. No
// page has more than fits, and to redrive all no body is sent.
func TestLargeDeadLetters(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	n, size := 24, 4<<20
	if testenv.Runs(t, testenv.Nightly) {
		n, size = 101, 16<<20-1024 // headers and codecs need some
	}
	for name, open := range map[string]func(redis.UniversalClient) backend.Backend{
		"zsetpoll": func(c redis.UniversalClient) backend.Backend { return zsetpoll.New(c) },
		"keyspace": func(c redis.UniversalClient) backend.Backend { return keyspace.New(c) },
		"redisson": func(c redis.UniversalClient) backend.Backend {
			return redisson.New(c, redisson.WithCodec(redisson.Bytes))
		},
		"redisson-envelope": func(c redis.UniversalClient) backend.Backend { return redisson.New(c) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			opts := testenv.Redis(t, testenv.Private()).Options()
			opts.ReadTimeout, opts.WriteTimeout = time.Minute, time.Minute // for 1.6 GB on a busy machine
			client := redis.NewClient(opts)
			defer func() { _ = client.Close() }()
			b := open(client)
			q, err := delayq.New(ctx, "large", delayq.WithBackend(b), delayq.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = errors.Join(q.Close(), b.Close()) }()
			for range n {
				if _, err := q.Push(ctx, make([]byte, size)); err != nil {
					t.Fatal(err)
				}
				d, err := q.Receive(ctx)
				if err == nil {
					err = d.DeadLetter(ctx, "large")
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			const page = 8 << 20 // the bytes at which a page ends
			listed := 0
			for cursor := ""; listed == 0 || cursor != ""; {
				letters, next, err := q.Dead().List(ctx, cursor, 100)
				if err != nil || len(letters) == 0 || len(letters)*size >= page+size {
					t.Fatalf("a page has %d dead letters of %d bytes, %v", len(letters), size, err)
				}
				for _, l := range letters {
					if len(l.Body) != size {
						t.Errorf("the body of %s has %d bytes, want %d", l.ID, len(l.Body), size)
					}
				}
				listed += len(letters)
				cursor = next
			}
			sent := sentBy(ctx, t, client)
			back, err := q.Dead().RedriveAll(ctx)
			if err != nil || listed != n || back != n {
				t.Errorf("listed %d and redrove %d of %d dead letters, %v", listed, back, n, err)
			}
			if sent = sentBy(ctx, t, client) - sent; sent >= size {
				t.Errorf("Redis sent %d bytes to redrive all; want no bodies", sent)
			}
		})
	}
}

// sentBy returns how many bytes a server has sent to its clients.
func sentBy(ctx context.Context, t *testing.T, client *redis.Client) (n int) {
	t.Helper()
	info, err := client.Info(ctx, "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(info) {
		if _, err := fmt.Sscanf(line, "total_net_output_bytes:%d", &n); err == nil {
			return n
		}
	}
	t.Fatal("INFO does not say how many bytes were sent")
	return 0
}
