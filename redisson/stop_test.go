package redisson_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

// A trial is a queue on a clock of its own, where nothing runs except the test's calls.
type trial struct {
	*redistest.Trial
	*place
	codec redisson.Codec
}

// A worker has the same queue on a client.
type worker struct {
	redisson.Store
	b  *redisson.Backend
	tr *trial
}

func newTrial(t *testing.T, server *testenv.RedisServer, c redisson.Codec) *trial {
	t.Helper()
	tr := &trial{redistest.NewTrial(t, server), on(t, server), c}
	tr.name = "test:" + tr.name
	tr.On = func(client redis.UniversalClient) redistest.Store {
		b := redisson.New(client, redisson.WithCodec(c), redisson.Format(redisson.V2))
		s, err := redisson.StoreOf(b, tr.name, tr.Clock, slog.New(slog.DiscardHandler))
		must(t, err)
		return worker{s, b, tr}
	}
	tr.Store = tr.On(tr.raw)
	tr.Key, tr.Keys = tr.keyNamed, tr.keys
	tr.NoIDs = c != redisson.Envelope
	tr.Check, tr.Tidy = tr.onceForJava, tr.checkQuarantine
	return tr
}

// of returns the trial of redisson's own.
func of(tr *redistest.Trial) *trial { return tr.Store.(worker).tr }

// emptied has a push look at the types of the keys: further ones do so a second later.
func emptied(tr *redistest.Trial) {
	redistest.Pushed(tr)
	must(tr.T, redistest.CancelAll(tr, tr.Store))
}

func handedOver(tr *redistest.Trial) {
	redistest.Pushed(tr)
	must(tr.T, maintain(tr, tr.Store))
}

// handedAround has the first message come back when the others are handed over.
func handedAround(tr *redistest.Trial) {
	redistest.Pushed(tr)
	c, err := tr.Store.Claim(tr.Ctx, 1, time.Minute, redistest.Name())
	must(tr.T, err, maintain(tr, tr.Store))
	must(tr.T, tr.Store.Nack(tr.Ctx, []backend.Return{{Lease: c.Deliveries[0].Lease(), Untouched: true}})...)
}

func redriven(tr *redistest.Trial) {
	redistest.Dead(tr)
	must(tr.T, redistest.RedriveAll(tr, tr.Store))
}

func redrivenLeased(tr *redistest.Trial) {
	redriven(tr)
	tr.Lease()
}

// fromJava has Java hand them over.
func fromJava(tr *redistest.Trial) {
	p := of(tr)
	redistest.Pushed(tr)
	for _, z := range p.members() {
		must(tr.T, tr.Raw.RPush(tr.Ctx, p.name, z.Member.(string)[17:]).Err())
	}
	must(tr.T, tr.Raw.Del(tr.Ctx, p.times(), p.index(), p.own("seq")).Err())
}

// duplicates has Java make one id for all messages. A queue of envelopes has none of them.
func duplicates(tr *redistest.Trial) {
	p := of(tr)
	if p.codec == redisson.Envelope {
		redistest.Pushed(tr)
		return
	}
	for _, m := range tr.Messages() {
		p.offer("\x08same id!\x01\x00\x00\x00\x00\x00\x00\x00"+string(m.Body), m.Due)
	}
}

// unreadable adds bytes that are no member, in both places, and no envelope.
func unreadable(tr *redistest.Trial) {
	p := of(tr)
	redistest.Pushed(tr)
	past := float64(tr.Clock.Now().Add(-time.Hour).UnixMilli())
	must(tr.T, tr.Raw.ZAdd(tr.Ctx, p.times(), redis.Z{Score: past, Member: "odd"}, redis.Z{Score: past, Member: "odder"}).Err(),
		tr.Raw.RPush(tr.Ctx, p.index(), "odder").Err())
	tr.Odd = 2
	if p.codec == redisson.Envelope {
		must(tr.T, tr.Raw.RPush(tr.Ctx, p.name, "oddest").Err())
		tr.Odd = 3
	}
}

func quarantined(tr *redistest.Trial) {
	unreadable(tr)
	tr.Claim(redistest.ByScript)
}

func maintain(tr *redistest.Trial, s redistest.Store) error { return s.(worker).Maintain(tr.Ctx) }

func restore(tr *redistest.Trial, s redistest.Store) error {
	p := of(tr)
	page, _, err := tr.Store.(worker).b.Quarantine(p.name).List(tr.Ctx, "", 10)
	must(tr.T, err)
	var ids []string
	for _, odd := range page {
		ids = append(ids, odd.ID)
	}
	return errors.Join(s.(worker).b.Quarantine(p.name).Restore(tr.Ctx, ids)...)
}

var bothWays = []redisson.Codec{redisson.Bytes, redisson.Envelope}

