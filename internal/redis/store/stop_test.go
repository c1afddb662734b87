package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/fault"
	"github.com/delayq/delayq/internal/redis/store"
	"github.com/delayq/delayq/internal/testenv"
)

// A venture is a call that is stopped half-way.
type venture struct {
	name   string
	marker string // what only its script has
	before func(*trial)
	do     func(*trial, *store.Store) error
	gone   bool // whether the call may have deleted its messages, or not have pushed them
	first  int  // the lowest attempt of later deliveries
	most   int  // and the highest

	moves bool // whether the call puts messages where they wait, before it fails
}

// A trial is a queue with three messages, on a clock of its own.
type trial struct {
	*bench
	clock *clockwork.FakeClock
	ls    []backend.Lease
}

var threeIDs = []string{"a", "b", "c"}

func newTrial(t *testing.T) *trial {
	t.Helper()
	return newTrialOn(t, testenv.SharedRedis(t))
}

func newTrialOn(t *testing.T, server *testenv.RedisServer) *trial {
	t.Helper()
	tr := &trial{bench: on(t, server), clock: clockwork.NewFakeClockAt(time.Now().Truncate(time.Second))}
	tr.Store = tr.over(tr.raw)
	return tr
}

func (tr *trial) over(client redis.UniversalClient) *store.Store {
	return store.New(store.Config{Client: client, Prefix: "test"}, tr.t.Name(), tr.clock)
}

func pushedThree(tr *trial) { tr.push(threeIDs...) }

// returnedThree has messages that came back untouched, so that GENS is there.
func returnedThree(tr *trial) {
	pushedThree(tr)
	var rs []backend.Return
	for _, l := range tr.claimMany(tr.Claim, time.Minute, threeIDs) {
		rs = append(rs, backend.Return{Lease: l, Untouched: true})
	}
	tr.all(tr.Nack(tr.ctx, rs))
}

func returnedLeased(tr *trial) {
	returnedThree(tr)
	tr.ls = tr.claimMany(tr.Claim, time.Minute, threeIDs)
}

// returnedOne has a message that came back untouched and is to be pushed again, beside new ones.
func returnedOne(tr *trial) {
	tr.push("a")
	l := tr.claimMany(tr.Claim, time.Minute, threeIDs[:1])[0]
	tr.all(tr.Nack(tr.ctx, []backend.Return{{Lease: l, Untouched: true}}))
}

func returnedDead(tr *trial) {
	returnedLeased(tr)
	tr.all(settlers["dead"](tr.bench, tr.Store, tr.ls))
}

func leasedThree(tr *trial) {
	pushedThree(tr)
	tr.ls = tr.claimMany(tr.Claim, time.Minute, threeIDs)
}

func endedThree(tr *trial) {
	leasedThree(tr)
	tr.clock.Advance(2 * time.Minute)
}

func movedThree(tr *trial) {
	pushedThree(tr)
	_, err := tr.doomedAt(tr, &fate{at: called("evalsha"), dies: true}).MoveAndTake(tr.ctx, 10, time.Minute, "dead")
	if !errors.Is(err, errDied) {
		tr.t.Fatalf("the mover got %v", err)
	}
}

// movedTwo has a message that is due before two that were moved.
func movedTwo(tr *trial) {
	tr.push("a", "b")
	_, err := tr.doomedAt(tr, &fate{at: called("evalsha"), dies: true}).MoveAndTake(tr.ctx, 10, time.Minute, "dead")
	if !errors.Is(err, errDied) {
		tr.t.Fatalf("the mover got %v", err)
	}
	tr.all(tr.Schedule(tr.ctx, []backend.Message{{ID: "c", Due: time.Unix(1, 0)}}))
}

// doomedAt is a store of another worker, on the trial's clock.
func (b *bench) doomedAt(tr *trial, f *fate) *store.Store {
	client := redis.NewClient(b.raw.Options())
	b.t.Cleanup(func() { _ = client.Close() })
	client.AddHook(f)
	return tr.over(client)
}

func deadThree(tr *trial) {
	leasedThree(tr)
	tr.all(settlers["dead"](tr.bench, tr.Store, tr.ls))
}

func claimAll(way func(*store.Store) claimer) func(*trial, *store.Store) error {
	return func(tr *trial, s *store.Store) error {
		_, err := way(s)(tr.ctx, 10, time.Minute, fmt.Sprint("claim ", names.Add(1)))
		return err
	}
}

func settleAll(how string) func(*trial, *store.Store) error {
	return func(tr *trial, s *store.Store) error { return errors.Join(settlers[how](tr.bench, s, tr.ls)...) }
}

func byScript(s *store.Store) claimer    { return s.Claim }
func byMover(s *store.Store) claimer     { return s.MoveAndTake }
func byArbitrate(s *store.Store) claimer { return s.Arbitrate }

