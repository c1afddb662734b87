package postgres_test

import (
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// TestRepeatedClaimWhilePaused pauses a queue between a claim whose reply was lost and its repetition. The
// repeated claim returns the message under the lease that it has: a paused queue gives none.
func TestRepeatedClaimWhilePaused(t *testing.T) {
	t.Parallel()
	server := pool(t, testenv.SharedPostgres(t).URL())
	name := freshName()
	q := opened(t, postgres.New(server, postgres.Prefix(name)))
	claim := func(again bool) (until int64) {
		t.Helper()
		must(t, server.QueryRow(t.Context(), "SELECT until FROM "+name+"claim('q', NULL, 10, 3600000000, 7, -1, -1, $1) WHERE id = 'a'", again).Scan(&until))
		return until
	}
	none(t, q.Schedule(t.Context(), []backend.Message{{ID: "a"}}))
	first := claim(false)
	must(t, q.PauseAll(t.Context(), backend.Pause{}))
	if until := claim(true); until != first {
		t.Errorf("while the queue is paused, the repeated claim gives a lease until %v, want %v", time.UnixMicro(until), time.UnixMicro(first))
	}
	must(t, q.ResumeAll(t.Context()))
	if until := claim(true); until <= first {
		t.Errorf("after the pause, the repeated claim gives a lease until %v, and the first until %v", time.UnixMicro(until), time.UnixMicro(first))
	}
	_, err := q.Purge(t.Context())
	must(t, err)
}
