package redis_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
)

// Of messages that come back for the same time any may be the first argument. Sleepers are told
// whichever is the head then.
func TestNackInAnyOrderTellsOfTheHead(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		ctx := redistest.Deadline(t)
		client := testenv.Redis(t, testenv.Private()).Client(t)
		q := openQueue(t, s.open(client))
		must(t, q.Schedule(ctx, []backend.Message{{ID: "a", Body: []byte("a")}, {ID: "b", Body: []byte("b")}, {ID: "c", Body: []byte("c")}})...)
		var rs []backend.Return
		for len(rs) < 3 {
			ds, err := q.Receive(ctx, 3, time.Minute)
			must(t, err)
			for _, d := range ds {
				rs = append([]backend.Return{{Lease: d.Lease(), Delay: time.Hour}}, rs...)
			}
		}
		heard := client.Subscribe(ctx, s.channel("orders"))
		t.Cleanup(func() { _ = heard.Close() })
		_, err := heard.Receive(ctx)
		must(t, err)
		must(t, q.Nack(ctx, rs)...)
		msg, err := heard.ReceiveMessage(ctx)
		must(t, err)
		page, _, err := q.Peek(ctx, "", 1)
		must(t, err)
		if due, _, _ := strings.Cut(msg.Payload, " "); due != fmt.Sprint(page[0].Due.UnixMilli()) {
			t.Errorf("sleepers are told %v, want %v", msg, page[0].Due)
		}
	})
}

// TestPushWithoutPublish stores a message that may not be announced, and says so in the log alone.
func TestPushWithoutPublish(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		ctx := redistest.Deadline(t)
		server := testenv.Redis(t, testenv.Private())
		b := s.open(redistest.User(t, server, "quiet", redistest.Without(s.rights(t), "publish"), "~*", "&*"))
		defer func() { must(t, b.Close()) }()
		var log redistest.Log
		q, err := b.Open(ctx, "orders", backend.Options{Logger: log.Logger()})
		must(t, err)
		must(t, q.Schedule(ctx, []backend.Message{{ID: "a", Delay: time.Hour}})...)
		must(t, q.Schedule(ctx, []backend.Message{{ID: "b", Delay: time.Minute}, {ID: "c"}})...)
		if !s.java {
			errs := q.Schedule(ctx, []backend.Message{{ID: "d"}, {ID: "a"}})
			if len(errs) != 2 || errs[0] != nil || !errors.Is(errs[1], backend.ErrDuplicate) {
				t.Errorf("beside a duplicate: %v", errs)
			}
			must(t, q.Cancel(ctx, []string{"d"})...)
		}
		if log.Count("could not be announced", "PUBLISH") == 0 {
			t.Errorf("the log has %q", &log)
		}
		if st, err := q.Stats(ctx); err != nil || st.Scheduled != 2 || st.Ready+st.InFlight != 1 {
			t.Errorf("%+v, %v", st, err)
		}
	})
}

// TestUnannouncedPushOnAFakeClock finds a message of another process that could not be announced,
// though the clock of the sleeper stands still.
func TestUnannouncedPushOnAFakeClock(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		ctx := redistest.Deadline(t)
		server := testenv.Redis(t, testenv.Private())
		client := server.Client(t)
		clocked := redistest.Silent()
		clocked.Clock = clockwork.NewFakeClock()
		sleeps, pushes := s.open(client), s.open(redistest.User(t, server, "quiet", redistest.Without(s.rights(t), "publish"), "~*", "&*"))
		defer func() { must(t, sleeps.Close(), pushes.Close()) }()
		q, err := sleeps.Open(ctx, "orders", clocked)
		must(t, err)
		quiet, err := pushes.Open(ctx, "orders", clocked)
		must(t, err)
		got := make(chan error, 1)
		go func() {
			_, err := q.Receive(ctx, 1, time.Minute)
			got <- err
		}()
		await(t, "the subscription, and the look after it", func() bool {
			before := redistest.Calls(t, client)["evalsha"]
			time.Sleep(20 * time.Millisecond)                                                           // between two counts; the condition ends the wait
			subscribed := client.PubSubNumSub(ctx, s.channel("orders")).Val()[s.channel("orders")] >= 1 // the other may maintain its queue
			return subscribed && (s.redisson() || redistest.Calls(t, client)["evalsha"] == before)      // its sweep is short here
		})
		must(t, quiet.Schedule(ctx, []backend.Message{{ID: "a"}})...)
		must(t, <-got)
	})
}
