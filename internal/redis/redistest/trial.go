package redistest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/internal/testenv"
)

// A Store has a queue's messages, without a handle, which would maintain the queue by itself.
type Store interface {
	queue.Messages
	Claim(ctx context.Context, limit int, lease time.Duration, name string) (script.Claim, error)
}

// A Trial is a queue for messages with the bodies a, b and c, on a clock of its own. Nothing runs
// except the test's calls.
type Trial struct {
	T     *testing.T
	Ctx   context.Context //nolint:containedctx // the test's: every call takes it
	Raw   *redis.Client
	Clock *clockwork.FakeClock
	Store Store // on Raw

	IDs    []string
	Leases []backend.Lease
	Odd    int  // entries of the queue that are no messages
	NoIDs  bool // whether the store makes the ids of messages

	On     func(redis.UniversalClient) Store // the same queue on another client
	Key    func(name string) string
	Keys   func() []string   // that the queue has
	Check  func(stop error)  // of the keys after a call that was stopped; may be nil
	Tidy   func(stop error)  // checks and deletes the keys that are left of an empty queue; may be nil
	Claims map[string]Claims // the ways to claim
}

// Claims returns a way to claim with a store.
type Claims func(Store) queue.Claimer

// ByScript claims by the script that each store has.
func ByScript(s Store) queue.Claimer { return s.Claim }

var bodies = []string{"a", "b", "c"}

// NewTrial returns a trial, for the caller to set On, Key and Keys, and then to begin.
func NewTrial(t *testing.T, server *testenv.RedisServer) *Trial {
	t.Helper()
	return &Trial{
		T: t, Ctx: Deadline(t), Raw: server.Client(t), Clock: clockwork.NewFakeClockAt(time.Now().Truncate(time.Second)),
		Claims: map[string]Claims{"script": ByScript},
	}
}

// Messages are three messages that are due.
func (tr *Trial) Messages() []backend.Message {
	ms := make([]backend.Message, len(bodies))
	for i, body := range bodies {
		ms[i] = backend.Message{ID: "id of " + body, Body: []byte(body), Due: tr.Clock.Now().Add(time.Duration(i-2) * time.Second)}
	}
	return ms
}

var names atomic.Int64

// Name returns a name for a claim that no other claim has.
func Name() string { return fmt.Sprintf("%08d", names.Add(1)) }

// Claim claims all that is due.
func (tr *Trial) Claim(way Claims) []backend.Delivery {
	tr.T.Helper()
	c, err := way(tr.Store)(tr.Ctx, 10, time.Minute, Name())
	Must(tr.T, err)
	return c.Deliveries
}

// Pushed has three messages that are due.
func Pushed(tr *Trial) {
	ms := tr.Messages()
	Must(tr.T, tr.Store.Schedule(tr.Ctx, ms)...)
	tr.IDs = nil
	for _, m := range ms {
		tr.IDs = append(tr.IDs, m.ID)
	}
}

// Lease leases three messages that are due.
func (tr *Trial) Lease() {
	tr.T.Helper()
	ds := tr.Claim(ByScript)
	if texts := Bodies(ds); !slices.Equal(texts, bodies) {
		tr.T.Fatalf("leased %v", texts)
	}
	tr.Leases = Leases(ds)
}

// Leased has three messages that are leased.
func Leased(tr *Trial) {
	Pushed(tr)
	tr.Lease()
}

// Ended has three messages whose leases have ended.
func Ended(tr *Trial) {
	Leased(tr)
	tr.Clock.Advance(2 * time.Minute)
}

// Dead has three dead letters.
func Dead(tr *Trial) {
	Leased(tr)
	Must(tr.T, DeadAll(tr, tr.Store))
}

// Take claims in a way, as a step of a [Call].
func Take(way Claims) func(*Trial, Store) error {
	return func(tr *Trial, s Store) error {
		_, err := way(s)(tr.Ctx, 10, time.Minute, Name())
		return err
	}
}

// AckAll acks the leases.
func AckAll(tr *Trial, s Store) error { return errors.Join(s.Ack(tr.Ctx, tr.Leases)...) }

