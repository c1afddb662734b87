package shard_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/zsetpoll"
)

// rolledBack returns the first generation of a note, as a failover leaves it that has lost the others.
func rolledBack(note string) string { return strings.Split(note, ",")[0] }

// TestNoteRolledBack has a failover lose the note of the newest shards when no program knows them. The older ones
// refuse pushes, so there are new ones again.
func TestNoteRolledBack(t *testing.T) {
	each(t, func(t *testing.T, openAll func(int) sharded, client redis.UniversalClient) {
		ctx := redistest.Deadline(t)
		old := openAll(2)
		q := open(t, old)
		redistest.Must(t, q.Schedule(ctx, ids(0, 5))...)
		redistest.Must(t, old.Reshard(ctx, t.Name(), 4), old.Close())
		setNote(ctx, t, client, rolledBack)
		b := openAll(2)
		fresh := open(t, b)
		redistest.Wants(t, fresh.Schedule(ctx, ids(0, 5)), backend.ErrDuplicate)
		redistest.Must(t, fresh.Schedule(ctx, ids(5, 5))...)
		if got := note(ctx, t, client); got != "2,2" {
			t.Errorf("the note is %q", got)
		}
		takeAll(ctx, t, fresh, 10)
		redistest.Must(t, b.Remove(ctx, t.Name()))
	})
}

// TestNumbersAfterARollback has a failover lose the note of new shards, and a program that does not know them
// make others. Both have messages that all programs find.
func TestNumbersAfterARollback(t *testing.T) {
	each(t, func(t *testing.T, openAll func(int) sharded, client redis.UniversalClient) {
		ctx := redistest.Deadline(t)
		knowing := openAll(2)
		q := open(t, knowing)
		redistest.Must(t, knowing.Reshard(ctx, t.Name(), 4))
		redistest.Must(t, q.Schedule(ctx, ids(0, 20))...)
		setNote(ctx, t, client, rolledBack)
		redistest.Must(t, openAll(2).Reshard(ctx, t.Name(), 8))
		redistest.Wants(t, q.Cancel(ctx, []string{"unknown"}), backend.ErrNotFound)
		if got := note(ctx, t, client); got != "2,4,8" && got != "4,8" { // the two are empty, and go after a while
			t.Errorf("the note is %q", got)
		}
		b := openAll(2)
		redistest.Wants(t, q.Schedule(ctx, ids(0, 20)), backend.ErrDuplicate)
		redistest.Must(t, q.Schedule(ctx, ids(20, 20))...)
		takeAll(ctx, t, open(t, b), 40)
		redistest.Must(t, b.Remove(ctx, t.Name()))
	})
}

// TestPushesFindALostNote has a failover lose the whole note while a program only pushes. It writes the note again,
// so that others find its messages.
func TestPushesFindALostNote(t *testing.T) {
	each(t, func(t *testing.T, openAll func(int) sharded, client redis.UniversalClient) {
		ctx := redistest.Deadline(t)
		q := open(t, openAll(4))
		redistest.Must(t, q.Schedule(ctx, ids(0, 1))...)
		redistest.Must(t, client.Del(ctx, "delayq:{"+t.Name()+"}:shards").Err())
		n := 1
		redistest.Await(t, "the note", func() bool {
			redistest.Must(t, q.Schedule(ctx, ids(n, 1))...)
			n++
			return client.Exists(ctx, "delayq:{"+t.Name()+"}:shards").Val() == 1
		})
		b := openAll(1)
		takeAll(ctx, t, open(t, b), n)
		redistest.Must(t, b.Remove(ctx, t.Name()))
	})
}

// changesNote reports whether a command is the script that changes the note to one with shards of a size.
func changesNote(cmd redis.Cmder, size string) bool {
	return cmd.Name() == "evalsha" && slices.ContainsFunc(cmd.Args(), func(arg any) bool {
		text, _ := arg.(string)
		return strings.HasSuffix(text, size)
	})
}

