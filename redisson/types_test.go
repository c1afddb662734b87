package redisson_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

// write puts something of a type under a key, as another program may.
func (p *place) write(kind, key string) {
	p.t.Helper()
	must(p.t, p.raw.Del(p.ctx, key).Err())
	var err error
	switch kind {
	case "string":
		err = p.raw.Set(p.ctx, key, "x", 0).Err()
	case "list":
		err = p.raw.RPush(p.ctx, key, "x").Err()
	case "hash":
		err = p.raw.HSet(p.ctx, key, "x", "y").Err()
	case "set":
		err = p.raw.SAdd(p.ctx, key, "x").Err()
	case "zset":
		err = p.raw.ZAdd(p.ctx, key, redis.Z{Member: "x"}).Err()
	case "stream":
		err = p.raw.XAdd(p.ctx, &redis.XAddArgs{Stream: key, Values: []string{"x", "y"}}).Err()
	}
	must(p.t, err)
}

// A key of the queue that holds something of another program's is named by Open, and by Push on a
// handle that was open before. Nothing is written. What else calls meet is a typed error too.
func TestAKeyHoldsSomethingElse(t *testing.T) {
	t.Parallel()
	keys := []struct{ name, kind string }{
		{"", "list"}, {"times", "zset"}, {"index", "list"}, {"leases", "zset"}, {"held", "hash"}, {"states", "hash"}, {"dead", "zset"},
		{"graves", "hash"}, {"seq", "string"}, {"handed", "list"}, {"payloads", "hash"}, {"quarantine", "zset"},
	}
	for _, key := range keys {
		for _, kind := range []string{"string", "list", "hash", "set", "zset", "stream"} {
			if kind == key.kind {
				continue
			}
			for _, c := range []redisson.Codec{redisson.String, redisson.Envelope} {
				t.Run(fmt.Sprintf("%s is a %s, %s", key.name, kind, c.Name()), func(t *testing.T) {
					t.Parallel()
					p := setup(t)
					b := p.backend(redisson.WithCodec(c))
					early := p.openOn(b)
					p.misuse(p.keyNamed(key.name), kind, b, early)
				})
			}
		}
	}
}

func (p *place) keyNamed(name string) string {
	switch name {
	case "":
		return p.name
	case "times":
		return p.times()
	case "index":
		return p.index()
	default:
		return p.own(name)
	}
}

func (p *place) misuse(key, kind string, b *redisson.Backend, early backend.Queue) {
	p.t.Helper()
	must(p.t, errors.Join(early.Schedule(p.ctx, []backend.Message{{ID: "far", Delay: time.Hour}})...)) // or a sweep would tidy up
	p.write(kind, key)
	before := p.keys()
	refused := func(what string, err error) {
		p.t.Helper()
		var invalid *backend.InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), fmt.Sprintf("the key %q holds a %s", key, kind)) {
			p.t.Errorf("%s: %v", what, err)
		}
	}
	_, err := b.Open(p.ctx, p.name, backend.Options{Logger: slog.New(slog.DiscardHandler)})
	refused("opening", err)
	refused("pushing", errors.Join(early.Schedule(p.ctx, []backend.Message{{ID: "x", Body: []byte("body"), Delay: time.Hour}})...))
	if after := p.keys(); !sameSet(before, after) {
		p.t.Errorf("keys %q, after a refusal %q", before, after)
	}
	if _, err := early.Stats(p.ctx); err != nil && !errors.Is(err, backend.ErrInvalid) {
		p.t.Errorf("counting: %v", err)
	}
	must(p.t, p.raw.Del(p.ctx, key).Err())
	must(p.t, errors.Join(early.Schedule(p.ctx, []backend.Message{{ID: "x", Body: []byte("body")}})...))
	p.takes(early, "body")
}
