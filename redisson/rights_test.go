package redisson_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/fault"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

func documented(t *testing.T) []string {
	t.Helper()
	return fault.Rights(t, "../docs/redisson.md", "redisson")
}

// userWithout is the client of a user who lacks one of the documented rights.
func userWithout(t *testing.T, server *testenv.RedisServer, lacking string) *redis.Client {
	t.Helper()
	return fault.User(t, server, "without-"+lacking, fault.Without(documented(t), lacking), "~*test:*", "&*test:*")
}

// elsewhere are the rights that no call here needs, each with its use.
var elsewhere = map[string]string{
	"subscribe": "the hub", "unsubscribe": "the hub", "ping": "the hub", "info": "the check at the start", "config|get": "the check at the start",
	"publish": "a warning: TestPushWithoutPublish", "script|load": "a server that does not know the script", "hrandfield": "forgetting states, which waits",
	"del": "keys of an empty queue stay", "lpos": "HANDED is trimmed later without", "set": "the first number, by the server's clock",
}

// TestWithoutARight runs each call as a user who lacks one of the documented rights. A call that
// fails names the right and changes nothing: with the right, the same call succeeds. Every
// documented right is needed by a call.
func TestWithoutARight(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	for _, lacking := range documented(t) {
		client := userWithout(t, server, lacking)
		failed := 0
		for _, c := range bothWays {
			for _, v := range ventures {
				t.Run(lacking+"/"+c.Name()+"/"+v.name, func(t *testing.T) {
					if v.lacks(newTestQueue(t, server, c), client, lacking) {
						failed++
					}
				})
			}
		}
		if failed == 0 && elsewhere[lacking] == "" {
			t.Errorf("nothing needs %s", lacking)
		}
	}
}

// lacks reports whether the call failed. After one that fails, the same call is made with all
// rights.
func (v *venture) lacks(tr *testQueue, client *redis.Client, right string) bool {
	if v.before != nil {
		v.before(tr)
	}
	before := tr.content()
	err := v.do(tr.workerOn(client), tr)
	how := errors.Join(errors.New("without "+right), err)
	if err != nil && !fault.Names(err, right) {
		tr.t.Error(how)
	}
	if err != nil {
		v.unchanged(tr, before, how)
	}
	tr.complete(v.done(), how)
	return err != nil
}

// unchanged checks that a call that failed has changed nothing, and makes it again.
func (v *venture) unchanged(tr *testQueue, before map[string]string, how error) {
	tr.t.Helper()
	if after := tr.content(); !v.moves && !maps.Equal(before, after) {
		tr.t.Errorf("%v: it failed, and changed\n%q to\n%q", how, before, after)
	}
	if err := v.do(tr.worker, tr); err != nil {
		tr.t.Errorf("%v: again: %v", how, err)
	}
}

// content reads the queue's keys but for the counter.
func (tr *testQueue) content() map[string]string {
	tr.t.Helper()
	all := make(map[string]string)
	for _, key := range tr.keys() {
		switch tr.raw.Type(tr.ctx, key).Val() {
		case "hash":
			all[key] = fmt.Sprintf("%q", tr.raw.HGetAll(tr.ctx, key).Val()) // in the order of the fields
		case "zset":
			all[key] = fmt.Sprintf("%v", tr.raw.ZRangeWithScores(tr.ctx, key, 0, -1).Val())
		case "list":
			all[key] = fmt.Sprintf("%q", tr.list(key))
		}
	}
	return all
}

// done are the errors allowed of a call that may have done its work.
func (v *venture) done() *venture {
	done := *v
	if strings.HasPrefix(v.name, "claim") {
		done.most++
	}
	return &done
}

// TestAKeyOfAnotherType runs each call on a queue where another program has replaced one of the
// keys. A call that fails changes nothing under the other keys: without that key, the same call
// succeeds.
func TestAKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	for _, c := range bothWays {
		for _, v := range ventures {
			for _, key := range []string{"", "times", "index", "leases", "held", "states", "dead", "graves", "seq", "handed", "payloads", "quarantine"} {
				if v.name == "purge" { // it deletes whatever is there
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/%s", c.Name(), v.name, key), func(t *testing.T) {
					t.Parallel()
					v.mistyped(newTestQueue(t, testenv.SharedRedis(t), c), key)
				})
			}
		}
	}
}

// mistyped does not try a key that holds something of the queue's.
func (v *venture) mistyped(tr *testQueue, key string) {
	if v.before != nil {
		v.before(tr)
	}
	before, name := tr.content(), tr.keyNamed(key)
	if tr.raw.Exists(tr.ctx, name).Val() == 1 {
		return
	}
	kind := "stream"
	if key == "states" {
		kind = "set"
	}
	tr.write(kind, name)
	err := v.do(tr.worker, tr)
	if tr.raw.Type(tr.ctx, name).Val() == kind {
		must(tr.t, tr.raw.Del(tr.ctx, name).Err())
	}
	how := errors.Join(fmt.Errorf("%s is a %s", key, kind), err)
	if err != nil {
		v.unchanged(tr, before, how)
	}
	tr.complete(v.done(), how)
}

// TestPushWithoutPublish stores a message that may not be announced, and says so in the log alone.
func TestPushWithoutPublish(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	for _, c := range bothWays {
		t.Run(c.Name(), func(t *testing.T) {
			p := on(t, server)
			p.name = "test:" + p.name
			var log bytes.Buffer
			q := p.openLogging(p.backendOn(userWithout(t, server, "publish"), redisson.WithCodec(c)), slog.New(slog.NewTextHandler(&log, nil)))
			for _, ms := range [][]backend.Message{{{ID: "a", Delay: time.Hour}}, {{ID: "b", Delay: time.Minute}, {ID: "c"}}} {
				must(t, q.Schedule(p.ctx, ms)...)
			}
			if !strings.Contains(log.String(), "could not be announced") || !strings.Contains(log.String(), "PUBLISH") {
				t.Errorf("the log has %q", log.String())
			}
			if s := p.stats(q); s.Scheduled != 2 || s.Ready+s.InFlight != 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}