// TestPauseWhileResharding has another program pause a queue just before new shards are noted, or let it go on. Then
// the program that made them ends. They have the queue's pause, or none.
func TestPauseWhileResharding(t *testing.T) {
	t.Parallel()
	client := testenv.SharedRedis(t).Client(t)
	for name, pause := range map[string]bool{"pause": true, "resume": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := redistest.Deadline(t)
			other := zsetpoll.New(client, zsetpoll.Shards(2))
			t.Cleanup(func() { _ = other.Close() })
			q := open(t, other)
			change := func() error { return q.PauseAll(ctx, backend.Pause{}) }
			if !pause {
				redistest.Must(t, change())
				change = func() error { return q.ResumeAll(ctx) }
			}
			dying := redistest.Another(t, client)
			var met atomic.Bool
			dying.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
				if changesNote(cmd, ":8") && !met.Swap(true) {
					redistest.Must(t, change())
				}
				return send()
			}))
			dying.AddHook(noteStops(":8"))
			b := zsetpoll.New(dying, zsetpoll.Shards(2))
			t.Cleanup(func() { _ = b.Close() })
			if err := b.Reshard(ctx, t.Name(), 8); err == nil {
				t.Error("the program did not end")
			}
			keys, err := client.Keys(ctx, "delayq:{"+t.Name()+"/*/8.*}:paused").Result()
			if redistest.Must(t, err); len(keys) != 8 {
				t.Errorf("%d of the new shards are held back", len(keys))
			}
			for _, key := range keys { // a pause without an end, or the short one of new shards
				if ttl := client.TTL(ctx, key).Val(); (ttl < 0) != pause {
					t.Errorf("%s lasts %v", key, ttl)
				}
			}
			redistest.Must(t, q.ResumeAll(ctx), other.Remove(ctx, t.Name()))
		})
	}
}

// givesPause reports whether a command is a script on the pause of a new shard alone, of so many.
func givesPause(cmd redis.Cmder, shards string) bool {
	args := cmd.Args()
	if cmd.Name() != "evalsha" || args[2] != 1 {
		return false
	}
	key, _ := args[3].(string)
	return strings.Contains(key, "/"+shards+".") && strings.HasSuffix(key, "}:paused")
}

// TestPausesOfShardsThatAreNotMade has the server refuse new shards of a queue that is paused without an end. They
// leave no pauses, which nothing would find.
func TestPausesOfShardsThatAreNotMade(t *testing.T) {
	t.Parallel()
	client := testenv.SharedRedis(t).Client(t)
	for name, refused := range map[string]func(cmd redis.Cmder) bool{
		"the note":   func(cmd redis.Cmder) bool { return changesNote(cmd, ":8") },
		"some pause": func(cmd redis.Cmder) bool { return givesPause(cmd, "8.3") && slices.Contains(cmd.Args(), any("first")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := redistest.Deadline(t)
			refusing := redistest.Another(t, client)
			refusing.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
				if refused(cmd) {
					cmd.SetErr(refusal("NOPERM no permissions"))
					return cmd.Err()
				}
				return send()
			}))
			for _, shards := range []int{8, 2} { // when it begins, and later
				b := zsetpoll.New(refusing, zsetpoll.Shards(shards))
				t.Cleanup(func() { _ = b.Close() })
				redistest.Must(t, open(t, zsetpoll.New(client)).PauseAll(ctx, backend.Pause{}))
				_, err := b.Open(ctx, t.Name(), redistest.Silent())
				if shards == 2 {
					redistest.Must(t, err)
					err = b.Reshard(ctx, t.Name(), 8)
				}
				if err == nil || !strings.Contains(err.Error(), "NOPERM") {
					t.Errorf("it returns %v", err)
				}
			}
			if keys := client.Keys(ctx, "delayq:{"+t.Name()+"/*/8.*}:*").Val(); len(keys) > 0 {
				t.Errorf("left over: %q", keys)
			}
			redistest.Must(t, zsetpoll.New(client).Remove(ctx, t.Name()))
		})
	}
}

