package redisson_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/fault"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

// A testQueue is a queue with messages a, b and c, on a clock of its own. Nothing runs except the
// test's calls.
type testQueue struct {
	*place
	worker
	codec redisson.Codec
	clock *clockwork.FakeClock
	ids   []string
	ls    []backend.Lease
	odd   int // how many unreadable things there are
}

// A worker has the same queue on a client.
type worker struct {
	b *redisson.Backend
	s redisson.Store
}

var bodiesOfThree = []string{"a", "b", "c"}

func newTestQueue(t *testing.T, server *testenv.RedisServer, c redisson.Codec) *testQueue {
	t.Helper()
	tr := &testQueue{place: on(t, server), codec: c, clock: clockwork.NewFakeClockAt(time.Now().Truncate(time.Second))}
	tr.name = "test:" + tr.name
	tr.worker = tr.workerOn(tr.raw)
	return tr
}

func (tr *testQueue) workerOn(client redis.UniversalClient) worker {
	b := redisson.New(client, redisson.WithCodec(tr.codec), redisson.Format(redisson.V2))
	s, err := redisson.StoreOf(b, tr.name, tr.clock, slog.New(slog.DiscardHandler))
	must(tr.t, err)
	return worker{b, s}
}

func (tr *testQueue) shared() bool { return tr.codec != redisson.Envelope }

func (tr *testQueue) three() []backend.Message {
	var ms []backend.Message
	for i, body := range bodiesOfThree {
		ms = append(ms, backend.Message{ID: "id of " + body, Body: []byte(body), Due: tr.clock.Now().Add(time.Duration(i-2) * time.Second)})
	}
	return ms
}

var claims atomic.Int64

func (w worker) claim(tr *testQueue) ([]backend.Delivery, error) {
	c, err := w.s.Claim(tr.ctx, 10, time.Minute, fmt.Sprintf("claim%08d", claims.Add(1))[5:])
	return c.Deliveries, err
}

func pushed(tr *testQueue) {
	ms := tr.three()
	must(tr.t, tr.s.Schedule(tr.ctx, ms)...)
	tr.ids = nil
	for _, m := range ms {
		tr.ids = append(tr.ids, m.ID)
	}
}

// emptied has a push look at the types of the keys: further ones do so a second later.
func emptied(tr *testQueue) {
	pushed(tr)
	must(tr.t, errors.Join(tr.s.Cancel(tr.ctx, tr.ids)...))
}

func leased(tr *testQueue) {
	if len(tr.ids) == 0 {
		pushed(tr)
	}
	ds, err := tr.claim(tr)
	must(tr.t, err)
	if len(ds) != len(bodiesOfThree) {
		tr.t.Fatalf("leased %v", bodies(ds))
	}
	tr.ls = leases(ds)
}

func ended(tr *testQueue) {
	leased(tr)
	tr.clock.Advance(time.Minute + time.Second)
}

func handedOver(tr *testQueue) {
	pushed(tr)
	must(tr.t, tr.s.Maintain(tr.ctx))
}

// handedAround has the first message come back when the others are handed over.
func handedAround(tr *testQueue) {
	pushed(tr)
	c, err := tr.s.Claim(tr.ctx, 1, time.Minute, "onlyfirst")
	must(tr.t, err, tr.s.Maintain(tr.ctx))
	must(tr.t, tr.s.Nack(tr.ctx, []backend.Return{{Lease: c.Deliveries[0].Lease(), Untouched: true}})...)
}

func dead(tr *testQueue) {
	leased(tr)
	must(tr.t, errors.Join(tr.deadLetter(tr)))
}

func redriven(tr *testQueue) {
	dead(tr)
	must(tr.t, tr.s.Redrive(tr.ctx, tr.ids)...)
}

func redrivenLeased(tr *testQueue) {
	redriven(tr)
	leased(tr)
}

// fromJava has Java hand them over.
func fromJava(tr *testQueue) {
	for _, m := range tr.three() {
		payload := string(m.Body)
		if !tr.shared() {
			pushed(tr)
			for _, z := range tr.members() {
				must(tr.t, tr.raw.RPush(tr.ctx, tr.name, z.Member.(string)[17:]).Err())
			}
			must(tr.t, tr.raw.Del(tr.ctx, tr.times(), tr.index()).Err())
			return
		}
		must(tr.t, tr.raw.RPush(tr.ctx, tr.name, payload).Err())
	}
}

