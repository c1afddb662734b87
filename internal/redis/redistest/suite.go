package redistest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/internal/testenv"
)

// A Call is a call that fails half-way.
type Call struct {
	Name   string
	Marker string       // that only its script has
	Before func(*Trial) // nil for an empty queue
	Do     func(*Trial, Store) error
	Gone   bool // whether the call may have deleted its messages, or not have pushed them
	First  int  // the lowest attempt of later deliveries
	Most   int  // and the highest

	Moves bool // whether the call puts messages where they wait, or aside, before it fails
	Reads bool // whether its script may have no write
	Once  bool // whether a call whose reply was lost is not sent again
}

// The markers of scripts that several calls run.
const (
	PushMarker       = "-- Stores messages"
	ClaimMarker      = "-- Leases up to limit"
	AckMarker        = "-- Deletes messages: "
	NackMarker       = "-- Gives messages back: for"
	DeadMarker       = "-- Makes messages dead letters"
	CancelMarker     = "-- Deletes messages that wait"
	RescheduleMarker = "-- Moves messages that wait"
	RedriveMarker    = "-- Schedules dead letters"
	DeleteDeadMarker = "-- Deletes dead letters"
)

// Calls are the calls that each store has.
var calls = []Call{
	{Name: "push", Marker: PushMarker, Do: PushAll, Gone: true, First: 1, Most: 1},
	{Name: "claim", Marker: ClaimMarker, Before: Pushed, Do: Take(ByScript), First: 1, Most: 2},
	{Name: "claim of ended leases", Marker: ClaimMarker, Before: Ended, Do: Take(ByScript), First: 2, Most: 3, Moves: true},
	{Name: "ack", Marker: AckMarker, Before: Leased, Do: AckAll, Gone: true, First: 2, Most: 2},
	{Name: "nack", Marker: NackMarker, Before: Leased, Do: NackAll, First: 2, Most: 2},
	{Name: "nack untouched", Marker: NackMarker, Before: Leased, Do: ReleaseAll, First: 1, Most: 2},
	{Name: "dead", Marker: DeadMarker, Before: Leased, Do: DeadAll, First: 2, Most: 2},
	{Name: "extend", Marker: "-- Makes leases end", Before: Leased, First: 2, Most: 2, Do: func(tr *Trial, s Store) error {
		_, errs := s.Extend(tr.Ctx, tr.Leases, 2*time.Minute)
		return errors.Join(errs...)
	}},
	{Name: "cancel", Marker: CancelMarker, Before: Pushed, Do: CancelAll, Gone: true, First: 1, Most: 1},
	{Name: "cancel of ended leases", Marker: CancelMarker, Before: Ended, Do: CancelAll, Gone: true, First: 2, Most: 2, Moves: true},
	{Name: "reschedule", Marker: RescheduleMarker, Before: Pushed, Do: RescheduleAll, First: 1, Most: 1},
	{Name: "reschedule of ended leases", Marker: RescheduleMarker, Before: Ended, Do: RescheduleAll, First: 2, Most: 2, Moves: true},
	{Name: "redrive", Marker: RedriveMarker, Before: Dead, Do: RedriveAll, First: 1, Most: 1},
	{Name: "delete dead", Marker: DeleteDeadMarker, Before: Dead, Do: DeleteDeadAll, Gone: true, First: 1, Most: 1},
	{Name: "trim dead", Marker: "-- Deletes the oldest dead letters", Before: Dead, Gone: true, First: 1, Most: 1, Do: func(tr *Trial, s Store) error {
		tr.Clock.Advance(time.Second)
		_, _, err := s.TrimDead(tr.Ctx, backend.Retention{MaxAge: time.Second})
		return err
	}},
	{Name: "list dead", Marker: "-- Lists dead letters", Before: Dead, First: 1, Most: 1, Reads: true, Do: func(tr *Trial, s Store) error {
		_, _, err := s.ListDead(tr.Ctx, "", 10)
		return err
	}},
	{Name: "stats", Marker: "-- Counts:", Before: Ended, First: 2, Most: 2, Moves: true, Do: func(tr *Trial, s Store) error {
		_, err := s.Stats(tr.Ctx)
		return err
	}},
	{Name: "get", Marker: "-- Shows messages", Before: Ended, First: 2, Most: 2, Reads: true, Do: func(tr *Trial, s Store) error {
		_, errs := s.Get(tr.Ctx, tr.IDs)
		return errors.Join(errs...)
	}},
	{Name: "peek", Marker: "-- Lists waiting messages", Before: Ended, First: 2, Most: 2, Moves: true, Do: func(tr *Trial, s Store) error {
		_, _, err := s.Peek(tr.Ctx, "", 10)
		return err
	}},
	{Name: "pause", Marker: "-- Pauses a queue", Before: Pushed, First: 1, Most: 1, Do: PauseForMoment},
	{Name: "purge", Marker: "-- Deletes all that there is", Before: Pushed, Gone: true, First: 1, Most: 1, Do: func(tr *Trial, s Store) error {
		_, err := s.Purge(tr.Ctx)
		return err
	}},
}