// TestPausesOfShardsThatAreGone has a program pause shards that have ended since it read the note, and another stop when
// it has just ended shards of a paused queue. Neither leaves a pause, which nothing would find.
func TestPausesOfShardsThatAreGone(t *testing.T) {
	t.Parallel()
	client := testenv.SharedRedis(t).Client(t)
	for name, pauseLate := range map[string]bool{"paused late": true, "ended half-way": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := redistest.Deadline(t)
			other, ends := zsetpoll.New(client, zsetpoll.Shards(2)), redistest.Another(t, client)
			t.Cleanup(func() { _ = other.Close() })
			q := open(t, other)
			if !pauseLate {
				redistest.Must(t, q.PauseAll(ctx, backend.Pause{}))
				var ended atomic.Bool
				ends.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
					if ended.Load() {
						cmd.SetErr(errStopped)
						return errStopped
					}
					err := send()
					ended.Store(slices.ContainsFunc(cmd.Args(), func(arg any) bool {
						note, _ := arg.(string)
						return strings.HasSuffix(note, ":8") && !strings.Contains(note, ",") // it has the new shards alone
					}))
					return err
				}))
			}
			b := zsetpoll.New(ends, zsetpoll.Shards(2))
			t.Cleanup(func() { _ = b.Close() })
			redistest.Must(t, b.Reshard(ctx, t.Name(), 8))
			redistest.Await(t, "the end of the first shards", func() bool {
				_ = b.Reshard(ctx, t.Name(), 8) // it stops half-way, or ends them
				note := client.Get(ctx, "delayq:{"+t.Name()+"}:shards").Val()
				return strings.HasSuffix(note, ":8") && !strings.Contains(note, ",")
			})
			if pauseLate {
				redistest.Must(t, q.PauseAll(ctx, backend.Pause{}))
			}
			for shards, want := range map[string]int{"2": 0, "8": 8} {
				if keys := client.Keys(ctx, "delayq:{"+t.Name()+"/*/"+shards+".*}:paused").Val(); len(keys) != want {
					t.Errorf("paused: %q, want %d", keys, want)
				}
			}
			redistest.Must(t, q.ResumeAll(ctx), other.Remove(ctx, t.Name()))
		})
	}
}

// dyingAfterPauses returns a client that ends after its first scripts on the pauses of new shards
// that are in the note. Before them change is called.
func dyingAfterPauses(t *testing.T, same *redis.Client, shards string, change func()) *redis.Client {
	t.Helper()
	dying := redistest.Another(t, same)
	var noted, changed atomic.Bool
	var once sync.Once
	dying.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
		switch {
		case noted.Load() && givesPause(cmd, shards):
			once.Do(change)
			changed.Store(true)
		case changed.Load():
			cmd.SetErr(errStopped)
			return errStopped
		}
		err := send()
		if script, ok := cmd.(interface{ Text() (string, error) }); ok {
			if note, _ := script.Text(); strings.HasSuffix(note, ":"+shards) {
				noted.Store(true)
			}
		}
		return err
	}))
	return dying
}

