package script_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/internal/testenv"
)

// count counts the executions of a script, and returns whether this one knew that it was a
// repetition.
var count = load("redis.call('INCR', KEYS[1])\nreturn RETRY and 1 or 0")

func executed(t *testing.T, r *script.Runner) int {
	t.Helper()
	n, err := r.Client.Get(t.Context(), r.Keys[0]).Int()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRunPassesKeysAndArguments(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.Clock, r.Args = clockwork.NewFakeClockAt(time.UnixMicro(1_700_000_000_123_456)), []any{"all"}
	reply, err := r.Run(t.Context(), load("return {KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]}"), "own")
	want := []any{r.Keys[0], "1700000000123456", "0", "all", "own"}
	if err != nil || !reflect.DeepEqual(reply, want) {
		t.Errorf("got %v, %v, want %v", reply, err, want)
	}
}

func TestCommonLua(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.Clock = clockwork.NewFakeClockAt(time.UnixMicro(1_700_000_000_123_456))
	for lua, want := range map[string]any{
		"return int(NOW)":                                       "1700000000123",
		"return int(NOW_US)":                                    "1700000000123456",
		"return int(after(0))":                                  "1700000000123", // due at once
		"return int(after(1))":                                  "1700000000124", // rounded up
		"return int(after(544))":                                "1700000000124",
		"return int(after(545))":                                "1700000000125",
		"return int(due_of('17', '1000'))":                      "17",
		"return int(due_of('', '1000'))":                        "1700000000125",
		"return int(server_clock() - NOW_US) ~= '0' and 1 or 0": int64(1),
	} {
		if got, err := r.Run(t.Context(), load(lua)); err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", lua, got, err, want)
		}
	}
}

// An error keeps the code that clients go by, and names the command.
func TestErrorNamesTheCommand(t *testing.T) {
	t.Parallel()
	r := setup(t)
	if err := r.Client.Set(t.Context(), r.Keys[0], "text", 0).Err(); err != nil {
		t.Fatal(err)
	}
	_, err := r.Run(t.Context(), load("return named('LLEN', redis.pcall('LLEN', KEYS[1]))"))
	if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), "(LLEN)") || !strings.Contains(err.Error(), "script test") {
		t.Errorf("got %v", err)
	}
}

func TestLostReply(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		cuts     int32
		run      func(*script.Runner) (any, error)
		executed int
		reply    any
		want     error
	}{
		{"first try", 0, func(r *script.Runner) (any, error) { return r.Run(t.Context(), count) }, 1, int64(0), nil},
		{"one reply", 1, func(r *script.Runner) (any, error) { return r.Run(t.Context(), count) }, 2, int64(1), nil},
		{"two replies", 2, func(r *script.Runner) (any, error) { return r.Run(t.Context(), count) }, 3, int64(1), nil},
		{"every reply", 9, func(r *script.Runner) (any, error) { return r.Run(t.Context(), count) }, 3, nil, backend.ErrOutcomeUnknown},
		{"of Again", 1, func(r *script.Runner) (any, error) { return r.Again(t.Context(), time.Now(), count) }, 2, int64(1), nil},
		{"Again itself is a repetition", 0, func(r *script.Runner) (any, error) { return r.Again(t.Context(), time.Now(), count) }, 1, int64(1), nil},
		{"of Once", 1, func(r *script.Runner) (any, error) { return r.Once(t.Context(), count) }, 1, nil, backend.ErrOutcomeUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := setup(t, &hook{times: tt.cuts, after: errCut})
			reply, err := tt.run(r)
			if reply != tt.reply || !errors.Is(err, tt.want) || tt.want == nil && err != nil {
				t.Errorf("got %v, %v, want %v, %v", reply, err, tt.reply, tt.want)
			}
			if n := executed(t, r); n != tt.executed {
				t.Errorf("the script was executed %d times, want %d", n, tt.executed)
			}
		})
	}
}

// A second try is told an age of at least the time since the first.
func TestAgeOfARepeatedScript(t *testing.T) {
	t.Parallel()
	r := setup(t, &hook{times: 1, after: errCut})
	began := time.Now()
	reply, err := r.Run(t.Context(), load("return AGE"))
	if age := time.Duration(script.Int(reply)) * time.Microsecond; err != nil || age <= 0 || age > time.Since(began)+2*time.Second {
		t.Errorf("an age of %v, %v", age, err)
	}
}

type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

// A user may lose a right between two tries. The error says that the first may have been executed.
func TestRefusedAfterALostReply(t *testing.T) {
	t.Parallel()
	r := setup(t, &hook{times: 1, after: errCut})
	const noRight = refusal("NOPERM this user has no permissions to run the 'time' command")
	r.Client.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
		if cmd.Name() == "time" {
			return noRight
		}
		return send()
	}))
	if _, err := r.Run(t.Context(), count); !errors.Is(err, backend.ErrOutcomeUnknown) || !errors.Is(err, noRight) {
		t.Errorf("got %v", err)
	}
}

