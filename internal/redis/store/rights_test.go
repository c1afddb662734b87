package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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
// fails, names the right, and changes nothing: with the right, the same call succeeds. Every
// documented right is needed by a call.
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

// lacks reports whether the call failed. After one that fails, the same call is made with all
// rights.
func (v *venture) lacks(tr *trial, client *redis.Client, right string) bool {
	if v.before != nil {
		v.before(tr)
	}
	before := tr.content()
	err := v.do(tr, tr.over(client))
	how := errors.Join(errors.New("without "+right), err)
	if err == nil {
		tr.complete(v, tr.Claim, how)
		return false
	}
	if !fault.Names(err, right) {
		tr.t.Error(how)
	}
	v.unchanged(tr, before, how)
	return true
}

// unchanged checks that a call that failed has changed nothing, and makes it again.
func (v *venture) unchanged(tr *trial, before map[string]string, how error) {
	tr.t.Helper()
	if after := tr.content(); !v.moves && !maps.Equal(before, after) {
		tr.t.Errorf("%v: it failed, and changed\n%q to\n%q", how, before, after)
	}
	if err := v.do(tr, tr.Store); err != nil {
		tr.t.Errorf("%v: again: %v", how, err)
	}
	stored := *v
	if strings.HasPrefix(v.name, "push") {
		stored.gone = false
	}
	tr.complete(&stored, tr.Claim, how)
}

// TestAKeyOfAnotherType runs each call on a queue where another program has made one of the keys. A
// call that fails changes nothing: without that key, the same call succeeds.
func TestAKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	for _, v := range ventures {
		for _, key := range []string{"due", "messages", "leases", "held", "gens", "dead", "graves", "seq", "ready", "unique"} {
			if v.name == "purge" { // it deletes whatever is there
				continue
			}
			t.Run(v.name+"/"+key, func(t *testing.T) {
				t.Parallel()
				v.mistyped(newTrial(t), key)
			})
		}
	}
}

// mistyped does not try a key that holds something of the queue's.
func (v *venture) mistyped(tr *trial, key string) {
	if v.before != nil {
		v.before(tr)
	}
	before := tr.content()
	if tr.raw.Exists(tr.ctx, tr.key(key)).Val() == 1 {
		return
	}
	tr.all([]error{tr.raw.XAdd(tr.ctx, &redis.XAddArgs{Stream: tr.key(key), Values: []string{"of", "another"}}).Err()})
	err := v.do(tr, tr.Store)
	if tr.raw.Type(tr.ctx, tr.key(key)).Val() == "stream" {
		tr.all([]error{tr.raw.Del(tr.ctx, tr.key(key)).Err()})
	}
	how := errors.Join(fmt.Errorf("%s is a stream", key), err)
	if err == nil {
		tr.complete(v, tr.Claim, how)
		return
	}
	if !errors.Is(err, backend.ErrInvalid) {
		tr.t.Error(how)
	}
	v.unchanged(tr, before, how)
}

// content reads the queue's keys but for the counter.
func (tr *trial) content() map[string]string {
	tr.t.Helper()
	all := make(map[string]string)
	for _, key := range tr.left() {
		switch tr.raw.Type(tr.ctx, key).Val() {
		case "hash":
			all[key] = fmt.Sprintf("%q", tr.raw.HGetAll(tr.ctx, key).Val()) // in the order of the fields
		case "zset":
			all[key] = fmt.Sprintf("%v", tr.raw.ZRangeWithScores(tr.ctx, key, 0, -1).Val())
		case "list":
			all[key] = fmt.Sprintf("%q", tr.raw.LRange(tr.ctx, key, 0, -1).Val())
		}
	}
	return all
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