var ventures = []venture{
	{name: "push", marker: "-- Stores messages", gone: true, first: 1, most: 1, do: func(tr *trial, s *store.Store) error {
		return errors.Join(s.Schedule(tr.ctx, []backend.Message{{ID: "a"}, {ID: "b"}, {ID: "c", UniqueFor: time.Minute}})...)
	}},
	{name: "push beside a message that came back", marker: "-- Stores messages", before: returnedOne, gone: true, first: 1, most: 1, do: func(tr *trial, s *store.Store) error {
		return errors.Join(s.Schedule(tr.ctx, []backend.Message{{ID: "b"}, {ID: "c"}})...)
	}},
	{name: "push with a window beside a message that came back", marker: "-- Stores messages", before: returnedOne, gone: true, first: 1, most: 1, do: func(tr *trial, s *store.Store) error {
		return errors.Join(s.Schedule(tr.ctx, []backend.Message{{ID: "b"}, {ID: "c", UniqueFor: time.Minute}})...)
	}},
	{name: "claim of messages that came back", marker: "-- Leases up to limit due", before: returnedThree, do: claimAll(byScript), first: 1, most: 2},
	{name: "arbitrate for messages that came back", marker: "-- Only reads: up to", before: returnedThree, do: claimAll(byArbitrate), first: 1, most: 2},
	{name: "ack after a return", marker: "-- Deletes messages: a token each", before: returnedLeased, do: settleAll("ack"), gone: true, first: 2, most: 2},
	{name: "nack after a return", marker: "-- Gives messages back", before: returnedLeased, do: settleAll("nack"), first: 2, most: 2},
	{name: "nack with headers after a return", marker: "-- Gives messages back", before: returnedLeased, do: settleAll("nack with headers"), first: 2, most: 2},
	{name: "dead after a return", marker: "-- Makes messages dead letters", before: returnedLeased, do: settleAll("dead"), first: 2, most: 2},
	{name: "cancel after a return", marker: "-- Deletes messages that wait", before: returnedThree, gone: true, first: 1, most: 1, do: cancelAll},
	{name: "reschedule after a return", marker: "-- Moves messages that wait", before: returnedThree, first: 1, most: 1, do: rescheduleAll},
	{name: "redrive after a return", marker: "-- Schedules dead letters", before: returnedDead, first: 1, most: 1, do: redriveAll},
	{name: "delete dead after a return", marker: "-- Deletes dead letters", before: returnedDead, gone: true, first: 1, most: 1, do: deleteDeadAll},
	{name: "claim", marker: "-- Leases up to limit due", before: pushedThree, do: claimAll(byScript), first: 1, most: 2},
	{name: "claim of ended leases", marker: "-- Leases up to limit due", before: endedThree, do: claimAll(byScript), first: 2, most: 3, moves: true},
	{name: "claim from ready", marker: "-- Leases up to limit due", before: movedThree, do: claimAll(byScript), first: 1, most: 2},
	{name: "claim before ready", marker: "-- Leases up to limit due", before: movedTwo, do: claimAll(byScript), first: 1, most: 2, moves: true},
	{name: "move before ready", marker: "-- Moves due messages", before: movedTwo, do: claimAll(byMover), first: 1, most: 2, moves: true},
	{name: "move", marker: "-- Moves due messages", before: pushedThree, do: claimAll(byMover), first: 1, most: 2, moves: true},
	{name: "take", marker: "-- Leases up to limit messages from READY", before: pushedThree, do: claimAll(byMover), first: 1, most: 2, moves: true},
	{name: "expire", marker: "-- Gives back the messages of ended leases. Returns 1", before: endedThree, do: claimAll(byArbitrate), first: 2, most: 3, moves: true},
	{name: "arbitrate", marker: "-- Only reads: up to", before: pushedThree, do: claimAll(byArbitrate), first: 1, most: 2},
	{name: "ack", marker: "-- Deletes messages: a token each", before: leasedThree, do: settleAll("ack"), gone: true, first: 2, most: 2},
	{name: "nack", marker: "-- Gives messages back", before: leasedThree, do: settleAll("nack"), first: 2, most: 2},
	{name: "nack with headers", marker: "-- Gives messages back", before: leasedThree, do: settleAll("nack with headers"), first: 2, most: 2},
	{name: "dead", marker: "-- Makes messages dead letters", before: leasedThree, do: settleAll("dead"), first: 2, most: 2},
	{name: "extend", marker: "-- Makes leases end", before: leasedThree, first: 2, most: 2, do: func(tr *trial, s *store.Store) error {
		_, errs := s.Extend(tr.ctx, tr.ls, time.Minute)
		return errors.Join(errs...)
	}},
	{name: "cancel", marker: "-- Deletes messages that wait", before: pushedThree, gone: true, first: 1, most: 1, do: cancelAll},
	{name: "cancel of ended leases", marker: "-- Deletes messages that wait", before: endedThree, gone: true, first: 2, most: 2, moves: true, do: cancelAll},
	{name: "cancel in ready", marker: "-- Deletes messages that wait", before: movedThree, gone: true, first: 1, most: 1, do: cancelAll},
	{name: "reschedule", marker: "-- Moves messages that wait", before: pushedThree, first: 1, most: 1, do: rescheduleAll},
	{name: "reschedule of ended leases", marker: "-- Moves messages that wait", before: endedThree, first: 2, most: 2, moves: true, do: rescheduleAll},
	{name: "reschedule in ready", marker: "-- Moves messages that wait", before: movedThree, first: 1, most: 1, do: rescheduleAll},
	{name: "redrive", marker: "-- Schedules dead letters", before: deadThree, first: 1, most: 1, do: redriveAll},
	{name: "delete dead", marker: "-- Deletes dead letters", before: deadThree, gone: true, first: 1, most: 1, do: deleteDeadAll},
	{name: "stats", marker: "-- Counts:", before: endedThree, first: 2, most: 2, moves: true, do: func(tr *trial, s *store.Store) error {
		_, err := s.Stats(tr.ctx)
		return err
	}},
	{name: "peek", marker: "-- Lists waiting messages, by", before: endedThree, first: 2, most: 2, moves: true, do: func(tr *trial, s *store.Store) error {
		_, _, err := s.Peek(tr.ctx, "", 10)
		return err
	}},
	{name: "purge", marker: "-- Deletes all that there is", before: pushedThree, gone: true, first: 1, most: 1, do: func(tr *trial, s *store.Store) error {
		_, err := s.Purge(tr.ctx)
		return err
	}},
}