// duplicates has Java make one id for all messages. A queue of envelopes has none of them.
func duplicates(tr *testQueue) {
	if !tr.shared() {
		pushed(tr)
		return
	}
	for i, m := range tr.three() {
		member := "\x08same id!\x01\x00\x00\x00\x00\x00\x00\x00" + string(m.Body)
		z := redis.Z{Score: float64(tr.clock.Now().Add(time.Duration(i-2) * time.Second).UnixMilli()), Member: member}
		must(tr.t, tr.raw.ZAdd(tr.ctx, tr.times(), z).Err(), tr.raw.RPush(tr.ctx, tr.index(), member).Err())
	}
}

// unreadable adds bytes that are no member, in both places, and no envelope.
func unreadable(tr *testQueue) {
	pushed(tr)
	past := float64(tr.clock.Now().Add(-time.Hour).UnixMilli())
	must(tr.t, tr.raw.ZAdd(tr.ctx, tr.times(), redis.Z{Score: past, Member: "odd"}, redis.Z{Score: past, Member: "odder"}).Err(),
		tr.raw.RPush(tr.ctx, tr.index(), "odder").Err())
	tr.odd = 2
	if !tr.shared() {
		must(tr.t, tr.raw.RPush(tr.ctx, tr.name, "oddest").Err())
		tr.odd = 3
	}
}

func quarantined(tr *testQueue) {
	unreadable(tr)
	_, err := tr.claim(tr)
	must(tr.t, err)
}

func (w worker) deadLetter(tr *testQueue) error {
	var bs []backend.DeadLetterRequest
	for _, l := range tr.ls {
		bs = append(bs, backend.DeadLetterRequest{Lease: l, Reason: "no use"})
	}
	return errors.Join(w.s.Dead(tr.ctx, bs)...)
}

func (w worker) nack(tr *testQueue) error {
	var rs []backend.Return
	for i, l := range tr.ls {
		rs = append(rs, backend.Return{Lease: l, Delay: time.Duration(i) * time.Second})
	}
	return errors.Join(w.s.Nack(tr.ctx, rs)...)
}

func (w worker) take(tr *testQueue) error {
	_, err := w.claim(tr)
	return err
}

func (w worker) maintain(tr *testQueue) error { return w.s.Maintain(tr.ctx) }

func (w worker) cancel(tr *testQueue) error { return errors.Join(w.s.Cancel(tr.ctx, tr.ids)...) }

func (w worker) reschedule(tr *testQueue) error {
	var ms []backend.Move
	for i, id := range tr.ids {
		ms = append(ms, backend.Move{ID: id, Delay: time.Duration(i) * time.Second})
	}
	return errors.Join(w.s.Reschedule(tr.ctx, ms)...)
}

func (w worker) restore(tr *testQueue) error {
	page, _, err := tr.b.Quarantine(tr.name).List(tr.ctx, "", 10)
	must(tr.t, err)
	var ids []string
	for _, odd := range page {
		ids = append(ids, odd.ID)
	}
	return errors.Join(w.b.Quarantine(tr.name).Restore(tr.ctx, ids)...)
}

// A venture is a call that fails half-way.
type venture struct {
	name   string
	marker string // what only its script has
	before func(*testQueue)
	do     func(worker, *testQueue) error
	gone   bool // whether the call may have deleted its messages, or not have pushed them
	first  int  // the lowest attempt of later deliveries
	most   int  // and the highest

	moves bool // whether the call puts messages where they wait, or aside, before it fails
}

const (
	claimMarker      = "-- Leases up to limit"
	maintainMarker   = "-- Maintains the queue while"
	deadMarker       = "-- Makes messages dead letters"
	nackMarker       = "-- Gives messages back: for"
	cancelMarker     = "-- Deletes messages that wait"
	rescheduleMarker = "-- Moves messages that wait"
)

