package redisson_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/redisson"
)

// found returns the queue's findings, by topic.
func (p *place) found(b *redisson.Backend) map[string]string {
	p.t.Helper()
	fs, err := b.ExamineQueue(p.ctx, p.name)
	must(p.t, err)
	found := make(map[string]string)
	for _, f := range fs {
		found[f.About] = fmt.Sprint(f.Severity, ": ", f.Text)
	}
	return found
}

func TestExamineQueue(t *testing.T) {
	t.Parallel()
	soon := time.Now().Add(time.Hour)
	for name, tt := range map[string]struct {
		opts        []redisson.Option
		prepare     func(p *place)
		about, want string
	}{
		"default":       {about: "member format", want: "ok: "},
		"V2 on nothing": {opts: []redisson.Option{redisson.Format(redisson.V2)}, about: "member format", want: "note: a push writes members of V2: a transfer of Redisson 3.21.0 and older stops"},
		"V1 on nothing": {opts: []redisson.Option{redisson.Format(redisson.V1)}, about: "member format", want: "note: a push writes members of V1: a transfer of Redisson 3.21.1 and newer stops"},
		"V2 by force":   {opts: []redisson.Option{redisson.Format(redisson.V2), redisson.AnyFormat()}, about: "member format", want: "warning: a push writes members of V2"},
		"both layouts": {prepare: func(p *place) {
			p.offer(javaMember(redisson.V1, "a"), soon)
			p.offer(javaMember(redisson.V2, "b"), soon)
		}, about: "member format", want: "warning: 1 members of V1 and 1 of V2"},
		"text":             {prepare: func(p *place) { p.offer(javaMember(redisson.V2, "a"), soon) }, about: "codec", want: "ok: "},
		"Jackson's":        {prepare: func(p *place) { p.offer(javaMember(redisson.V2, `"a"`), soon) }, about: "codec", want: "warning: messages begin as those do that Java writes with JsonJacksonCodec"},
		"Marshalling's":    {prepare: func(p *place) { p.offer(javaMember(redisson.V2, "\x04\x3e\x05hello"), soon) }, about: "codec", want: "warning: messages begin as those do that Java writes with MarshallingCodec"},
		"Kryo's":           {prepare: func(p *place) { p.offer(javaMember(redisson.V2, "\x03hell\xef"), soon) }, about: "codec", want: "warning: codec string does not read 1 of the first 1"},
		"a stream":         {prepare: func(p *place) { p.write("stream", p.name) }, about: "keys", want: "problem: invalid queue name"},
		"a set of leases":  {prepare: func(p *place) { p.write("set", p.own("leases")) }, about: "keys", want: "problem: invalid queue name"},
		"envelopes, a set": {opts: []redisson.Option{redisson.WithCodec(redisson.Envelope)}, prepare: func(p *place) { p.write("set", p.times()) }, about: "keys", want: "problem: invalid queue name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			if tt.prepare != nil {
				tt.prepare(p)
			}
			before := len(p.keys())
			if got := p.found(p.backend(tt.opts...)); !strings.HasPrefix(got[tt.about], tt.want) {
				t.Errorf("found %q, want %q", got, tt.want)
			}
			if len(p.keys()) != before {
				t.Errorf("keys %q", p.keys())
			}
		})
	}
}

// A body that decodes as a string, though Java has written it with another codec, is warned of,
// once.
func TestBodyOfAnotherCodecIsLogged(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		"\x04\x3e\x05hello": "MarshallingCodec", `"hello"`: "JsonJacksonCodec", `{"@class":"a.B","n":1}`: "JsonJacksonCodec",
		`["java.lang.Long",1]`: "JsonJacksonCodec", "\x03\x02": "Kryo5Codec", "hello": "", `{"n":1}`: "", `"`: "", `["a"]`: "", "": "", "\n\n": "",
	} {
		t.Run(fmt.Sprintf("%x", payload), func(t *testing.T) { // braces would be the queue's
			t.Parallel()
			p := setup(t)
			var log redistest.Log
			q := p.openLogging(p.backend(), log.Logger())
			for range 3 {
				p.offer(javaMember(redisson.V2, payload), time.Now())
			}
			ds := p.take(q, 3, time.Minute)
			must(t, q.Ack(p.ctx, leases(ds))...)
			n := 0
			if want != "" {
				n = 1
			}
			if got := log.Count("looks_like=" + want); got != n {
				t.Errorf("%d warnings, want %d: %s", got, n, &log)
			}
		})
	}
}

// One that does not decode is a dead letter whose reason names the codec.
func TestDeadLetterNamesTheOtherCodec(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open()
	p.offer(javaMember(redisson.V2, "\x03hell\xef"), time.Now())
	p.push(q, 0, "after")
	p.takes(q, "after")
	var dead []backend.DeadLetter
	await(t, "the dead letter", func() bool {
		var err error
		dead, _, err = q.ListDead(p.ctx, "", 10)
		must(t, err)
		return len(dead) == 1
	})
	if !strings.Contains(dead[0].Reason, "it begins like a payload of Kryo5Codec") {
		t.Errorf("reason %q", dead[0].Reason)
	}
}