func suite(t *testing.T) *redistest.Suite {
	t.Helper()
	const maintainMarker = "-- Maintains the queue while"
	claim := redistest.Take(redistest.ByScript)
	s := &redistest.Suite{
		Variants: make(map[string]func(*testing.T, *testenv.RedisServer) *redistest.Trial),
		Calls: []redistest.Call{
			{Name: "push a while after another", Marker: redistest.PushMarker, Before: emptied, Do: redistest.PushAll, Gone: true, First: 1, Most: 1},
			{Name: "claim of handed over messages", Marker: redistest.ClaimMarker, Before: handedOver, Do: claim, First: 1, Most: 2},
			{Name: "claim of messages that Java handed over", Marker: redistest.ClaimMarker, Before: fromJava, Do: claim, First: 1, Most: 2},
			{Name: "claim of redriven messages", Marker: redistest.ClaimMarker, Before: redriven, Do: claim, First: 1, Most: 2},
			{Name: "claim of messages with one id", Marker: redistest.ClaimMarker, Before: duplicates, Do: claim, First: 1, Most: 2},
			{Name: "claim of unreadable entries", Marker: redistest.ClaimMarker, Before: unreadable, Do: claim, First: 1, Most: 2, Moves: true},
			{Name: "maintain", Marker: maintainMarker, Before: redistest.Pushed, Do: maintain, First: 1, Most: 1, Moves: true},
			{Name: "maintain of ended leases", Marker: maintainMarker, Before: redistest.Ended, Do: maintain, First: 2, Most: 2, Moves: true},
			{Name: "maintain of messages that came back", Marker: maintainMarker, Before: handedAround, Do: maintain, First: 1, Most: 1, Moves: true},
			{Name: "maintain of unreadable entries", Marker: maintainMarker, Before: unreadable, Do: maintain, First: 1, Most: 1, Moves: true},
			{Name: "nack of a redriven message", Marker: redistest.NackMarker, Before: redrivenLeased, Do: redistest.NackAll, First: 2, Most: 2},
			{Name: "dead of a redriven message", Marker: redistest.DeadMarker, Before: redrivenLeased, Do: redistest.DeadAll, First: 2, Most: 2},
			{Name: "cancel of a handed over message", Marker: redistest.CancelMarker, Before: handedOver, Do: redistest.CancelAll, Gone: true, First: 1, Most: 1},
			{Name: "reschedule of a handed over message", Marker: redistest.RescheduleMarker, Before: handedOver, Do: redistest.RescheduleAll, First: 1, Most: 1},
			{Name: "restore", Marker: "-- Puts quarantined things", Before: quarantined, Do: restore, First: 2, Most: 2, Moves: true},
		},
		Rights: redistest.Rights(t, "../docs/redisson.md", "redisson"),
		Elsewhere: map[string]string{
			"subscribe": "the hub", "unsubscribe": "the hub", "ping": "the hub", "info": "the check at the start", "config|get": "the check at the start",
			"publish": "a warning: TestPushWithoutPublish", "script|load": "a server that does not know the script", "hrandfield": "forgetting states, which waits",
			"del": "keys of an empty queue stay", "lpos": "HANDED is trimmed later without", "set": "the first number, by the server's clock",
		},
		Access: []string{"~*test:*", "&*test:*"},
		Keys:   []string{"", "times", "index", "leases", "held", "states", "dead", "graves", "seq", "handed", "payloads", "quarantine"},
		Kinds:  map[string]string{"states": "set"},
	}
	for _, c := range bothWays {
		s.Variants[c.Name()] = func(t *testing.T, server *testenv.RedisServer) *redistest.Trial {
			t.Helper()
			return newTrial(t, server, c).Trial
		}
	}
	return s
}

func TestStoppedScripts(t *testing.T)        { t.Parallel(); suite(t).Stopped(t) }
func TestLostReplies(t *testing.T)           { t.Parallel(); suite(t).LostReplies(t) }
func TestLostRequests(t *testing.T)          { t.Parallel(); suite(t).LostRequests(t) }
func TestScheduleLosesItsReply(t *testing.T) { t.Parallel(); suite(t).LostPushes(t) }
func TestStaleTokens(t *testing.T)           { t.Parallel(); suite(t).StaleTokens(t) }
func TestWithoutARight(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	suite(t).WithoutARight(t)
}

func TestAKeyOfAnotherType(t *testing.T) { t.Parallel(); suite(t).KeyOfAnotherType(t) }

// onceForJava checks that Java gets nothing twice: from the list of due messages, or moved there.
func (tr *trial) onceForJava(stop error) {
	tr.T.Helper()
	there := tr.list(tr.name)
	for _, z := range tr.members() {
		there = append(there, z.Member.(string))
	}
	for _, places := range [][]string{there, tr.list(tr.index())} {
		seen := make(map[string]int)
		for _, what := range places {
			body := what[len(what)-1:]
			if seen[body]++; seen[body] > 1 && !strings.HasPrefix(what, "odd") {
				tr.T.Errorf("%v: Java finds %q twice: %q", stop, body, places)
			}
		}
	}
}

func (tr *trial) checkQuarantine(stop error) {
	tr.T.Helper()
	if n := tr.raw.ZCard(tr.ctx, tr.own("quarantine")).Val(); n != int64(tr.Odd) {
		tr.T.Errorf("%v: %d things are in quarantine, want %d", stop, n, tr.Odd)
	}
	must(tr.T, tr.raw.Del(tr.ctx, tr.own("quarantine")).Err())
}