// PushAll pushes three messages.
func PushAll(tr *Trial, s Store) error { return errors.Join(s.Schedule(tr.Ctx, tr.Messages())...) }

// PauseForMoment pauses the queue, looks at the pause, and ends it whatever has failed.
func PauseForMoment(tr *Trial, s Store) error {
	defer func() { Must(tr.T, tr.Store.ResumeAll(tr.Ctx)) }()
	if err := s.PauseAll(tr.Ctx, backend.Pause{For: time.Hour}); err != nil {
		return err
	}
	_, err := s.Stats(tr.Ctx)
	return err
}

// A Suite has the calls of a store.
type Suite struct {
	// Variants begin a trial of each kind of queue on a server.
	Variants map[string]func(*testing.T, *testenv.RedisServer) *Trial

	Calls []Call // that other stores do not have

	Rights    []string          // that the documentation gives to a user
	Elsewhere map[string]string // rights without which every call may succeed, each with its use
	Access    []string          // the keys and channels of the trials, as ACL SETUSER has them

	Keys  []string          // of a queue
	Kinds map[string]string // what to have under a key instead of a stream
}

func (s *Suite) calls() []Call { return append(calls[:len(calls):len(calls)], s.Calls...) }

// each runs a test for each call of each variant, on the test process' server.
func (s *Suite) each(t *testing.T, f func(t *testing.T, c *Call, begin func(*testing.T) *Trial)) {
	for variant, begin := range s.Variants {
		for _, c := range s.calls() {
			t.Run(variant+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				f(t, &c, func(t *testing.T) *Trial { return begin(t, testenv.SharedRedis(t)) })
			})
		}
	}
}

// Stopped makes each script fail at each of its writes in turn. Every message is still there, once,
// and nothing is left after all are acked. In the tier testenv.Default, the ways to claim take turns.
func (s *Suite) Stopped(t *testing.T) {
	s.each(t, func(t *testing.T, c *Call, begin func(*testing.T) *Trial) {
		ways := slices.Sorted(maps.Keys(begin(t).Claims))
		for n, met := 1, true; met; n++ {
			met = false
			now := ways
			if !testenv.Runs(t, testenv.All) {
				now = ways[n%len(ways):][:1]
			}
			for _, name := range now {
				t.Run(fmt.Sprintf("write %d, then %s", n, name), func(t *testing.T) {
					tr := begin(t)
					met = c.stop(tr, n, tr.Claims[name]) || met
				})
			}
			if n == 1 && !met && !c.Reads {
				t.Error("the script has no write")
			}
		}
	})
}

// prepare returns the trial with what the call needs.
func (c *Call) prepare(tr *Trial) *Trial {
	if c.Before != nil {
		c.Before(tr)
	}
	return tr
}

