package redisson_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/redisson"
)

// write puts something of a type under a key, as another program may.
func (p *place) write(kind, key string) {
	p.t.Helper()
	redistest.Write(p.ctx, p.t, p.raw, kind, key)
}

// A key of the queue that holds another program's data is named by Open and by Push: at the first
// of a handle, at each that uses the key, and at all others a second later at most. Nothing is
// written. Other calls return a typed error too.
func TestForeignDataUnderAKey(t *testing.T) {
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
					used := slices.Contains(usedByPush[c == redisson.Envelope], key.name)
					p.misuse(p.keyNamed(key.name), kind, used, c)
				})
			}
		}
	}
}

// usedByPush has the keys that a push reads or writes, for envelopes and for queues shared with
// Java.
var usedByPush = map[bool][]string{true: {"times", "index", "seq", "states", "held"}, false: {"times", "index", "seq"}}

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

func (p *place) misuse(key, kind string, used bool, c redisson.Codec) {
	p.t.Helper()
	b := p.backend(redisson.WithCodec(c))
	clock := clockwork.NewFakeClockAt(time.Now())
	early, err := b.Open(p.ctx, p.name, backend.Options{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	must(p.t, err)
	unused := p.open(redisson.WithCodec(c))
	later := func(q backend.Queue, id string) error {
		return errors.Join(q.Schedule(p.ctx, []backend.Message{{ID: id, Body: []byte("later"), Delay: time.Hour}})...)
	}
	must(p.t, later(early, "far")) // or a sweep would tidy up
	p.write(kind, key)
	refused := func(what string, err error) {
		p.t.Helper()
		var invalid *backend.InvalidError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), fmt.Sprintf("the key %q holds a %s", key, kind)) {
			p.t.Errorf("%s: %v", what, err)
		}
	}
	before := p.keys()
	_, err = b.Open(p.ctx, p.name, redistest.Silent())
	refused("opening", err)
	refused("the first push of a handle", later(unused, "first"))
	if err := later(early, "soon"); used {
		refused("a push that uses the key", err)
	} else {
		must(p.t, err)
	}
	clock.Advance(time.Second)
	refused("a push a second later", later(early, "second"))
	refused("the next push", later(early, "third"))
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
