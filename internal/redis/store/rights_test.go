package store_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/fault"
	"github.com/delayq/delayq/internal/redis/queue"
	redissetup "github.com/delayq/delayq/internal/redis/setup"
	"github.com/delayq/delayq/internal/redis/store"
	"github.com/delayq/delayq/internal/testenv"
)

// documented are the rights of all modes together.
func documented(t *testing.T) []string {
	t.Helper()
	return fault.Rights(t, "../../../docs/redis.md", "all", "zsetpoll", "zsetpoll-arbitrate", "zsetpoll-mover", "keyspace")
}

// elsewhere are rights without which every call may succeed, each with its use.
var elsewhere = map[string]string{
	"subscribe": "the hub", "unsubscribe": "the hub", "psubscribe": "the listener of keyspace", "punsubscribe": "the listener of keyspace",
	"info": "the check at the start", "config|get": "the check at the start", "config|set": "keyspace",
	"publish": "a warning: TestPushWithoutPublish", "pexpire": "a warning: a time to live by the server's clock", "zrevrange": "as pexpire",
	"script|load": "a server that does not know the script", "ping": "Arbitrate, which claims by script without", "exec": "as ping", "multi": "as ping",
	"hgetall": "a claim that is sent again", "pttl": "the trigger, by the server's clock", "time": "SEQ at the first message, before any write",
}

// TestWithoutARight runs each call as a user who lacks one of the documented rights. The call
// fails, names the right, and loses nothing; and every documented right is needed by a call.
func TestWithoutARight(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	rights := documented(t)
	for _, lacking := range rights {
		client := userWithout(t, server, lacking, rights)
		failed := 0
		for _, v := range ventures {
			t.Run(lacking+"/"+v.name, func(t *testing.T) {
				if v.lacks(newTrialOn(t, server), client, lacking) {
					failed++
				}
			})
		}
		if failed == 0 && elsewhere[lacking] == "" {
			t.Errorf("nothing needs %s", lacking)
		}
	}
}

// userWithout is the client of a user with these rights but for one.
func userWithout(t *testing.T, server *testenv.RedisServer, lacking string, rights []string) *redis.Client {
	t.Helper()
	return fault.User(t, server, "without-"+lacking, fault.Without(rights, lacking), "~test:*", "&test:*")
}

// lacks reports whether the call failed. One that fails has deleted nothing.
func (v *venture) lacks(tr *trial, client *redis.Client, right string) bool {
	if v.before != nil {
		v.before(tr)
	}
	before := tr.raw.HKeys(tr.ctx, tr.key("messages")).Val()
	err := v.do(tr, tr.over(client))
	if err != nil && !fault.Names(err, right) {
		tr.t.Errorf("without %s: %v", right, err)
	}
	if after := tr.raw.HLen(tr.ctx, tr.key("messages")).Val(); err != nil && after != int64(len(before)) {
		tr.t.Errorf("without %s: the call failed, and of %d messages there are %d: %v", right, len(before), after, err)
	}
	tr.complete(v, errors.Join(errors.New("without "+right), err))
	return err != nil
}

// TestPushWithoutPublish stores a message that may not be announced, and says so in the log alone.
func TestPushWithoutPublish(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	client := userWithout(t, server, "publish", documented(t))
	var log bytes.Buffer
	c := redissetup.Default("test", client)
	c.SetPrefix("test")
	c.Claimer = func(s *store.Store) queue.Claimer { return s.Claim }
	b := redissetup.Backend(c)
	defer func() { _ = b.Close() }()
	q, err := b.Open(t.Context(), "quiet", backend.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for _, ms := range [][]backend.Message{{{ID: "a"}}, {{ID: "b"}, {ID: "a"}}} {
		for i, err := range q.Schedule(t.Context(), ms) {
			if want := ms[i].ID == "a" && len(ms) > 1; errors.Is(err, backend.ErrDuplicate) != want || err != nil && !want {
				t.Errorf("%s: %v", ms[i].ID, err)
			}
		}
	}
	if !strings.Contains(log.String(), "could not be announced") || !strings.Contains(log.String(), "PUBLISH") {
		t.Errorf("the log has %q", log.String())
	}
}
