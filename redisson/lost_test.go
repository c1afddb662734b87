package redisson_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

// A lossy client loses the reply to its next script, and has something happen before that is repeated.
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
	for name, meanwhile := range map[string]func(*place, queue, backend.Delivery){
		"it is held": func(*place, queue, backend.Delivery) {},
		"it is dead": func(p *place, q queue, d backend.Delivery) {
			must(p.t, q.Dead(p.ctx, []backend.Burial{{Lease: d.Lease()}})...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			other := p.openOn(p.backendOn(p.server.Client(t), redisson.WithCodec(redisson.Envelope)))
			client := p.server.Client(t)
			q := p.openOn(p.backendOn(client, redisson.WithCodec(redisson.Envelope)))
			must(t, q.Schedule(p.ctx, []backend.Message{{ID: "before", Delay: time.Hour}})...) // the script is there now
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