// stop reports whether there was such a write. Then all messages are claimed in a way.
func (c *Call) stop(tr *Trial, n int, way Claims) (met bool) {
	c.prepare(tr)
	client := Another(tr.T, tr.Raw)
	mark := "stopped " + Name() + " " + tr.T.Name()
	client.AddHook(Stop(c.Marker, n, mark))
	err := c.Do(tr, tr.On(client))
	if err != nil && !strings.Contains(err.Error(), Stopped) {
		tr.T.Fatal(err)
	}
	if tr.Raw.Del(tr.Ctx, mark).Val() == 0 {
		return false
	}
	tr.complete(c, way, err)
	return true
}

// LostReplies loses the reply to the first script of each call, which is sent again. The call
// succeeds, or its outcome is unknown where the second try cannot tell.
func (s *Suite) LostReplies(t *testing.T) {
	s.each(t, func(t *testing.T, c *Call, begin func(*testing.T) *Trial) {
		tr := c.prepare(begin(t))
		f := LostReply(func() {})
		err := c.Do(tr, tr.On(f.Client(t, tr.Raw)))
		if !f.Met() {
			t.Fatal("the call runs no script")
		}
		byID := c.Marker == CancelMarker || c.Marker == RedriveMarker || c.Marker == DeleteDeadMarker
		unknown := c.Once || byID || c.Marker == PushMarker && tr.NoIDs
		if unknown != errors.Is(err, script.ErrUnknown) || !unknown && err != nil {
			t.Errorf("got %v; want an unknown outcome: %v", err, unknown)
		}
		if byID && c.Do(tr, tr.Store) == nil {
			t.Error("the first try did nothing")
		}
		tr.complete(c, ByScript, err)
	})
}

// LostRequests loses the first script of each call on its way to the server. The call is sent again,
// and succeeds. The outcome is unknown of one that is not, and may be of a push, whose message may have
// come and gone.
func (s *Suite) LostRequests(t *testing.T) {
	s.each(t, func(t *testing.T, c *Call, begin func(*testing.T) *Trial) {
		tr := c.prepare(begin(t))
		f := &Fault{At: "evalsha", Unsent: true}
		err := c.Do(tr, tr.On(f.Client(t, tr.Raw)))
		if !f.Met() {
			t.Fatal("the call runs no script")
		}
		unknown := errors.Is(err, script.ErrUnknown)
		if unknown != (err != nil) || c.Once && !unknown || unknown && !c.Once && c.Marker != PushMarker {
			t.Errorf("got %v; want an unknown outcome: %v", err, c.Once)
		}
		tr.complete(c, ByScript, err)
	})
}

// LostPushes loses the reply to a push, and has something happen to its message before the push is
// sent again. A push is no duplicate of itself, and its outcome is unknown where its message may be
// done.
func (s *Suite) LostPushes(t *testing.T) {
	done := func(tr *Trial, d backend.Delivery) { Must(tr.T, tr.Store.Ack(tr.Ctx, []backend.Lease{d.Lease()})...) }
	for variant, begin := range s.Variants {
		for name, tt := range map[string]struct {
			m         backend.Message
			meanwhile func(*Trial, backend.Delivery) // nil for a message that waits
			left      int64
		}{
			"it waits":   {left: 1},
			"it is held": {meanwhile: func(*Trial, backend.Delivery) {}, left: 1},
			"it is dead": {meanwhile: func(tr *Trial, d backend.Delivery) {
				Must(tr.T, tr.Store.Dead(tr.Ctx, []backend.DeadLetterRequest{{Lease: d.Lease()}})...)
			}, left: 1},
			"it is done":          {meanwhile: done},
			"it is done, due":     {m: backend.Message{Due: time.Unix(1, 0)}, meanwhile: done},
			"it came and is done": {m: backend.Message{Delay: 20 * time.Millisecond}, meanwhile: done},
		} {
			t.Run(variant+"/"+name, func(t *testing.T) {
				t.Parallel()
				tr := begin(t, testenv.SharedRedis(t))
				f := LostReply(func() {
					if tt.meanwhile != nil {
						tr.Clock.Advance(tt.m.Delay)
						tt.meanwhile(tr, tr.Claim(ByScript)[0])
					}
				})
				tt.m.ID, tt.m.Body = "a", []byte("a")
				err := errors.Join(tr.On(f.Client(t, tr.Raw)).Schedule(tr.Ctx, []backend.Message{tt.m})...)
				if unknown := tt.left == 0 || tr.NoIDs; unknown != errors.Is(err, script.ErrUnknown) || !unknown && err != nil {
					t.Errorf("got %v; want an unknown outcome: %v", err, unknown)
				}
				st, err := tr.Store.Stats(tr.Ctx)
				Must(t, err)
				if n := st.Scheduled + st.Ready + st.InFlight + st.Dead; n != tt.left {
					t.Errorf("%d messages are left, want %d", n, tt.left)
				}
				_, err = tr.Store.Purge(tr.Ctx)
				Must(t, err)
			})
		}
	}
}

