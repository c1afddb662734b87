package keyspace_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/zsetpoll"
)

// apart opens a queue in so many processes, whose sweep is too rare to help.
func apart(t *testing.T, srv *testenv.RedisServer, n int) []backend.Queue {
	t.Helper()
	qs := make([]backend.Queue, n)
	for i := range qs {
		qs[i] = open(t, newBackend(t, srv.Client(t), keyspace.Sweep(time.Minute)))
	}
	return qs
}

// batch pushes messages of some delays in one call, as m0, m1 and so on. It returns from when the
// delays count.
func batch(t *testing.T, q backend.Queue, delays ...time.Duration) (from time.Time) {
	t.Helper()
	ms := make([]backend.Message, len(delays))
	from = time.Now()
	for i, d := range delays {
		ms[i] = backend.Message{ID: numbered("m", i), Due: from.Add(d)}
	}
	must(t, q.Schedule(t.Context(), ms)...)
	return from
}

// came waits until some sleepers have one message each, and acks them.
func came(t *testing.T, q backend.Queue, sleepers []*sleeper, within time.Duration) {
	t.Helper()
	timeout := time.After(within)
	for i, s := range sleepers {
		select {
		case a := <-s.got:
			must(t, a.err)
			must(t, q.Ack(t.Context(), []backend.Lease{a.Lease()})...)
		case <-timeout:
			t.Fatalf("%d of %d sleepers got nothing within %v", len(sleepers)-i, len(sleepers), within)
		}
	}
}

// Each process takes one of the messages that become due together, and then no more. The others
// must be woken for the messages that it leaves.
func TestMessagesLeftByAClaimWakeOthers(t *testing.T) {
	t.Parallel()
	const processes = 4
	srv := server(t)
	client, qs := srv.Client(t), apart(t, srv, processes)
	for round := range 5 {
		sleepers := make([]*sleeper, processes)
		for i, q := range qs {
			sleepers[i] = sleepIn(t, q)
		}
		settle(t, client)
		delays := make([]time.Duration, processes)
		for i := range delays {
			delays[i] = 200*time.Millisecond + time.Duration(i*(round%3)*40)*time.Millisecond
		}
		batch(t, qs[0], delays...)
		came(t, qs[0], sleepers, time.Second+noise)
	}
}

// A worker that is not asleep takes the head before Redis notices that the trigger is to go, and
// leaves the rest.
func TestTakingTheHeadWakesSleepers(t *testing.T) {
	t.Parallel()
	srv := server(t)
	client, qs := srv.Client(t), apart(t, srv, 2)
	for range 5 {
		s := sleep(t, client, qs[1])
		due := batch(t, qs[0], 150*time.Millisecond, 150*time.Millisecond)
		// the server has mostly not noticed that the trigger is to go
		await(t, "the messages to be due", func() bool { return client.Time(t.Context()).Val().After(due.Add(151 * time.Millisecond)) })
		first := sleepIn(t, qs[0])
		came(t, qs[0], []*sleeper{first, s}, time.Second+noise)
	}
}

// A trigger that goes for a message that is not there any more is set for the next. Where a busy machine changes
// the message when it is due already, the test begins again.
func TestTriggerIsSetForTheNextHead(t *testing.T) {
	t.Parallel()
	srv := server(t)
	zset := zsetpoll.New(srv.Client(t), zsetpoll.Poll(time.Minute))
	t.Cleanup(func() { must(t, zset.Close()) })
	client, theirs := srv.Client(t), open(t, zset)
	for name, change := range map[string]func(q backend.Queue) error{
		"cancelled": func(q backend.Queue) error { return errors.Join(q.Cancel(t.Context(), []string{"m0"})...) },
		"moved behind": func(q backend.Queue) error {
			return errors.Join(q.Reschedule(t.Context(), []backend.Move{{ID: "m0", Delay: time.Hour}})...)
		},
		"cancelled by zsetpoll": func(backend.Queue) error { return errors.Join(theirs.Cancel(t.Context(), []string{"m0"})...) },
		// Redis may notice at any moment from when it is due: here it does so when zsetpoll, which goes by its timer, has
		// had its turn.
		takenByZsetpoll: func(backend.Queue) error { return client.PExpire(t.Context(), trigger, time.Hour).Err() },
	} {
		t.Run(name, func(t *testing.T) {
			q := apart(t, srv, 1)[0]
			for late := true; late; {
				s := sleep(t, client, q)
				due := batch(t, q, 4*time.Second, 4700*time.Millisecond).Add(4 * time.Second)
				err := change(q)
				if late = client.Time(t.Context()).Val().After(due); late {
					<-s.got // either message
				} else {
					must(t, err)
					if name == takenByZsetpoll {
						take(t, theirs, 4*time.Second+noise)
						// With PEXPIRE, a busy Redis 7.0 may find the millisecond over, and delete the key without an expiry.
						must(t, client.Set(t.Context(), trigger, "1", time.Millisecond).Err())
					}
					s.woken(t, "m1", 5*time.Second+noise)
				}
				_, err = q.Purge(t.Context())
				must(t, err)
			}
		})
	}
}

// The sweep of a sleeping queue sets a trigger that is lost.
func TestSweepRestoresTheTrigger(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t)
	q := open(t, newBackend(t, client, keyspace.Sweep(100*time.Millisecond)))
	sleepIn(t, q)
	push(t, q, "m", time.Hour)
	must(t, client.Del(t.Context(), trigger).Err())
	await(t, "setting the trigger again", func() bool { return goesIn(t, client) > 0 })
	if left := goesIn(t, client); left > time.Hour+time.Millisecond || left < 55*time.Minute { // due times are rounded up
		t.Errorf("the trigger goes in %v, want an hour", left)
	}
}

const takenByZsetpoll = "taken by zsetpoll"

const trigger = "delayq:{q}:trigger"

// goesIn returns how long the trigger has to live; negative where there is none.
func goesIn(t *testing.T, client redis.Cmdable) time.Duration {
	t.Helper()
	left, err := client.PTTL(t.Context(), trigger).Result()
	must(t, err)
	return left
}

// A claim passes over all stale entries at once, instead of one in each sweep.
func TestStaleEntriesDelayNoMessage(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t)
	q := open(t, newBackend(t, client, keyspace.Sweep(time.Minute)))
	push(t, q, "m", 0)
	for i := range 10 {
		member := "\x00\x00\x00\x00\x00\x00" + string(rune(i)) + "\x00\x00\x00\x00" + "\x01x"
		must(t, client.ZAdd(t.Context(), "delayq:{q}:due", redis.Z{Score: 1, Member: member}).Err())
	}
	ctx, cancel := context.WithTimeout(t.Context(), noise)
	defer cancel()
	ds, err := q.Receive(ctx, 1, lease)
	must(t, err)
	if ds[0].ID != "m" {
		t.Errorf("got %+v", ds[0])
	}
}
