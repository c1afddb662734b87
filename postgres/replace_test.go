package postgres_test

import (
	"errors"
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

// TestPushOfAnEndedWindowAmongOthers pushes an id whose UniqueFor has ended in a batch with ids that are
// taken in each way. It alone is stored, and nothing of its past is left.
func TestPushOfAnEndedWindowAmongOthers(t *testing.T) {
	t.Parallel()
	p := pool(t, testenv.SharedPostgres(t).URL())
	name := freshName()
	q := opened(t, postgres.New(p, postgres.Prefix(name)))
	take := func(want string) []backend.Lease {
		t.Helper()
		ds, err := q.Receive(t.Context(), 1, time.Minute)
		must(t, err)
		if len(ds) != 1 || ds[0].ID != want {
			t.Fatalf("got %v, want %s", ds, want)
		}
		return []backend.Lease{ds[0].Lease()}
	}
	none(t, q.Schedule(t.Context(), []backend.Message{{ID: "ended", UniqueFor: time.Millisecond}}))
	none(t, q.Schedule(t.Context(), []backend.Message{{ID: "ended", Replace: true, MaxWait: time.Hour}}))
	exec(t, p, "UPDATE "+name+"messages SET unique_until = unique_until + 60000000") // else the ack may find it ended
	none(t, q.Ack(t.Context(), take("ended")))
	none(t, q.Schedule(t.Context(), []backend.Message{{ID: "done", UniqueFor: time.Hour}}))
	none(t, q.Ack(t.Context(), take("done")))
	none(t, q.Schedule(t.Context(), []backend.Message{{ID: "dead"}}))
	none(t, q.Dead(t.Context(), []backend.DeadLetterRequest{{Lease: take("dead")[0], Reason: "test"}}))
	none(t, q.Schedule(t.Context(), []backend.Message{{ID: "held"}}))
	held := take("held")
	none(t, q.Schedule(t.Context(), []backend.Message{{ID: "scheduled", Delay: time.Hour}}))

	ids := []string{"scheduled", "held", "ended", "dead", "done"}
	var ms []backend.Message
	for _, id := range ids {
		ms = append(ms, backend.Message{ID: id, Body: []byte("again"), Delay: time.Hour})
	}
	exec(t, p, "UPDATE "+name+"messages SET at = 1, unique_until = 1 WHERE id = 'ended'") // no claim sweeps it any more
	for i, err := range q.Schedule(t.Context(), ms) {
		if stored := ids[i] == "ended"; stored && err != nil || !stored && !errors.Is(err, backend.ErrDuplicate) {
			t.Errorf("%s: %v", ids[i], err)
		}
	}
	infos, errs := q.Get(t.Context(), ids)
	none(t, errs)
	for i, want := range []backend.State{backend.StateScheduled, backend.StateInFlight, backend.StateScheduled, backend.StateDead, backend.StateDone} {
		if infos[i].State != want || (string(infos[i].Body) == "again") != (ids[i] == "ended") {
			t.Errorf("%s is %v, with the body %q; want %v", ids[i], infos[i].State, infos[i].Body, want)
		}
	}
	var clean bool
	must(t, p.QueryRow(t.Context(), "SELECT first_push IS NULL AND unique_until IS NULL AND token IS NULL AND attempts = 0 FROM "+name+"messages WHERE id = 'ended'").Scan(&clean))
	if !clean {
		t.Error("something of the message before is left in its row")
	}
	none(t, q.Ack(t.Context(), held))
}
