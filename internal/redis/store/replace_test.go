package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/redis/store"
)

func (b *bench) replacing(body string) []backend.Message {
	return []backend.Message{{ID: "a", Body: []byte(body), Delay: time.Hour, Replace: true}}
}

// hasBody checks the one message that is stored.
func (b *bench) hasBody(want string) {
	b.t.Helper()
	ms, errs := b.Get(b.ctx, []string{"a"})
	b.all(errs)
	if string(ms[0].Body) != want {
		b.t.Errorf("the message has the body %q, want %q", ms[0].Body, want)
	}
	if n := b.raw.ZCard(b.ctx, b.key("due")).Val(); n != 1 {
		b.t.Errorf("%d messages wait, want 1", n)
	}
}

// A push with Replace whose reply is lost recognizes what it has stored.
func TestReplaceLosesItsReply(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.all(b.losingSecond(b.nothingMeanwhile).Schedule(b.ctx, b.replacing("first")))
	b.hasBody("first")
	b.all(b.losingSecond(b.nothingMeanwhile).Schedule(b.ctx, b.replacing("second")))
	b.hasBody("second")
	bounded := b.replacing("third")
	bounded[0].MaxWait = time.Minute
	b.all(b.losingSecond(b.nothingMeanwhile).Schedule(b.ctx, bounded))
	b.hasBody("third")
}

// TestReplaceLosesItsReplyToANewerOne has another push replace a message before its push is repeated.
func TestReplaceLosesItsReplyToANewerOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	newer := func() { b.all(b.Schedule(b.ctx, b.replacing("newer"))) }
	b.unknown(b.losingSecond(newer).Schedule(b.ctx, b.replacing("older")))
	b.hasBody("newer")
	b.unknown(b.losingSecond(newer).Schedule(b.ctx, b.replacing("older")))
	b.hasBody("newer")
	b.all(b.losing(newer).Schedule(b.ctx, b.replacing("newest"))) // only its look is lost
	b.hasBody("newest")
}

// losingSecond loses the reply to the second script: the first one only looks.
func (b *bench) losingSecond(meanwhile func()) *store.Store {
	f := redistest.LostReply(meanwhile)
	client := redistest.Another(b.t, b.raw)
	client.AddHook(redistest.OnCommand(skipFirst("evalsha", f.Hook())))
	return b.with(client)
}

// A repeated push stores nothing where the message has gone since: it may have been a newer one.
func TestReplaceLosesItsReplyAndTheMessage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	gone := func() {
		b.all(b.Schedule(b.ctx, b.replacing("newer")))
		b.all(b.Cancel(b.ctx, []string{"a"}))
	}
	for range 2 {
		b.unknown(b.losingSecond(gone).Schedule(b.ctx, b.replacing("older")))
		b.empty()
		if empty, err := b.Empty(b.ctx); !empty || err != nil {
			t.Errorf("keys are left, and %v", err)
		}
		b.all(b.Schedule(b.ctx, b.replacing("first"))) // the second replaces one
	}
}

// A push that did not arrive replaces the message that it has seen.
func TestReplaceIsRepeatedWhereItDidNotArrive(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.all(b.Schedule(b.ctx, b.replacing("first")))
	client := redistest.Another(t, b.raw)
	f := &redistest.Fault{At: "evalsha", Unsent: true}
	client.AddHook(redistest.OnCommand(skipFirst("evalsha", f.Hook())))
	b.all(b.with(client).Schedule(b.ctx, b.replacing("second")))
	b.hasBody("second")
}

// TestReplaceArrivesLate executes the script of a push a second time, when another push has replaced its
// message: as a server does that stood still and then finds a request of a connection that is gone.
func TestReplaceArrivesLate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.all(b.Schedule(b.ctx, b.replacing("first")))
	var late []any
	client := redistest.Another(t, b.raw)
	client.AddHook(redistest.OnCommand(keepLast("evalsha", &late)))
	b.all(b.with(client).Schedule(b.ctx, b.replacing("older")))
	b.all(b.Schedule(b.ctx, b.replacing("newer")))
	if err := b.raw.Do(b.ctx, late...).Err(); err != nil {
		t.Fatal(err)
	}
	b.hasBody("newer")
}

// TestMessagesWithoutReplaceAreStoredAsBefore wants nothing of it in their records.
func TestMessagesWithoutReplaceAreStoredAsBefore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.all(b.Schedule(b.ctx, []backend.Message{{ID: "a", Delay: time.Hour}}))
	plain := b.raw.HGet(b.ctx, b.key("messages"), "\x01a").Val()
	b.all(b.Schedule(b.ctx, []backend.Message{{ID: "a", Delay: time.Hour, Replace: true}}))
	replaced := b.raw.HGet(b.ctx, b.key("messages"), "\x01a").Val()
	if len(plain) != 7+1 || len(replaced) != len(plain) {
		t.Errorf("the records have %d and %d bytes, want %d", len(plain), len(replaced), 7+1)
	}
	if strings.Contains(replaced, backend.FirstPushHeader) {
		t.Error("the time of the first push is stored without MaxWait")
	}
	if n := b.raw.Exists(b.ctx, b.key("gens"), b.key("unique")).Val(); n != 0 {
		t.Error("a replacement has an entry of its own")
	}
}

// skipFirst passes the first command of a name by a hook. A script that the server has not loaded yet
// does not count.
func skipFirst(name string, h redis.Hook) func(redis.Cmder, func() error) error {
	passed := false
	return func(cmd redis.Cmder, send func() error) error {
		if cmd.Name() != name || passed {
			return h.ProcessHook(func(context.Context, redis.Cmder) error { return send() })(context.Background(), cmd)
		}
		err := send()
		passed = err == nil
		return err
	}
}

// keepLast keeps the arguments of the last command of a name.
func keepLast(name string, args *[]any) func(redis.Cmder, func() error) error {
	return func(cmd redis.Cmder, send func() error) error {
		if cmd.Name() == name {
			*args = cmd.Args()
		}
		return send()
	}
}