var ventures = []venture{
	{name: "push", marker: "-- Stores messages", gone: true, first: 1, most: 1, do: func(w worker, tr *testQueue) error {
		return errors.Join(w.s.Schedule(tr.ctx, tr.three())...)
	}},
	{name: "push a while after another", marker: "-- Stores messages", before: emptied, gone: true, first: 1, most: 1, do: func(w worker, tr *testQueue) error {
		return errors.Join(w.s.Schedule(tr.ctx, tr.three())...)
	}},
	{name: "claim", marker: claimMarker, before: pushed, do: worker.take, first: 1, most: 2},
	{name: "claim of ended leases", marker: claimMarker, before: ended, do: worker.take, first: 2, most: 3, moves: true},
	{name: "claim of handed over messages", marker: claimMarker, before: handedOver, do: worker.take, first: 1, most: 2},
	{name: "claim of messages that Java handed over", marker: claimMarker, before: fromJava, do: worker.take, first: 1, most: 2},
	{name: "claim of redriven messages", marker: claimMarker, before: redriven, do: worker.take, first: 1, most: 2},
	{name: "claim of messages with one id", marker: claimMarker, before: duplicates, do: worker.take, first: 1, most: 2},
	{name: "claim of unreadable entries", marker: claimMarker, before: unreadable, do: worker.take, first: 1, most: 2, moves: true},
	{name: "maintain", marker: maintainMarker, before: pushed, do: worker.maintain, first: 1, most: 1, moves: true},
	{name: "maintain of ended leases", marker: maintainMarker, before: ended, do: worker.maintain, first: 2, most: 2, moves: true},
	{name: "maintain of messages that came back", marker: maintainMarker, before: handedAround, do: worker.maintain, first: 1, most: 1, moves: true},
	{name: "maintain of unreadable entries", marker: maintainMarker, before: unreadable, do: worker.maintain, first: 1, most: 1, moves: true},
	{name: "ack", marker: "-- Deletes messages: for each its key", before: leased, gone: true, first: 2, most: 2, do: func(w worker, tr *testQueue) error {
		return errors.Join(w.s.Ack(tr.ctx, tr.ls)...)
	}},
	{name: "nack", marker: nackMarker, before: leased, do: worker.nack, first: 2, most: 2},
	{name: "nack of a redriven message", marker: nackMarker, before: redrivenLeased, do: worker.nack, first: 2, most: 2},
	{name: "dead", marker: deadMarker, before: leased, do: worker.deadLetter, first: 2, most: 2},
	{name: "dead of a redriven message", marker: deadMarker, before: redrivenLeased, do: worker.deadLetter, first: 2, most: 2},
	{name: "extend", marker: "-- Makes leases end", before: leased, first: 2, most: 2, do: func(w worker, tr *testQueue) error {
		_, errs := w.s.Extend(tr.ctx, tr.ls, 2*time.Minute)
		return errors.Join(errs...)
	}},
	{name: "cancel", marker: cancelMarker, before: pushed, gone: true, first: 1, most: 1, do: worker.cancel},
	{name: "cancel of ended leases", marker: cancelMarker, before: ended, gone: true, first: 2, most: 2, moves: true, do: worker.cancel},
	{name: "cancel of a handed over message", marker: cancelMarker, before: handedOver, gone: true, first: 1, most: 1, do: worker.cancel},
	{name: "reschedule", marker: rescheduleMarker, before: pushed, first: 1, most: 1, do: worker.reschedule},
	{name: "reschedule of ended leases", marker: rescheduleMarker, before: ended, first: 2, most: 2, moves: true, do: worker.reschedule},
	{name: "reschedule of a handed over message", marker: rescheduleMarker, before: handedOver, first: 1, most: 1, do: worker.reschedule},
	{name: "redrive", marker: "-- Schedules dead letters", before: dead, first: 1, most: 1, do: func(w worker, tr *testQueue) error {
		return errors.Join(w.s.Redrive(tr.ctx, tr.ids)...)
	}},
	{name: "delete dead", marker: "-- Deletes dead letters", before: dead, gone: true, first: 1, most: 1, do: func(w worker, tr *testQueue) error {
		return errors.Join(w.s.DeleteDead(tr.ctx, tr.ids)...)
	}},
	{name: "list dead", marker: "-- Lists dead letters", before: dead, first: 1, most: 1, do: func(w worker, tr *testQueue) error {
		_, _, err := w.s.ListDead(tr.ctx, "", 10)
		return err
	}},
	{name: "stats", marker: "-- Counts:", before: ended, first: 2, most: 2, moves: true, do: func(w worker, tr *testQueue) error {
		_, err := w.s.Stats(tr.ctx)
		return err
	}},
	{name: "peek", marker: "-- Lists waiting messages. First", before: ended, first: 2, most: 2, moves: true, do: func(w worker, tr *testQueue) error {
		_, _, err := w.s.Peek(tr.ctx, "", 10)
		return err
	}},
	{name: "purge", marker: "-- Deletes all that there is", before: pushed, gone: true, first: 1, most: 1, do: func(w worker, tr *testQueue) error {
		_, err := w.s.Purge(tr.ctx)
		return err
	}},
	{name: "restore", marker: "-- Puts quarantined things", before: quarantined, do: worker.restore, first: 2, most: 2, moves: true},
}

