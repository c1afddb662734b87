package script_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// load makes a script of Lua whose prelude is the common one alone.
func load(lua string) *script.Script {
	return script.Load(fstest.MapFS{
		"lua/prelude.lua": {Data: []byte("")},
		"lua/test.lua":    {Data: []byte(lua)},
	}, "test")
}

// setup returns a runner on a key of the test's own, and the client of a real server.
func setup(t *testing.T, hooks ...*hook) *script.Runner {
	t.Helper()
	client := testenv.SharedRedis(t).Client(t)
	for _, h := range hooks {
		client.AddHook(redistest.OnCommand(h.run))
	}
	key := "script:" + t.Name()
	t.Cleanup(func() { _ = client.Del(context.Background(), key).Err() })
	redistest.Must(t, client.Del(t.Context(), key).Err())
	return &script.Runner{Client: client, Keys: []string{key}}
}

// A hook changes the outcome of the first scripts, up to times.
type hook struct {
	times   int32
	before  error // returned instead of sending the script
	after   error // returned instead of the reply, when the script was executed
	scripts atomic.Int32
}

var errCut = errors.New("the test cuts the reply")

func (h *hook) run(cmd redis.Cmder, send func() error) error {
	if cmd.Name() != "evalsha" && cmd.Name() != "eval" {
		return send()
	}
	if h.scripts.Load() < h.times && h.before != nil {
		h.scripts.Add(1)
		return h.before
	}
	err := send()
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return err
	}
	if h.scripts.Add(1) <= h.times && h.after != nil {
		return h.after
	}
	return err
}