// WithoutARight runs each call as a user who lacks one of the documented rights. A call that fails
// names the right, and changes nothing: with the right, the same call succeeds. Every documented
// right is needed by a call.
func (s *Suite) WithoutARight(t *testing.T) {
	server := testenv.Redis(t, testenv.Private())
	for _, lacking := range s.Rights {
		client := User(t, server, "without-"+lacking, Without(s.Rights, lacking), s.Access...)
		failed := 0
		for variant, begin := range s.Variants {
			for _, c := range s.calls() {
				t.Run(lacking+"/"+variant+"/"+c.Name, func(t *testing.T) {
					tr := c.prepare(begin(t, server))
					before := tr.content()
					err := c.Do(tr, tr.On(client))
					if err != nil {
						failed++
						if !Names(err, lacking) {
							t.Error(err)
						}
					}
					c.after(tr, before, errors.Join(errors.New("without "+lacking), err), err)
				})
			}
		}
		if failed == 0 && s.Elsewhere[lacking] == "" {
			t.Errorf("nothing needs %s", lacking)
		}
	}
}

// after checks that a call that failed has changed nothing, makes it again, and completes.
func (c *Call) after(tr *Trial, before map[string]string, how, err error) {
	tr.T.Helper()
	done := *c
	if err != nil {
		if after := tr.content(); !c.Moves && !maps.Equal(before, after) {
			tr.T.Errorf("%v: it failed, and changed\n%q to\n%q", how, before, after)
		}
		if err := c.Do(tr, tr.Store); err != nil {
			tr.T.Errorf("%v: again: %v", how, err)
		}
		done.Gone = c.Gone && !strings.HasPrefix(c.Name, "push")
	}
	tr.complete(&done, ByScript, how)
}

// KeyOfAnotherType runs each call on a queue where another program has made one of the keys. A call
// that fails changes nothing: without that key, the same call succeeds.
func (s *Suite) KeyOfAnotherType(t *testing.T) {
	s.each(t, func(t *testing.T, c *Call, begin func(*testing.T) *Trial) {
		if c.Name == "purge" { // it deletes whatever is there
			return
		}
		for _, key := range s.Keys {
			t.Run(key, func(t *testing.T) {
				t.Parallel()
				kind := s.Kinds[key]
				if kind == "" {
					kind = "stream"
				}
				c.mistyped(c.prepare(begin(t)), key, kind)
			})
		}
	})
}

// mistyped does not try a key that holds something of the queue's.
func (c *Call) mistyped(tr *Trial, key, kind string) {
	before, name := tr.content(), tr.Key(key)
	if tr.Raw.Exists(tr.Ctx, name).Val() == 1 {
		return
	}
	Write(tr.Ctx, tr.T, tr.Raw, kind, name)
	err := c.Do(tr, tr.Store)
	how := errors.Join(fmt.Errorf("%s is a %s", key, kind), err)
	if tr.Raw.Type(tr.Ctx, name).Val() == kind {
		if left := tr.Raw.PTTL(tr.Ctx, name).Val(); left > 0 {
			tr.T.Error(fmt.Errorf("%w: it expires in %v", how, left))
		}
		Must(tr.T, tr.Raw.Del(tr.Ctx, name).Err())
	}
	if err != nil && !errors.Is(err, backend.ErrInvalid) {
		tr.T.Error(how)
	}
	c.after(tr, before, how, err)
}