// TestPauseBeforeShardsAreReleased has another program pause a queue, or let it go on, while the one
// that made new shards is about to give them the queue's pause. That program ends then. The later
// change stays.
func TestPauseBeforeShardsAreReleased(t *testing.T) {
	t.Parallel()
	client := testenv.SharedRedis(t).Client(t)
	for name, pause := range map[string]bool{"pause": true, "resume": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := redistest.Deadline(t)
			other := zsetpoll.New(client, zsetpoll.Shards(2))
			t.Cleanup(func() { _ = other.Close() })
			q := open(t, other)
			change := q.ResumeAll
			if pause {
				change = func(ctx context.Context) error { return q.PauseAll(ctx, backend.Pause{}) }
			} else {
				redistest.Must(t, q.PauseAll(ctx, backend.Pause{}))
			}
			var changed error
			dying := dyingAfterPauses(t, client, "8", func() { changed = change(ctx) })
			b := zsetpoll.New(dying, zsetpoll.Shards(2))
			t.Cleanup(func() { _ = b.Close() })
			if err := b.Reshard(ctx, t.Name(), 8); err == nil {
				t.Error("the program did not end")
			}
			redistest.Must(t, changed, other.Reshard(ctx, t.Name(), 8))
			redistest.Must(t, q.Schedule(ctx, ids(0, 20))...)
			if st, err := q.Stats(ctx); err != nil || st.Paused != pause {
				t.Errorf("paused: %v, %v, want %v", st.Paused, err, pause)
			}
			if pause {
				wantsNone(ctx, t, q)
				redistest.Must(t, q.ResumeAll(ctx))
			}
			takeAll(ctx, t, q, 20)
			redistest.Must(t, q.Close(), other.Remove(ctx, t.Name()))
		})
	}
}

// wantsNone checks that a queue hands out nothing.
func wantsNone(ctx context.Context, t *testing.T, q backend.Queue) {
	t.Helper()
	short, cancel := context.WithTimeout(ctx, redistest.Quiet)
	defer cancel()
	if ds, err := q.Receive(short, 100, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("received %d messages, %v", len(ds), err)
	}
}

// withoutNote lets no script on the queue's note alone through while it is away, and calls meet.
func withoutNote(t *testing.T, same *redis.Client, away *atomic.Bool, meet func()) *redis.Client {
	t.Helper()
	client := redistest.Another(t, same)
	key := "delayq:{" + t.Name() + "}:shards"
	client.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
		args := cmd.Args()
		if strings.HasPrefix(cmd.Name(), "eval") && args[2] == 1 && args[3] == key && away.Load() {
			meet()
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		return send()
	}))
	return client
}

// TestOpenWithoutNote opens a queue that has shards while their note cannot be read. Calls do not
// take the queue for one without.
func TestOpenWithoutNote(t *testing.T) {
	t.Parallel()
	ctx := redistest.Deadline(t)
	client := testenv.SharedRedis(t).Client(t)
	b := zsetpoll.New(client, zsetpoll.Shards(4))
	t.Cleanup(func() { _ = b.Close() })
	redistest.Must(t, open(t, b).Schedule(ctx, []backend.Message{{ID: "a", Delay: time.Hour}})...)
	var away atomic.Bool
	away.Store(true)
	plain := zsetpoll.New(withoutNote(t, client, &away, func() {}))
	t.Cleanup(func() { _ = plain.Close() })
	q := open(t, plain)
	redistest.Wants(t, q.Cancel(ctx, []string{"a"}), backend.ErrUnavailable)
	redistest.Wants(t, q.Reschedule(ctx, []backend.Move{{ID: "a"}}), backend.ErrUnavailable)
	_, errs := q.Get(ctx, []string{"a"})
	redistest.Wants(t, errs, backend.ErrUnavailable)
	_, err := q.Stats(ctx)
	_, _, err2 := q.Peek(ctx, "", 1)
	_, _, err3 := q.ListDead(ctx, "", 1)
	_, _, err4 := q.ListDeadIDs(ctx, "", 1)
	_, _, err5 := q.TrimDead(ctx, backend.Retention{MaxCount: 1})
	redistest.Wants(t, []error{err, err2, err3, err4, err5}, backend.ErrUnavailable)
	away.Store(false)
	if st, err := q.Stats(ctx); st.Scheduled != 1 || err != nil {
		t.Errorf("Stats returns %+v, %v", st, err)
	}
	redistest.Must(t, q.Cancel(ctx, []string{"a"})...)
	redistest.Must(t, plain.Close(), b.Close(), zsetpoll.New(client).Remove(ctx, t.Name()))
}

