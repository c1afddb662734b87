package postgres_test

import (
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// TestRepeatedClaimOfAReplacedMessage has a message replaced between a claim whose reply was lost and
// its repetition. The new message is due later: the repeated claim may not return it under that lease.
func TestRepeatedClaimOfAReplacedMessage(t *testing.T) {
	t.Parallel()
	server := pool(t, testenv.SharedPostgres(t).URL())
	b := postgres.New(server, postgres.Prefix("repeated_claim_"))
	t.Cleanup(func() { _ = b.Close() })
	q, err := b.Open(t.Context(), "q", quiet)
	must(t, err)
	t.Cleanup(func() { _ = q.Close() })

	claim := func(again bool) (claimed int) {
		must(t, server.QueryRow(t.Context(), "SELECT count(id) FROM repeated_claim_claim('q', NULL, 10, 3600000000, 7, -1, -1, $1)", again).Scan(&claimed))
		return claimed
	}
	none(t, q.Schedule(t.Context(), []backend.Message{{ID: "a"}, {ID: "b"}}))
	if n := claim(false); n != 2 {
		t.Fatalf("the first claim returned %d messages, want 2", n)
	}
	none(t, q.Schedule(t.Context(), []backend.Message{{ID: "a", Delay: time.Hour, Replace: true, AfterInFlight: true}}))
	if n := claim(true); n != 1 {
		t.Errorf("the repeated claim returned %d messages, want 1", n)
	}
	infos, errs := q.Get(t.Context(), []string{"a", "b"})
	none(t, errs)
	if infos[0].State != backend.StateScheduled || infos[0].Attempts != 0 || infos[1].State != backend.StateInFlight {
		t.Errorf("got %+v", infos)
	}
	_, err = q.Purge(t.Context())
	must(t, err)
}