var bothWays = []redisson.Codec{redisson.Bytes, redisson.Envelope}

// TestStoppedScripts makes each script fail at each of its writes in turn. Every message is still
// there, once, for Java too; and nothing is left after all are acked.
func TestStoppedScripts(t *testing.T) {
	t.Parallel()
	for _, c := range bothWays {
		for _, v := range ventures {
			t.Run(c.Name()+"/"+v.name, func(t *testing.T) {
				t.Parallel()
				for n := 1; ; n++ {
					met := false
					t.Run(fmt.Sprint("write ", n), func(t *testing.T) { met = v.stop(newTestQueue(t, testenv.SharedRedis(t), c), n) })
					if !met {
						if n == 1 && v.name != "list dead" {
							t.Error("the script has no write")
						}
						return
					}
				}
			})
		}
	}
}

// stop reports whether there was such a write.
func (v *venture) stop(tr *testQueue, n int) (met bool) {
	if v.before != nil {
		v.before(tr)
	}
	client := tr.server.Client(tr.t)
	client.AddHook(fault.Stop(v.marker, n, ""))
	err := v.do(tr.workerOn(client), tr)
	if err != nil && !strings.Contains(err.Error(), fault.Stopped) {
		tr.t.Fatal(err)
	}
	if err == nil {
		return false
	}
	tr.complete(v, err)
	return true
}

// onceForJava checks that Java gets nothing twice: from the list of due messages, or moved there.
func (tr *testQueue) onceForJava(stop error) {
	tr.t.Helper()
	there := tr.list(tr.name)
	for _, z := range tr.members() {
		there = append(there, z.Member.(string))
	}
	for _, places := range [][]string{there, tr.list(tr.index())} {
		seen := make(map[string]int)
		for _, what := range places {
			if seen[what[len(what)-1:]]++; seen[what[len(what)-1:]] > 1 && !strings.HasPrefix(what, "odd") {
				tr.t.Errorf("%v: Java finds %q twice: %q", stop, what[len(what)-1:], places)
			}
		}
	}
}

// complete checks that nothing of the queue is lost, twice there, or left.
func (tr *testQueue) complete(v *venture, stop error) {
	tr.t.Helper()
	tr.onceForJava(stop)
	got := make(map[string]int)
	for range 5 {
		tr.clock.Advance(2 * time.Hour) // all leases end, and all is due
		for range 5 {
			ds, err := tr.claim(tr)
			must(tr.t, err)
			for _, d := range ds {
				if got[string(d.Body)]++; d.Attempt < v.first || d.Attempt > v.most {
					tr.t.Errorf("%v: %s comes at attempt %d, want %d to %d", stop, d.Body, d.Attempt, v.first, v.most)
				}
			}
			must(tr.t, tr.s.Ack(tr.ctx, leases(ds))...)
		}
	}
	letters, _, err := tr.s.ListDead(tr.ctx, "", 10)
	must(tr.t, err)
	for _, l := range letters {
		got[string(l.Body)]++
		must(tr.t, tr.s.DeleteDead(tr.ctx, []string{l.ID})...)
	}
	for _, body := range bodiesOfThree {
		if got[body] > 1 || got[body] == 0 && !v.gone {
			tr.t.Errorf("%v: %s is there %d times", stop, body, got[body])
		}
		delete(got, body)
	}
	if len(got) > 0 {
		tr.t.Errorf("%v: %v were never pushed", stop, got)
	}
	if n := tr.raw.ZCard(tr.ctx, tr.own("quarantine")).Val(); n != int64(tr.odd) {
		tr.t.Errorf("%v: %d things are in quarantine, want %d", stop, n, tr.odd)
	}
	must(tr.t, tr.raw.Del(tr.ctx, tr.own("quarantine")).Err())
	tr.ids = nil
	leased(tr) // a failed push does not keep the id
	must(tr.t, tr.s.Ack(tr.ctx, tr.ls)...)
	if keys := tr.keys(); len(keys) > 0 {
		slices.Sort(keys)
		tr.t.Errorf("%v: left over: %q", stop, keys)
	}
}