// pushUntil pushes messages of new ids until something is true, and returns the next id.
func pushUntil(ctx context.Context, t *testing.T, q backend.Queue, from int, done func() bool) int {
	t.Helper()
	redistest.Await(t, "pushes", func() bool {
		redistest.Must(t, q.Schedule(ctx, ids(from, 1))...)
		from++
		return done()
	})
	return from
}

// TestPushesWithoutNote has a program push while the note cannot be read. Its pushes go on, and few
// look for the note. When another program has made new shards, those of new ids fail until it is
// read.
func TestPushesWithoutNote(t *testing.T) {
	t.Parallel()
	ctx := redistest.Deadline(t)
	client := testenv.SharedRedis(t).Client(t)
	var away atomic.Bool
	var tries atomic.Int64
	b := zsetpoll.New(withoutNote(t, client, &away, func() { tries.Add(1) }), zsetpoll.Shards(4))
	t.Cleanup(func() { _ = b.Close() })
	q := open(t, b)
	away.Store(true)
	n := pushUntil(ctx, t, q, 0, func() bool { return tries.Load() > 0 })
	began := time.Now()
	n = pushUntil(ctx, t, q, n, func() bool { return time.Since(began) > time.Second })
	for range 200 {
		n = pushUntil(ctx, t, q, n, func() bool { return true })
	}
	if most := 3 * (3 + int64(time.Since(began)/time.Second)); tries.Load() > most {
		t.Errorf("%d pushes tried %d times to read the note, want up to %d", n, tries.Load(), most)
	}
	other := zsetpoll.New(client, zsetpoll.Shards(4))
	t.Cleanup(func() { _ = other.Close() })
	redistest.Must(t, other.Reshard(ctx, t.Name(), 8))
	redistest.Wants(t, q.Schedule(ctx, ids(0, 1)), backend.ErrDuplicate)
	redistest.Wants(t, q.Schedule(ctx, ids(n, 1)), backend.ErrUnavailable)
	special := []backend.Message{{ID: "r", Replace: true}, {ID: "u", UniqueFor: time.Hour}}
	redistest.Wants(t, q.Schedule(ctx, special), backend.ErrUnavailable)
	redistest.Wants(t, q.Cancel(ctx, []string{"unknown"}), backend.ErrUnavailable)
	redistest.Must(t, q.Cancel(ctx, []string{"0"})...)
	away.Store(false)
	redistest.Must(t, q.Schedule(ctx, ids(n, 1))...)
	if got := note(ctx, t, client); got != "4,8" {
		t.Errorf("the note is %q", got)
	}
	takeAll(ctx, t, q, n)
	redistest.Must(t, q.Close(), b.Close(), other.Remove(ctx, t.Name()))
}

// TestPushesWithAStalledNote has the master of the note not reply. No push waits for it for long.
func TestPushesWithAStalledNote(t *testing.T) {
	t.Parallel()
	ctx := redistest.Deadline(t)
	client := testenv.SharedRedis(t).Client(t)
	var stalls atomic.Bool
	var waiting atomic.Int64
	goOn := make(chan struct{})
	stalled := withoutNote(t, client, &stalls, func() { waiting.Add(1); <-goOn })
	b := zsetpoll.New(stalled, zsetpoll.Shards(4))
	t.Cleanup(func() { _ = b.Close() })
	q := open(t, b)
	stalls.Store(true)
	// A push waits, and then one look that no push waits for.
	n := pushUntil(ctx, t, q, 0, func() bool { return waiting.Load() == 2 })
	began := time.Now()
	pushUntil(ctx, t, q, n, func() bool { return time.Since(began) > 2*time.Second })
	if n := waiting.Load(); n != 2 {
		t.Errorf("%d calls wait for the note, want 2", n)
	}
	stalls.Store(false)
	close(goOn)
	redistest.Must(t, q.Close(), b.Close(), zsetpoll.New(client).Remove(ctx, t.Name()))
}

