package redisson_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

// Messages in the destination list wait behind older ones that came later. A claim whose time is
// up, wherever in its work, does not take them first.
func TestClaimOutOfTimeKeepsOrder(t *testing.T) {
	t.Parallel()
	server := testenv.SharedRedis(t)
	for calls := 2; calls < 12; calls++ {
		t.Run(fmt.Sprint(calls), func(t *testing.T) {
			t.Parallel()
			tr := newTrial(t, server, redisson.Bytes)
			late := tr.pushAgo("late", 10, time.Minute)
			must(t, maintain(tr.Trial, tr.Store))
			want := slices.Concat(tr.pushAgo("early", 40, time.Hour), late)

			client := server.Client(t)
			client.AddHook(redistest.Edit("  return walked > WALK or", fmt.Sprintf("  calls = calls + 1\n  return calls >= %d or", calls)))
			client.AddHook(redistest.Edit("local asked, took = 0, 0", "local asked, took, calls = 0, 0, 0"))
			tr.Store = tr.On(client)
			var got []string
			for len(got) < len(want) {
				got = append(got, bodies(tr.Claim(redistest.ByScript))...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

func (tr *trial) pushAgo(kind string, n int, ago time.Duration) (bodies []string) {
	tr.T.Helper()
	var ms []backend.Message
	for i := range n {
		m := backend.Message{ID: fmt.Sprint(kind, i), Body: fmt.Append(nil, kind, i), Due: tr.Clock.Now().Add(-ago)}
		ms, bodies = append(ms, m), append(bodies, string(m.Body))
	}
	must(tr.T, tr.Store.Schedule(tr.Ctx, ms)...)
	return bodies
}
