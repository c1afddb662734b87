package store_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/redis/store"
	"github.com/delayq/delayq/internal/testenv"
)

type trial = redistest.Trial

func newTrial(t *testing.T, server *testenv.RedisServer) *trial {
	t.Helper()
	b, tr := on(t, server), redistest.NewTrial(t, server)
	tr.On = func(c redis.UniversalClient) redistest.Store {
		return store.New(store.Config{Client: c, Prefix: "test"}, t.Name(), tr.Clock)
	}
	tr.Store = tr.On(tr.Raw)
	tr.Key, tr.Keys = b.key, b.left
	tr.Tidy = func(error) { must(t, tr.Raw.Del(tr.Ctx, b.key("unique"), b.key("counts")).Err()) }
	tr.Claims = map[string]redistest.Claims{"script": redistest.ByScript, "arbitrate": byArbitrate, "mover": byMover}
	return tr
}

func byMover(s redistest.Store) queue.Claimer     { return s.(*store.Store).MoveAndTake }
func byArbitrate(s redistest.Store) queue.Claimer { return s.(*store.Store).Arbitrate }

// returned has messages that came back untouched, so that GENS is there.
func returned(tr *trial) {
	redistest.Leased(tr)
	must(tr.T, redistest.ReleaseAll(tr, tr.Store))
}

func returnedLeased(tr *trial) {
	returned(tr)
	tr.Lease()
}

func returnedDead(tr *trial) {
	returnedLeased(tr)
	must(tr.T, redistest.DeadAll(tr, tr.Store))
}

// returnedOne has a message that came back untouched, for others to be pushed beside it.
func returnedOne(tr *trial) {
	must(tr.T, tr.Store.Schedule(tr.Ctx, tr.Messages()[:1])...)
	d := tr.Claim(redistest.ByScript)[0]
	must(tr.T, tr.Store.Nack(tr.Ctx, []backend.Return{{Lease: d.Lease(), Untouched: true}})...)
}

// moved has messages that a worker has moved to the list and not taken.
func moved(tr *trial) {
	redistest.Pushed(tr)
	dieAfterMove(tr)
}

// movedTwo has a message that is due before two that were moved.
func movedTwo(tr *trial) {
	ms := tr.Messages()
	ms[2].Due = time.Unix(1, 0)
	must(tr.T, tr.Store.Schedule(tr.Ctx, ms[:2])...)
	dieAfterMove(tr)
	must(tr.T, tr.Store.Schedule(tr.Ctx, ms[2:])...)
}

func dieAfterMove(tr *trial) {
	tr.T.Helper()
	f := &redistest.Fault{At: "evalsha", Dies: true}
	if err := redistest.Take(byMover)(tr, tr.On(f.Client(tr.T, tr.Raw))); !errors.Is(err, redistest.ErrDied) {
		tr.T.Fatalf("the mover got %v", err)
	}
}

// pushRest pushes messages, the last with a window, and the first unless it is there.
func pushRest(from int, window time.Duration) func(*trial, redistest.Store) error {
	return func(tr *trial, s redistest.Store) error {
		ms := tr.Messages()
		ms[2].UniqueFor = window
		return errors.Join(s.Schedule(tr.Ctx, ms[from:])...)
	}
}

// replaceAll replaces messages by themselves.
func replaceAll(tr *trial, s redistest.Store) error {
	ms := tr.Messages()
	for i := range ms {
		ms[i].Replace = true
	}
	return errors.Join(s.Schedule(tr.Ctx, ms)...)
}

// replaceInFlight replaces messages by themselves, in flight too.
func replaceInFlight(tr *trial, s redistest.Store) error {
	ms := tr.Messages()
	for i := range ms {
		ms[i].Replace, ms[i].AfterInFlight = true, true
	}
	return errors.Join(s.Schedule(tr.Ctx, ms)...)
}

// replaced has messages in flight that were replaced.
func replaced(tr *trial) {
	redistest.Leased(tr)
	must(tr.T, replaceInFlight(tr, tr.Store))
}

// replacedEnded has the same where the leases have ended.
func replacedEnded(tr *trial) {
	replaced(tr)
	tr.Clock.Advance(2 * time.Minute)
}

func nackWithHeaders(tr *trial, s redistest.Store) error {
	return errors.Join(settlers["nack with headers"](tr.Ctx, s, tr.Leases)...)
}

func countOne(tr *trial, s redistest.Store) error {
	return s.(*store.Store).Count(tr.Ctx, backend.Activity{Pushed: 1})
}

const replaceMarker = "-- Stores messages that replace others"

