package postgres_test

import (
	"context"
	"strings"
	"testing"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/sqlqueue"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// TestPagesCutBySize lists dead letters with long reasons, and messages with long headers, of more than
// 8 MiB together and with short bodies. The pages have them all.
func TestPagesCutBySize(t *testing.T) {
	t.Parallel()
	const n, size = 700, 16 << 10
	name := freshName()
	p := pool(t, testenv.SharedPostgres(t).URL())
	q := opened(t, postgres.New(p, postgres.Prefix(name)))
	long := strings.Repeat("x", size)
	_, err := p.Exec(t.Context(), "INSERT INTO "+name+"messages (queue, id, state, at, seq, due, headers, body, reason) "+
		"SELECT 'q', s || '-' || g, s, 1, g, 1, CASE WHEN s = 0 THEN $2::bytea END, 'b', CASE WHEN s = 2 THEN $3::bytea END "+
		"FROM generate_series(1, $1::int) g, unnest(ARRAY[0, 2]) s", n, sqlqueue.Headers(map[string]string{"h": long}), []byte(long))
	must(t, err)
	for what, list := range map[string]func(context.Context, string, int) ([]backend.MessageInfo, string, error){"Peek": q.Peek, "ListDead": q.ListDead} {
		seen, pages := make(map[string]bool), 0
		for cursor := ""; pages == 0 || cursor != ""; pages++ {
			page, next, err := list(t.Context(), cursor, 1000)
			must(t, err)
			for _, m := range page {
				seen[m.ID] = true
			}
			cursor = next
		}
		t.Logf("%s: %d in %d pages", what, len(seen), pages)
		if len(seen) != n {
			t.Errorf("%s lists %d, want %d", what, len(seen), n)
		}
	}
	_, err = q.Purge(t.Context())
	must(t, err)
}