// A server that is loading its data has executed nothing: the script is tried again, and is no
// repetition.
func TestServerNotReady(t *testing.T) {
	t.Parallel()
	for text, times := range map[string]int32{
		"LOADING Redis is loading the dataset in memory": 5,
		"ASK 3999 127.0.0.1:6381":                        5,
		"MOVED 3999 127.0.0.1:6381":                      2,
		"BUSY Redis is busy running a script.":           2,
		"ERR Error running script (call to f_0): @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.": 2, // before Redis 7
	} {
		t.Run(strings.Fields(text)[0], func(t *testing.T) {
			t.Parallel()
			r := setup(t, &hook{times: times, before: refusal(text)})
			if reply, err := r.Run(t.Context(), count); reply != int64(0) || err != nil {
				t.Errorf("got %v, %v, want a first execution", reply, err)
			}
		})
	}
}

// A script that could not be loaded was not executed: the next try is no repetition.
func TestLoadingIsLost(t *testing.T) {
	t.Parallel()
	r := setup(t)
	var loads atomic.Int32
	r.Client.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
		if cmd.Name() == "script" && loads.Add(1) == 1 {
			return io.EOF
		}
		return send()
	}))
	own := load(fmt.Sprintf("redis.call('INCR', KEYS[1])\nreturn RETRY and 1 or %d - %[1]d", time.Now().UnixMicro()))
	if reply, err := r.Run(t.Context(), own); reply != int64(0) || err != nil || loads.Load() != 2 {
		t.Errorf("got %v, %v after %d tries to load, want a first execution after two", reply, err, loads.Load())
	}
}