func cancelAll(tr *trial, s *store.Store) error {
	return errors.Join(s.Cancel(tr.ctx, threeIDs)...)
}

func redriveAll(tr *trial, s *store.Store) error { return errors.Join(s.Redrive(tr.ctx, threeIDs)...) }

func deleteDeadAll(tr *trial, s *store.Store) error {
	return errors.Join(s.DeleteDead(tr.ctx, threeIDs)...)
}

func rescheduleAll(tr *trial, s *store.Store) error {
	return errors.Join(s.Reschedule(tr.ctx, []backend.Move{{ID: "a", Delay: time.Second}, {ID: "b"}, {ID: "c", Delay: time.Hour}})...)
}

// TestStoppedScripts makes each script fail at each of its writes in turn. Every message is still
// there, once, and nothing is left after all are acked.
func TestStoppedScripts(t *testing.T) {
	t.Parallel()
	for _, v := range ventures {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n++ {
				met := false
				for how := range ways(nil) {
					t.Run(fmt.Sprintf("write %d, then %s", n, how), func(t *testing.T) { met = v.stop(newTrial(t), n, how) || met })
				}
				if !met {
					if n == 1 && !strings.HasPrefix(v.name, "arbitrate") {
						t.Error("the script has no write")
					}
					return
				}
			}
		})
	}
}

// stop reports whether there was such a write. Then all messages are claimed in that way.
func (v *venture) stop(tr *trial, n int, how string) (met bool) {
	if v.before != nil {
		v.before(tr)
	}
	client := redis.NewClient(tr.raw.Options())
	defer func() { _ = client.Close() }()
	mark := fmt.Sprint("stopped ", names.Add(1), " ", tr.t.Name())
	client.AddHook(fault.Stop(v.marker, n, mark))
	err := v.do(tr, tr.over(client))
	if err != nil && !strings.Contains(err.Error(), fault.Stopped) {
		tr.t.Fatal(err)
	}
	if tr.raw.Del(tr.ctx, mark).Val() == 0 {
		return false
	}
	tr.complete(v, ways(tr.Store)[how], err)
	return true
}

// complete claims all messages in a way, and checks that nothing of the queue is lost, twice there,
// or left.
func (tr *trial) complete(v *venture, way claimer, stop error) {
	tr.t.Helper()
	tr.clock.Advance(2 * time.Hour) // all leases end, and all is due
	got := make(map[string]int)
	for range 20 {
		c := tr.claim(way, time.Minute)
		for _, d := range c.Deliveries {
			if got[d.ID]++; d.Attempt < v.first || d.Attempt > v.most {
				tr.t.Errorf("%v: %s comes at attempt %d, want %d to %d", stop, d.ID, d.Attempt, v.first, v.most)
			}
			tr.ack(d)
		}
		tr.clock.Advance(2 * time.Hour)
	}
	letters, _, err := tr.ListDead(tr.ctx, "", 10)
	tr.all([]error{err})
	for _, l := range letters {
		got[l.ID]++
		tr.all(tr.DeleteDead(tr.ctx, []string{l.ID}))
	}
	for _, id := range threeIDs {
		if got[id] > 1 || got[id] == 0 && !v.gone {
			tr.t.Errorf("%v: %s is there %d times", stop, id, got[id])
		}
		delete(got, id)
	}
	if len(got) > 0 {
		tr.t.Errorf("%v: %v were never pushed", stop, got)
	}
	if v.gone { // a failed push does not keep the id
		tr.push(threeIDs...)
		tr.claimMany(tr.Claim, time.Minute, threeIDs)
		_, err := tr.Purge(tr.ctx)
		tr.all([]error{err})
	}
	keys := slices.DeleteFunc(tr.left(), func(key string) bool { return key == tr.key("unique") })
	if len(keys) > 0 {
		tr.t.Errorf("%v: left over: %q", stop, keys)
	}
}
