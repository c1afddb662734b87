package postgres_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// TestFullDisk fills the disk that has a queue's tables. Pushes return ErrFull and store nothing. When
// the disk is larger, all that was accepted comes, once.
func TestFullDisk(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	ctx := t.Context()
	server := testenv.Postgres(t)
	dir, resize := server.SmallDisk(t, "16m")
	exec(t, pool(t, server.URL()), fmt.Sprintf("CREATE TABLESPACE small LOCATION '%s'", dir))
	q := opened(t, postgres.New(pool(t, server.URL()+"&options=-cdefault_tablespace%3Dsmall")))

	body := make([]byte, 20<<10)
	_, _ = rand.Read(body) // which PostgreSQL cannot compress
	accepted := make(map[string]bool)
	var err error
	for n := 0; err == nil && n < 100; n++ {
		ms := pushes(50, fmt.Sprint("m", n), 0)
		for i := range ms {
			ms[i].Body = body
		}
		if err = errors.Join(q.Schedule(ctx, ms)...); err == nil {
			for _, m := range ms {
				accepted[m.ID] = true
			}
		}
	}
	if !errors.Is(err, backend.ErrFull) || errors.Is(err, backend.ErrOutcomeUnknown) || len(accepted) == 0 {
		t.Fatalf("after %d messages: %v; want ErrFull", len(accepted), err)
	}
	says(t, err, "the server's disk")
	stats, err := q.Stats(ctx)
	must(t, err)
	if stats.Ready != int64(len(accepted)) {
		t.Errorf("%d messages are ready; %d were accepted", stats.Ready, len(accepted))
	}

	resize("64m")
	none(t, q.Schedule(ctx, pushes(1, "later", 0)))
	for range len(accepted) + 1 {
		ds, err := q.Receive(ctx, 1, time.Minute)
		must(t, err)
		if id := ds[0].ID; !accepted[id] && id != "later-000000" {
			t.Fatalf("message %s came, which was not accepted or came before", id)
		}
		delete(accepted, ds[0].ID)
		none(t, q.Ack(ctx, []backend.Lease{ds[0].Lease()}))
	}
}