var suite = redistest.Suite{
	Variants: map[string]func(*testing.T, *testenv.RedisServer) *trial{"store": newTrial},
	Calls: []redistest.Call{
		{Name: "push with a window", Marker: redistest.PushMarker, Do: pushRest(0, time.Minute), Gone: true, First: 1, Most: 1},
		{Name: "push beside a message that came back", Marker: redistest.PushMarker, Before: returnedOne, Do: pushRest(1, 0), Gone: true, First: 1, Most: 1},
		{Name: "push with a window beside a message that came back", Marker: redistest.PushMarker, Before: returnedOne, Do: pushRest(1, time.Minute), Gone: true, First: 1, Most: 1},
		{Name: "replace", Marker: replaceMarker, Before: redistest.Pushed, Do: replaceAll, First: 1, Most: 1},
		{Name: "replace none", Marker: replaceMarker, Do: replaceAll, Gone: true, First: 1, Most: 1},
		{Name: "replace after a return", Marker: replaceMarker, Before: returned, Do: replaceAll, First: 1, Most: 1},
		{Name: "replace what was moved", Marker: replaceMarker, Before: moved, Do: replaceAll, First: 1, Most: 1},
		{Name: "replace what was moved, and one that was not", Marker: replaceMarker, Before: movedTwo, Do: replaceAll, First: 1, Most: 1},
		{Name: "replace after ended leases", Marker: replaceMarker, Before: redistest.Ended, Do: replaceAll, First: 1, Most: 3, Moves: true},
		{Name: "replace in flight", Marker: replaceMarker, Before: redistest.Leased, Do: replaceInFlight, First: 1, Most: 2},
		{Name: "replace in flight after a return", Marker: replaceMarker, Before: returnedLeased, Do: replaceInFlight, First: 1, Most: 2},
		{Name: "replace in flight again", Marker: replaceMarker, Before: replaced, Do: replaceInFlight, First: 1, Most: 1},
		{Name: "ack of replaced messages", Marker: redistest.NackMarker, Before: replaced, Do: redistest.AckAll, First: 1, Most: 1},
		{Name: "dead of replaced messages", Marker: redistest.NackMarker, Before: replaced, Do: redistest.DeadAll, First: 1, Most: 1},
		{Name: "nack with headers of replaced messages", Marker: redistest.NackMarker, Before: replaced, Do: nackWithHeaders, First: 1, Most: 1},
		{Name: "claim after ended leases of replaced messages", Marker: redistest.ClaimMarker, Before: replacedEnded, Do: redistest.Take(redistest.ByScript), First: 1, Most: 2, Moves: true},
		{Name: "cancel after ended leases of replaced messages", Marker: redistest.CancelMarker, Before: replacedEnded, Do: redistest.CancelAll, Gone: true, First: 1, Most: 1, Moves: true},
		{Name: "claim of messages that came back", Marker: redistest.ClaimMarker, Before: returned, Do: redistest.Take(redistest.ByScript), First: 1, Most: 2},
		{Name: "arbitrate for messages that came back", Marker: "-- Only reads: up to", Before: returned, Do: redistest.Take(byArbitrate), First: 1, Most: 2, Reads: true},
		{Name: "ack after a return", Marker: redistest.AckMarker, Before: returnedLeased, Do: redistest.AckAll, Gone: true, First: 2, Most: 2},
		{Name: "nack after a return", Marker: redistest.NackMarker, Before: returnedLeased, Do: redistest.NackAll, First: 2, Most: 2},
		{Name: "nack with headers after a return", Marker: redistest.NackMarker, Before: returnedLeased, Do: nackWithHeaders, First: 2, Most: 2},
		{Name: "dead after a return", Marker: redistest.DeadMarker, Before: returnedLeased, Do: redistest.DeadAll, First: 2, Most: 2},
		{Name: "cancel after a return", Marker: redistest.CancelMarker, Before: returned, Do: redistest.CancelAll, Gone: true, First: 1, Most: 1},
		{Name: "reschedule after a return", Marker: redistest.RescheduleMarker, Before: returned, Do: redistest.RescheduleAll, First: 1, Most: 1},
		{Name: "redrive after a return", Marker: redistest.RedriveMarker, Before: returnedDead, Do: redistest.RedriveAll, First: 1, Most: 1},
		{Name: "delete dead after a return", Marker: redistest.DeleteDeadMarker, Before: returnedDead, Do: redistest.DeleteDeadAll, Gone: true, First: 1, Most: 1},
		{Name: "claim from ready", Marker: redistest.ClaimMarker, Before: moved, Do: redistest.Take(redistest.ByScript), First: 1, Most: 2},
		{Name: "claim before ready", Marker: redistest.ClaimMarker, Before: movedTwo, Do: redistest.Take(redistest.ByScript), First: 1, Most: 2, Moves: true},
		{Name: "move", Marker: "-- Moves due messages", Before: redistest.Pushed, Do: redistest.Take(byMover), First: 1, Most: 2, Moves: true},
		{Name: "move before ready", Marker: "-- Moves due messages", Before: movedTwo, Do: redistest.Take(byMover), First: 1, Most: 2, Moves: true},
		{Name: "take", Marker: "-- Leases up to limit messages from READY", Before: redistest.Pushed, Do: redistest.Take(byMover), First: 1, Most: 2, Moves: true},
		{Name: "expire", Marker: "-- Gives back the messages of ended leases. Returns 1", Before: redistest.Ended, Do: redistest.Take(byArbitrate), First: 2, Most: 3, Moves: true},
		{Name: "arbitrate", Marker: "-- Only reads: up to", Before: redistest.Pushed, Do: redistest.Take(byArbitrate), First: 1, Most: 2, Reads: true},
		{Name: "nack with headers", Marker: redistest.NackMarker, Before: redistest.Leased, Do: nackWithHeaders, First: 2, Most: 2},
		{Name: "cancel in ready", Marker: redistest.CancelMarker, Before: moved, Do: redistest.CancelAll, Gone: true, First: 1, Most: 1},
		{Name: "count", Marker: "-- Adds to the queue's activity", Before: redistest.Pushed, Do: countOne, First: 1, Most: 1, Once: true},
		{Name: "reschedule in ready", Marker: redistest.RescheduleMarker, Before: moved, Do: redistest.RescheduleAll, First: 1, Most: 1},
	},
	Access: []string{"~test:*", "&test:*"},
	Elsewhere: map[string]string{
		"subscribe": "the hub", "unsubscribe": "the hub", "psubscribe": "the listener of keyspace", "punsubscribe": "the listener of keyspace",
		"info": "the check at the start", "config|get": "the check at the start", "config|set": "keyspace",
		"publish": "a warning: TestPushWithoutPublish", "pexpire": "a warning: a time to live by the server's clock", "zrevrange": "as pexpire",
		"script|load": "a server that does not know the script", "ping": "Arbitrate, which claims by script without", "exec": "as ping", "multi": "as ping",
		"hgetall": "a claim that is sent again", "pttl": "the trigger, by the server's clock", "time": "SEQ at the first message, before any write",
	},
	Keys: []string{"due", "messages", "leases", "held", "gens", "dead", "graves", "seq", "ready", "unique", "counts"},
}

