package redisson_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

func TestOpenReportsBadOptions(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // nothing is sent
	t.Cleanup(func() { must(t, client.Close()) })
	for want, b := range map[string]*redisson.Backend{
		"invalid client <nil>: allowed is a go-redis client":                                        redisson.New(nil),
		"invalid redisson option <nil>: allowed is the result of WithCodec, Format":                 redisson.New(client, nil),
		"invalid redisson.WithCodec <nil>: allowed is a codec, such as redisson.String":             redisson.New(client, redisson.WithCodec(nil)),
		"invalid redisson.Format 3: allowed is V2, V1 or Both":                                      redisson.New(client, redisson.Format(redisson.Both+1)),
		"invalid redisson.Format -1: allowed is V2, V1 or Both":                                     redisson.New(client, redisson.Format(-1)),
		"invalid redisson.NamePrefix \"a\\x00\": allowed is up to 256 bytes without NUL":            redisson.New(client, redisson.NamePrefix("a\x00")),
		strings.Repeat("x", 64) + "\"… (257 bytes): allowed is up to 256 bytes without NUL":         redisson.New(client, redisson.NamePrefix(strings.Repeat("x", 257))),
		"invalid redisson.Sweep 9.999999ms: allowed is 10ms to 1m":                                  redisson.New(client, redisson.Sweep(10*time.Millisecond-1)),
		"invalid redisson.Sweep 1m0.000000001s: allowed is 10ms to 1m":                              redisson.New(client, redisson.Sweep(time.Minute+1)),
		"invalid redisson.Sweep 0s: allowed is 10ms to 1m":                                          redisson.New(client, redisson.Sweep(0), redisson.Sweep(time.Second)),
		"invalid redisson.Format 9: allowed is V2, V1 or Both\ninvalid redisson.Sweep 0s: allowed ": redisson.New(client, redisson.Format(9), redisson.Sweep(0)),
	} {
		_, opened := b.Open(t.Context(), "q", backend.Options{Logger: slog.New(slog.DiscardHandler)})
		_, inspected := b.Inspect(t.Context(), "q")
		_, _, listed := b.Quarantine("q").List(t.Context(), "", 1)
		for _, err := range []error{opened, inspected, listed} {
			if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		must(t, b.Close())
	}
}

func TestTraits(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	t.Cleanup(func() { must(t, client.Close()) })
	shared := backend.Traits{
		Name: "redisson", Resolution: time.Millisecond, Sweep: time.Second, AnyName: true,
		Lacks: backend.Lacking(backend.OwnIDs, backend.Deduplicating, backend.Headers, backend.ChangingHeaders, backend.UniqueWindows),
	}
	if got := redisson.New(client).Traits(); got != shared {
		t.Errorf("traits %+v, want %+v", got, shared)
	}
	alone := backend.Traits{
		Name: "redisson", Resolution: time.Millisecond, Sweep: time.Minute, AnyName: true,
		Lacks: backend.Lacking(backend.ChangingHeaders, backend.UniqueWindows),
	}
	if got := redisson.New(client, redisson.WithCodec(redisson.Envelope), redisson.Sweep(time.Minute)).Traits(); got != alone {
		t.Errorf("traits %+v, want %+v", got, alone)
	}
}

// A message that a shared queue cannot keep is rejected, and affects no other message.
func TestPushOfMessagesThatJavaCannotHold(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open(redisson.WithCodec(redisson.Kryo5String))
	errs := q.Schedule(p.ctx, []backend.Message{
		{Body: []byte("headers"), Headers: map[string]string{"k": "v"}}, {Body: []byte("good")}, {Body: []byte("\xff")},
	})
	if len(errs) != 3 || errs[1] != nil {
		t.Fatalf("got %v", errs)
	}
	wants(t, errs[:1], backend.ErrUnsupported)
	wants(t, errs[2:], backend.ErrInvalid)
	p.takes(q, "good")
	p.empty()
}

func TestListingsReject(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.backend()
	for want, call := range map[string]struct {
		queue, cursor string
		limit         int
	}{
		"invalid limit 0: allowed is 1 to 1000":                                {"q", "", 0},
		"invalid limit 1001: allowed is 1 to 1000":                             {"q", "", 1001},
		"invalid cursor \"x\": allowed is one that a listing returned":         {"q", "x", 1},
		"invalid cursor \"-1\": allowed is one that a listing returned":        {"q", "-1", 1},
		"invalid queue name \"\": allowed is 1 to 200 bytes":                   {"", "", 1},
		strings.Repeat("q", 64) + "\"… (201 bytes): allowed is 1 to 200 bytes": {strings.Repeat("q", 201), "", 1},
	} {
		_, _, pending := b.Pending(p.ctx, call.queue, call.cursor, call.limit)
		_, _, listed := b.Quarantine(call.queue).List(p.ctx, call.cursor, call.limit)
		for _, err := range []error{pending, listed} {
			if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		}
	}
	q := p.open()
	for _, cursor := range []string{"x", "-1", "1e3", strings.Repeat("9", 30)} {
		if _, _, err := q.ListDead(p.ctx, cursor, 1); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("cursor %q: got %v", cursor, err)
		}
	}
}
