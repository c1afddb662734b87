package redisson_test

import (
	"context"
	"io"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

// A lossy client loses the reply to its next script, and has something happen before that is
// repeated.
type lossy struct {
	lose      sync.Once
	meanwhile func()
}

func (*lossy) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*lossy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *lossy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err != nil || cmd.Name() != "evalsha" {
			return err
		}
		l.lose.Do(func() {
			l.meanwhile()
			err = io.EOF
			cmd.SetErr(err)
		})
		return err
	}
}

// A push whose reply is lost is no duplicate of itself, wherever its message has got to.
func TestScheduleLosesItsReply(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(*place, backend.Queue, backend.Delivery){
		"it is held": func(*place, backend.Queue, backend.Delivery) {},
		"it is dead": func(p *place, q backend.Queue, d backend.Delivery) {
			must(p.t, q.Dead(p.ctx, []backend.DeadLetterRequest{{Lease: d.Lease()}})...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			other := p.openOn(p.backendOn(p.server.Client(t), redisson.WithCodec(redisson.Envelope)))
			client := p.server.Client(t)
			q := p.openOn(p.backendOn(client, redisson.WithCodec(redisson.Envelope)))
			// the script is there now
			must(t, q.Schedule(p.ctx, []backend.Message{{ID: "before", Delay: time.Hour}})...)
			client.AddHook(&lossy{meanwhile: func() {
				ds, err := other.Receive(p.ctx, 1, time.Minute)
				if err != nil || len(ds) != 1 {
					t.Fatalf("got %v, %v", ds, err)
				}
				meanwhile(p, other, ds[0])
			}})
			must(t, q.Schedule(p.ctx, []backend.Message{{ID: "a", Body: []byte("body")}})...)
		})
	}
}

// A claim whose reply is lost is repeated, and returns what its first try has leased in the order
// of the queue.
func TestClaimLosesItsReply(t *testing.T) {
	t.Parallel()
	for name, codec := range map[string]redisson.Codec{"shared": redisson.Bytes, "envelopes": redisson.Envelope} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			client := p.server.Client(t)
			q := p.openOn(p.backendOn(client, redisson.WithCodec(codec)))
			const n = 50
			at := time.Now().Add(-time.Minute)
			for i := range n { // the last is due first
				must(t, q.Schedule(p.ctx, []backend.Message{{ID: lettered(codec, i), Body: []byte{byte(i)}, Due: at.Add(-time.Duration(i/2) * time.Second)}})...)
			}
			ds, err := q.Receive(p.ctx, 1, time.Minute) // the script is there now
			if err != nil || ds[0].Body[0] != n-2 {
				t.Fatalf("got %v, %v", ds, err)
			}
			client.AddHook(&lossy{meanwhile: func() {}})
			// a claim stops when it takes long
			if ds, err = q.Receive(p.ctx, n, time.Minute); err != nil || len(ds) < 3 {
				t.Fatalf("got %d messages, %v", len(ds), err)
			}
			for i, d := range ds {
				if want := byte(n - 2 - (i+1)/2*2 + (i+1)%2); d.Body[0] != want {
					t.Fatalf("message %d came in place %d, want %d", d.Body[0], i, want)
				}
			}
		})
	}
}

// lettered are ids that sort neither as they are pushed nor as they are due.
func lettered(c redisson.Codec, i int) string {
	if c != redisson.Envelope {
		return ""
	}
	return string(rune('a'+i*7%26)) + strconv.Itoa(i)
}