func TestServerForgetsScripts(t *testing.T) {
	t.Parallel()
	r := setup(t)
	for range 2 {
		if reply, err := r.Run(t.Context(), count); reply != int64(0) || err != nil {
			t.Fatalf("got %v, %v", reply, err)
		}
		if err := r.Client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if n := executed(t, r); n != 2 {
		t.Errorf("executed %d times", n)
	}
}

// A Cluster's master that has forgotten its scripts executes them again at once while another one is
// silent, long before a connection to that one would time out.
func TestServerForgetsScriptsWhileAnotherIsSilent(t *testing.T) {
	t.Parallel()
	cluster := testenv.RedisCluster(t, testenv.Directive("cluster-require-full-coverage", "no"))
	client := cluster.Client(t, func(o *redis.ClusterOptions) { o.ReadTimeout = 2 * redistest.Patience })
	r := &script.Runner{Client: client, Keys: []string{"script:" + t.Name()}}
	if reply, err := r.Run(t.Context(), count); reply != int64(0) || err != nil {
		t.Fatalf("got %v, %v", reply, err)
	}
	master, err := client.MasterForKey(t.Context(), r.Keys[0])
	redistest.Must(t, err)
	redistest.Must(t, master.ScriptFlush(t.Context()).Err())
	other := slices.IndexFunc(cluster.Addrs(), func(addr string) bool { return addr != master.Options().Addr })
	cluster.Nodes()[other].Pause()
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
	defer cancel()
	if reply, err := r.Run(ctx, count); reply != int64(0) || err != nil {
		t.Errorf("got %v, %v", reply, err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	h := &hook{times: 1 << 20, before: refusal("LOADING Redis is loading the dataset in memory")}
	r := setup(t, h)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := r.Run(ctx, count)
		done <- err
	}()
	redistest.Await(t, "a try", func() bool { return h.scripts.Load() > 0 })
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	case <-time.After(8 * time.Second): // tries go on for ten
		t.Error("Run does not return when its context is cancelled")
	}
}

// some returns outcomes for its first two items only, and notes them.
var some = load(`
local outcomes = {}
for i = 4, math.min(5, #ARGV) do
  redis.call('RPUSH', KEYS[1], ARGV[3] .. ARGV[i])
  outcomes[#outcomes + 1] = ARGV[i] == 'bad' and 0 or 1
end
return outcomes`)

func TestEachRunsAgainForTheRest(t *testing.T) {
	t.Parallel()
	r := setup(t)
	items := []string{"a", "b", "c", "bad", "e"}
	errs := script.Each(t.Context(), r, some, items, []any{"+"}, func(args []any, it string) []any { return append(args, it) },
		script.OneOr(backend.ErrLeaseLost))
	for i, it := range items {
		if lost := errors.Is(errs[i], backend.ErrLeaseLost); lost != (it == "bad") || !lost && errs[i] != nil {
			t.Errorf("%s: %v", it, errs[i])
		}
	}
	done, err := r.Client.LRange(t.Context(), r.Keys[0], 0, -1).Result()
	if want := []string{"+a", "+b", "+c", "+bad", "+e"}; err != nil || !reflect.DeepEqual(done, want) {
		t.Errorf("the script ran on %v, %v, want %v", done, err, want)
	}
}

func TestExtend(t *testing.T) {
	t.Parallel()
	r := setup(t)
	sc := load(`
local ends = {}
for i = 4, #ARGV do
  ends[#ends + 1] = ARGV[i] == 'gone' and '0' or int(tonumber(ARGV[3]) / 1000)
end
return ends`)
	ls := make([]backend.Lease, script.ChunkMessages+1)
	for i := range ls {
		ls[i].ID = "held"
	}
	ls[1].ID, ls[len(ls)-1].ID = "gone", "gone"
	byID := func(args []any, l backend.Lease) []any { return append(args, l.ID) }
	ends, errs := script.Extend(t.Context(), r, sc, ls, time.Minute, byID)
	for i, l := range ls {
		want, lost := time.UnixMilli(60_000), l.ID == "gone"
		if lost {
			want = time.Time{}
		}
		if !ends[i].Equal(want) || errors.Is(errs[i], backend.ErrLeaseLost) != lost {
			t.Fatalf("lease %d (%s): %v, %v", i, l.ID, ends[i], errs[i])
		}
	}
	ends, errs = script.Extend(t.Context(), r, load("return redis.error_reply('ERR no')"), ls[:2], time.Minute, byID)
	if len(ends) != 2 || !ends[0].IsZero() || errs[0] == nil || errs[1] == nil {
		t.Errorf("a script that fails: %v, %v", ends, errs)
	}
}

func TestListDead(t *testing.T) {
	t.Parallel()
	r := setup(t)
	sc := load("return {'17', ARGV[3], ARGV[4], ARGV[5], 'b'}")
	var got []any
	next, err := script.ListDead(t.Context(), r, sc, "9007199254740991", 10, true, 2, func(f []any) { got = append(got, f...) })
	if want := []any{"9007199254740991", "10", "1", "b"}; err != nil || next != "17" || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %q, %v, want %v", got, next, err, want)
	}
	for _, cursor := range []string{"x", "-1", "1.5", "9007199254740992"} {
		if _, err := script.ListDead(t.Context(), r, sc, cursor, 10, false, 2, nil); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
	if _, err := script.ListDead(t.Context(), r, sc, "", 10, false, 3, nil); err == nil {
		t.Error("a reply of the wrong length is accepted")
	}
}

func TestPurge(t *testing.T) {
	t.Parallel()
	r := setup(t)
	if n, err := script.Purge(t.Context(), r, load("return 7")); n != 7 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if _, err := script.Purge(t.Context(), r, load("return 'seven'")); err == nil {
		t.Error("a text is no count")
	}
}

// A server without replicas cannot confirm that one has a message: the script was executed, and
// once.
func TestUnconfirmed(t *testing.T) {
	t.Parallel()
	r := setup(t).Confirmed(script.Confirmation{Replicas: 1, Within: 20 * time.Millisecond})
	if err := r.CanConfirm(t.Context()); err != nil {
		t.Fatalf("WAIT is refused: %v", err)
	}
	if _, err := r.Run(t.Context(), count); !errors.Is(err, backend.ErrUnconfirmed) {
		t.Errorf("got %v", err)
	}
	if n := executed(t, r); n != 1 {
		t.Errorf("executed %d times", n)
	}
}

// A script that was executed is not tried again where the server then refuses to wait.
func TestWaitIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"BUSY Redis is busy running a script.", "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"} {
		r := setup(t).Confirmed(script.Confirmation{Replicas: 1, Within: 20 * time.Millisecond})
		r.Client.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
			if cmd.Name() == "wait" {
				return refusal(text)
			}
			return send()
		}))
		if _, err := r.Run(t.Context(), count); !errors.Is(err, backend.ErrUnconfirmed) || errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("%s: got %v", text, err)
		}
		if n := executed(t, r); n != 1 {
			t.Errorf("%s: executed %d times", text, n)
		}
	}
}

// A confirmation needs a client with connections of its own, and numbers in range.
func TestCannotConfirm(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.Client = nil
	r.Confirm = script.Confirmation{Disk: true, Within: time.Second}
	if err := r.CanConfirm(t.Context()); !errors.Is(err, backend.ErrInvalid) {
		t.Errorf("a client of an unknown kind: %v", err)
	}
	for _, c := range []script.Confirmation{
		{}, {Replicas: -1, Within: time.Second}, {Replicas: 101, Within: time.Second},
		{Replicas: 1}, {Disk: true, Within: time.Hour},
	} {
		if err := c.Valid("Wait"); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := (script.Confirmation{Disk: true, Within: time.Minute}).Valid("Wait"); err != nil {
		t.Error(err)
	}
}

func TestUnexpectedIsShort(t *testing.T) {
	t.Parallel()
	if err := script.Unexpected(count, strings.Repeat("x", 1<<20)); len(err.Error()) > 300 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
	if _, _, ok := script.NewClaim([]any{"1"}, 2); ok {
		t.Error("a reply without the next event is accepted")
	}
	c, values, ok := script.NewClaim([]any{"1700000000123456", "-1", "rest"}, 2)
	if !ok || len(values) != 3 || !c.Now.Equal(time.UnixMicro(1_700_000_000_123_456)) || !c.Next.IsZero() {
		t.Error(fmt.Sprint(c, values, ok))
	}
}
