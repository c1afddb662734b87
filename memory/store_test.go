package memory

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"pgregory.net/rapid"

	"github.com/delayq/delayq/backend"
)

// After any sequence of operations the parts of a store are consistent, and nothing is left when
// every message is gone. The suite checks the operations' results.
func TestStoreStaysWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		q, clock := open(t)
		w := &walk{q: q, clock: clock}
		rt.Repeat(map[string]func(*rapid.T){
			"push":    w.push,
			"receive": w.receive,
			"ack":     func(t *rapid.T) { w.settle(t, func(l backend.Lease) { q.Ack(w.ctx(), []backend.Lease{l}) }) },
			"nack":    func(t *rapid.T) { w.settle(t, w.nack(t)) },
			"purge": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "seldom") == 0 {
					_, err := q.Purge(w.ctx())
					must(t, err)
				}
			},
			"extend": func(t *rapid.T) { w.settle(t, func(l backend.Lease) { q.Extend(w.ctx(), []backend.Lease{l}, 3) }) },
			"makeDead": func(t *rapid.T) {
				w.settle(t, func(l backend.Lease) { q.Dead(w.ctx(), []backend.DeadLetterRequest{{Lease: l}}) })
			},
			"cancel":     func(t *rapid.T) { q.Cancel(w.ctx(), w.ids(t)) },
			"reschedule": func(t *rapid.T) { q.Reschedule(w.ctx(), []backend.Move{{ID: w.id(t), Delay: delay(t)}}) },
			"redrive":    func(t *rapid.T) { q.Redrive(w.ctx(), w.ids(t)) },
			"delete":     func(t *rapid.T) { q.DeleteDead(w.ctx(), w.ids(t)) },
			"advance":    func(t *rapid.T) { clock.Advance(delay(t)) },
			"":           func(t *rapid.T) { mustBeWhole(t, q.store) },
		})
		drain(rt, q, clock)
	})
}

// A walk draws arguments that often hit, and often miss.
type walk struct {
	q      *queue
	clock  *clockwork.FakeClock
	leases []backend.Lease
}

func (*walk) ctx() context.Context { return context.Background() }

func (*walk) id(t *rapid.T) string {
	n := rapid.IntRange(0, 30).Draw(t, "id")
	if n%2 == 0 {
		return fmt.Sprintf("01J9Z3B7W5Q8XKMN4RTVYHD%03d", n)
	}
	return fmt.Sprint("id ", n)
}

func (w *walk) ids(t *rapid.T) []string { return []string{w.id(t), w.id(t)} }

func delay(t *rapid.T) time.Duration { return time.Duration(rapid.IntRange(0, 5).Draw(t, "delay")) }

func (w *walk) push(t *rapid.T) {
	body := make([]byte, rapid.SampledFrom([]int{0, 1, 100, 100, 5000, 100_000}).Draw(t, "body"))
	for _, id := range w.ids(t) {
		w.q.Schedule(w.ctx(), []backend.Message{{ID: id, Body: body, Delay: delay(t), UniqueFor: delay(t)}})
	}
}

func (w *walk) receive(t *rapid.T) {
	if st, _ := w.q.Stats(w.ctx()); st.Ready == 0 {
		t.Skip("nothing is due")
	}
	limit := rapid.IntRange(1, 5).Draw(t, "limit")
	w.leases = append(w.leases, leasesOf(mustTake(t, w.q, limit, 1+delay(t)))...)
}

func (w *walk) settle(t *rapid.T, do func(backend.Lease)) {
	if len(w.leases) == 0 {
		t.Skip("no lease")
	}
	do(rapid.SampledFrom(w.leases).Draw(t, "lease"))
}

func (w *walk) nack(t *rapid.T) func(backend.Lease) {
	r := backend.Return{Untouched: rapid.Bool().Draw(t, "untouched")}
	if !r.Untouched {
		r.Delay = delay(t)
		r.NewHeaders = rapid.Bool().Draw(t, "new headers")
		r.Headers = map[string]string{"k": string(make([]byte, rapid.SampledFrom([]int{0, 1, 300, 70_000}).Draw(t, "header")))}
	}
	return func(l backend.Lease) {
		r.Lease = l
		w.q.Nack(w.ctx(), []backend.Return{r})
	}
}

// drain waits out leases and delays, acks everything, deletes the dead and wants nothing left.
func drain(t *rapid.T, q *queue, clock *clockwork.FakeClock) {
	ctx := context.Background()
	clock.Advance(time.Hour)
	for st, _ := q.Stats(ctx); st.Ready > 0; st, _ = q.Stats(ctx) {
		mustAll(t, q.Ack(ctx, leasesOf(mustTake(t, q, 7, time.Minute))))
	}
	ls, _, err := q.ListDead(ctx, "", 1000)
	must(t, err)
	for _, l := range ls {
		mustAll(t, q.DeleteDead(ctx, []string{l.ID}))
	}
	mustBeEmpty(t, q.store)
}