func TestStoppedScripts(t *testing.T)        { t.Parallel(); suite.Stopped(t) }
func TestLostReplies(t *testing.T)           { t.Parallel(); suite.LostReplies(t) }
func TestLostRequests(t *testing.T)          { t.Parallel(); suite.LostRequests(t) }
func TestScheduleLosesItsReply(t *testing.T) { t.Parallel(); suite.LostPushes(t) }
func TestStaleTokens(t *testing.T)           { t.Parallel(); suite.StaleTokens(t) }

func TestWithoutARight(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	s := suite
	s.Rights = redistest.Rights(t, "../../../docs/redis.md", "all", "zsetpoll", "zsetpoll-arbitrate", "zsetpoll-mover", "keyspace")
	s.WithoutARight(t)
}

func TestAKeyOfAnotherType(t *testing.T) { t.Parallel(); suite.KeyOfAnotherType(t) }

// TestStoppedNackChangesHeadersOrNothing stops the script at each of its writes in turn. Messages
// that it has given back have the new headers, all of them, and those that stay leased the old
// ones.
func TestStoppedNackChangesHeadersOrNothing(t *testing.T) {
	t.Parallel()
	changed := 0
	for n, met := 1, true; met; n++ {
		t.Run(fmt.Sprint("write ", n), func(t *testing.T) {
			tr := newTrial(t, testenv.SharedRedis(t))
			redistest.Leased(tr)
			client := redistest.Another(t, tr.Raw)
			client.AddHook(redistest.Stop(redistest.NackMarker, n, ""))
			err := nackWithHeaders(tr, tr.On(client))
			if met = err != nil; met {
				changed = allOrNone(tr, err)
			}
		})
	}
	if changed != len(threeIDs) {
		t.Errorf("stopped at its last write, the script has changed the headers of %d messages", changed)
	}
}

// allOrNone returns how many messages a nack has changed that was stopped.
func allOrNone(tr *trial, stop error) (changed int) {
	tr.T.Helper()
	given := 0
	for _, member := range tr.Raw.ZRange(tr.Ctx, tr.Key("due"), 0, -1).Val() {
		// the message's generation now is part of its member
		now := tr.Raw.HGet(tr.Ctx, tr.Key("gens"), member[11:]).Val()
		if member[7:11] == now[:min(4, len(now))] {
			given++
		}
	}
	tr.Clock.Advance(2 * time.Hour)
	changed = len(slices.DeleteFunc(tr.Claim(redistest.ByScript), func(d backend.Delivery) bool { return !maps.Equal(d.Headers, newHeaders) }))
	if given != 0 && given != len(threeIDs) || changed != given {
		tr.T.Errorf("%v: %d messages were given back, and %d have the new headers", stop, given, changed)
	}
	return changed
}
