package postgres_test

import (
	"testing"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// TestRepeatedClaimWhilePaused pauses a queue between a claim whose reply was lost and its repetition, which
// gives the message back: a paused queue hands out none. Afterwards it comes as if nobody had claimed it.
func TestRepeatedClaimWhilePaused(t *testing.T) {
	t.Parallel()
	server := pool(t, testenv.SharedPostgres(t).URL())
	name := freshName()
	q := opened(t, postgres.New(server, postgres.Prefix(name)))
	claim := func(token int, again bool) (attempts []int) {
		t.Helper()
		must(t, server.QueryRow(t.Context(), "SELECT array_agg(attempts) FROM "+name+"claim('q', NULL, 10, 3600000000, $1, -1, -1, $2) WHERE id = 'a'", token, again).Scan(&attempts))
		return attempts
	}
	none(t, q.Schedule(t.Context(), []backend.Message{{ID: "a"}}))
	claim(7, false)
	must(t, q.PauseAll(t.Context(), backend.Pause{}))
	if got := claim(7, true); len(got) > 0 {
		t.Errorf("while the queue is paused, the repeated claim returns messages of the attempts %v", got)
	}
	must(t, q.ResumeAll(t.Context()))
	if got := append(claim(7, true), claim(8, false)...); len(got) != 1 || got[0] != 1 {
		t.Errorf("after the pause, the claims return messages of the attempts %v, want 1", got)
	}
	_, err := q.Purge(t.Context())
	must(t, err)
}