// TestNoteChangesDuringALook has the note change while a worker reads it. The worker reads it again.
func TestNoteChangesDuringALook(t *testing.T) {
	t.Parallel()
	ctx := redistest.Deadline(t)
	server := testenv.Redis(t, testenv.Private())
	raw, client := server.Client(t), server.Client(t)
	key, channel := "delayq:{"+t.Name()+"}:shards", "delayq:{"+t.Name()+"}:wake"
	var stopping atomic.Bool
	var claims atomic.Int64
	reading, goOn := make(chan struct{}), make(chan struct{})
	client.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
		err := send()
		args := cmd.Args()
		if cmd.Name() == "evalsha" && args[2] == 1 && args[3] == key && stopping.Swap(false) {
			close(reading)
			<-goOn
		} else if cmd.Name() == "evalsha" {
			claims.Add(1)
		}
		return err
	}))
	b := zsetpoll.New(client, zsetpoll.Shards(2), zsetpoll.Poll(time.Minute))
	t.Cleanup(func() { _ = b.Close() })
	q := open(t, b)
	stop := waiting(ctx, t, q)
	channels := func(n int) {
		t.Helper()
		redistest.Await(t, "the channels", func() bool { return len(raw.PubSubChannels(ctx, "*:wake").Val()) == n })
	}
	channels(3)
	stopping.Store(true)
	redistest.Await(t, "a look at the note", func() bool {
		redistest.Must(t, raw.Publish(ctx, channel, 0).Err())
		select {
		case <-reading:
			return true
		default:
			return false
		}
	})
	setNote(ctx, t, raw, func(note string) string { return note + "," + strings.Repeat("9", 15) + ":8" })
	before := claims.Load()
	redistest.Must(t, raw.Publish(ctx, channel, 0).Err())
	redistest.Await(t, "the worker to have heard", func() bool { return claims.Load() > before })
	close(goOn)
	channels(11)
	stop()
}

// TestLooksWhileAShardFails has one of 16 shards fail. An idle worker looks at the others no more than before.
func TestLooksWhileAShardFails(t *testing.T) {
	t.Parallel()
	const shards, seconds = 16, 3
	ctx := redistest.Deadline(t)
	client := testenv.Redis(t, testenv.Private()).Client(t)
	var failing, met atomic.Bool
	var looks atomic.Int64
	client.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
		args := cmd.Args()
		if cmd.Name() != "evalsha" {
			return send()
		}
		if first, _ := args[3].(string); failing.Load() && strings.Contains(first, "/16.0.") {
			met.Store(true)
			cmd.SetErr(io.EOF)
			return io.EOF
		}
		looks.Add(1)
		return send()
	}))
	b := zsetpoll.New(client, zsetpoll.Shards(shards))
	t.Cleanup(func() { _ = b.Close() })
	q := open(t, b)
	stop := waiting(ctx, t, q)
	last, since := int64(-1), time.Now()
	redistest.Await(t, "the first looks at all shards", func() bool {
		if n := looks.Load(); n > last+1 || len(client.PubSubChannels(ctx, "*:wake").Val()) <= shards {
			last, since = n, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	})
	failing.Store(true)
	redistest.Await(t, "the failing shard to be met", func() bool {
		for _, c := range client.PubSubChannels(ctx, "*/16.0.*:wake").Val() {
			redistest.Must(t, client.Publish(ctx, c, time.Now().UnixMilli()).Err())
		}
		return met.Load()
	})
	began, before := time.Now(), looks.Load()
	redistest.Await(t, "some seconds", func() bool { return time.Since(began) > seconds*time.Second })
	if n := looks.Load() - before; float64(n) > 5+2*time.Since(began).Seconds() {
		t.Errorf("an idle worker looked %d times in %v", n, time.Since(began))
	}
	stop()
}
