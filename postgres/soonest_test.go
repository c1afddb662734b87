package postgres_test

import (
	"testing"

	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/postgres"
)

// TestSoonest calls the functions that settle and replace. Each returns the first due time of what may
// be handed out from then on, by which workers wake, and NULL where there is nothing: what was
// replaced in flight is no news before its lease ends.
func TestSoonest(t *testing.T) {
	t.Parallel()
	p := pool(t, testenv.SharedPostgres(t).URL())
	name := freshName()
	opened(t, postgres.New(p, postgres.Prefix(name)))
	const now = 1_000_000
	soonest := func(call string) (at *int64) {
		t.Helper()
		must(t, p.QueryRow(t.Context(), "SELECT (c).soonest FROM "+name+call+" c").Scan(&at))
		return at
	}
	push := map[bool]string{ // with UniqueFor
		false: `push('q', 1000000, ARRAY['a'], ARRAY[1000000]::bigint[], ARRAY[0]::bigint[], ARRAY[0]::bigint[], ARRAY['']::bytea[], ARRAY['old']::bytea[])`,
		true:  `push('q', 1000000, ARRAY['a'], ARRAY[1000000]::bigint[], ARRAY[0]::bigint[], ARRAY[5000000]::bigint[], ARRAY['']::bytea[], ARRAY['old']::bytea[])`,
	}
	const replace = `replace('q', 1000000, ARRAY['a'], ARRAY[7000000]::bigint[], ARRAY[0]::bigint[], ARRAY[0]::bigint[], ARRAY['']::bytea[],
		ARRAY['new']::bytea[], ARRAY[true], ARRAY[0]::bigint[], ARRAY[true])`
	settle := map[string]string{
		"ack":         `ack('q', 1000000, ARRAY['a'], ARRAY[7]::bigint[])`,
		"nack":        `nack('q', 1000000, ARRAY['a'], ARRAY[7]::bigint[], ARRAY[3000000]::bigint[], ARRAY[false], ARRAY[false], ARRAY['']::bytea[], ARRAY[0]::bigint[])`,
		"dead_letter": `dead_letter('q', 1000000, ARRAY['a'], ARRAY[7]::bigint[], ARRAY['r']::bytea[], ARRAY[1]::bigint[])`,
	}
	is := func(what string, got *int64, want int64) {
		t.Helper()
		switch {
		case got == nil && want != 0:
			t.Errorf("%s: NULL, want %d", what, want)
		case got != nil && *got != want:
			t.Errorf("%s: %d, want %d (0 is NULL)", what, *got, want)
		}
	}
	for verb, call := range settle {
		for _, unique := range []bool{false, true} {
			for _, replaced := range []bool{false, true} {
				is("push", soonest(push[unique]), now)
				exec(t, p, "SELECT "+name+"claim('q', 1000000, 10, 9000000, 7, -1, -1, false)")
				want := map[string]int64{"nack": now + 3_000_000}[verb]
				if replaced {
					is("replace in flight", soonest(replace), 0)
					want = 7_000_000
				}
				what := verb
				if replaced {
					what += " of a replaced message"
				}
				is(what, soonest(call), want)
				var left int
				must(t, p.QueryRow(t.Context(), "SELECT count(*) FROM "+name+"messages WHERE state = 0 AND (reason IS NOT NULL OR token IS NOT NULL)").Scan(&left))
				if left != 0 {
					t.Errorf("%s: the message that waits has a reason or a token", what)
				}
				if verb == "ack" && replaced {
					is("replace", soonest(replace), 7_000_000)
				}
				exec(t, p, "DELETE FROM "+name+"messages")
			}
		}
	}
}
