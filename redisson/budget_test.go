package redisson_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/fault"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

// Messages in the destination list wait behind older ones that came later. A claim whose time is
// up, wherever in its work, does not take them first.
func TestAClaimOutOfTimeKeepsTheOrder(t *testing.T) {
	t.Parallel()
	server := testenv.SharedRedis(t)
	for calls := 2; calls < 12; calls++ {
		t.Run(fmt.Sprint(calls), func(t *testing.T) {
			t.Parallel()
			tr := newTestQueue(t, server, redisson.Bytes)
			late := tr.pushAgo("late", 10, time.Minute)
			must(t, tr.s.Maintain(tr.ctx))
			want := slices.Concat(tr.pushAgo("early", 40, time.Hour), late)

			client := server.Client(t)
			client.AddHook(fault.Edit("  return walked > WALK or", fmt.Sprintf("  calls = calls + 1\n  return calls >= %d or", calls)))
			client.AddHook(fault.Edit("local asked, took = 0, 0", "local asked, took, calls = 0, 0, 0"))
			w := tr.workerOn(client)
			var got []string
			for len(got) < len(want) {
				ds, err := w.claim(tr)
				must(t, err)
				got = append(got, bodies(ds)...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got  %q\nwant %q", got, want)
			}
		})
	}
}

func (tr *testQueue) pushAgo(kind string, n int, ago time.Duration) (bodies []string) {
	tr.t.Helper()
	var ms []backend.Message
	for i := range n {
		m := backend.Message{ID: fmt.Sprint(kind, i), Body: fmt.Append(nil, kind, i), Due: tr.clock.Now().Add(-ago)}
		ms, bodies = append(ms, m), append(bodies, string(m.Body))
	}
	must(tr.t, tr.s.Schedule(tr.ctx, ms)...)
	return bodies
}