// NackAll gives the leases back with different delays.
func NackAll(tr *Trial, s Store) error {
	rs := Returns(tr.Leases, backend.Return{})
	for i := range rs {
		rs[i].Delay = time.Duration(i) * time.Second
	}
	return errors.Join(s.Nack(tr.Ctx, rs)...)
}

// ReleaseAll gives the leases back untouched.
func ReleaseAll(tr *Trial, s Store) error {
	return errors.Join(s.Nack(tr.Ctx, Returns(tr.Leases, backend.Return{Untouched: true}))...)
}

// DeadAll makes dead letters of the leases' messages.
func DeadAll(tr *Trial, s Store) error {
	return errors.Join(s.Dead(tr.Ctx, DeadLetters(tr.Leases, "no use"))...)
}

// CancelAll cancels the messages.
func CancelAll(tr *Trial, s Store) error { return errors.Join(s.Cancel(tr.Ctx, tr.IDs)...) }

// RescheduleAll moves the messages to different times.
func RescheduleAll(tr *Trial, s Store) error {
	ms := make([]backend.Move, len(tr.IDs))
	for i, id := range tr.IDs {
		ms[i] = backend.Move{ID: id, Delay: []time.Duration{time.Second, 0, time.Hour}[i]}
	}
	return errors.Join(s.Reschedule(tr.Ctx, ms)...)
}

// RedriveAll redrives the dead letters.
func RedriveAll(tr *Trial, s Store) error { return errors.Join(s.Redrive(tr.Ctx, tr.IDs)...) }

// DeleteDeadAll deletes the dead letters.
func DeleteDeadAll(tr *Trial, s Store) error { return errors.Join(s.DeleteDead(tr.Ctx, tr.IDs)...) }

// complete claims all messages in a way, and checks that nothing of the queue is lost, twice there,
// or left.
func (tr *Trial) complete(c *Call, way Claims, stop error) {
	tr.T.Helper()
	if tr.Check != nil {
		tr.Check(stop)
	}
	got := make(map[string]int)
	for range 20 {
		tr.Clock.Advance(2 * time.Hour) // all leases end, and all is due
		for ds := tr.Claim(way); len(ds) > 0; ds = tr.Claim(way) {
			for _, d := range ds {
				if got[string(d.Body)]++; d.Attempt < c.First || d.Attempt > c.Most {
					tr.T.Errorf("%v: %s comes at attempt %d, want %d to %d", stop, d.Body, d.Attempt, c.First, c.Most)
				}
			}
			Must(tr.T, tr.Store.Ack(tr.Ctx, Leases(ds))...)
		}
	}
	letters, _, err := tr.Store.ListDead(tr.Ctx, "", 10)
	Must(tr.T, err)
	for _, l := range letters {
		got[string(l.Body)]++
		Must(tr.T, tr.Store.DeleteDead(tr.Ctx, []string{l.ID})...)
	}
	for _, body := range bodies {
		if got[body] > 1 || got[body] == 0 && !c.Gone {
			tr.T.Errorf("%v: %s is there %d times", stop, body, got[body])
		}
		delete(got, body)
	}
	if len(got) > 0 {
		tr.T.Errorf("%v: %v were never pushed", stop, got)
	}
	if tr.Tidy != nil {
		tr.Tidy(stop)
	}
	Leased(tr) // a failed push does not keep the ids
	Must(tr.T, AckAll(tr, tr.Store))
	if keys := tr.Keys(); len(keys) > 0 {
		tr.T.Errorf("%v: left over: %q", stop, slices.Sorted(slices.Values(keys)))
	}
}

// content reads the queue's keys but for the counter.
func (tr *Trial) content() map[string]string {
	tr.T.Helper()
	all := make(map[string]string)
	for _, key := range tr.Keys() {
		switch tr.Raw.Type(tr.Ctx, key).Val() {
		case "hash":
			all[key] = fmt.Sprintf("%q", tr.Raw.HGetAll(tr.Ctx, key).Val()) // in the order of the fields
		case "zset":
			all[key] = fmt.Sprintf("%v", tr.Raw.ZRangeWithScores(tr.Ctx, key, 0, -1).Val())
		case "list":
			all[key] = fmt.Sprintf("%q", tr.Raw.LRange(tr.Ctx, key, 0, -1).Val())
		}
	}
	return all
}
