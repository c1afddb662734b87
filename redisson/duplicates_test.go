package redisson_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/delayq/delayq/redisson"
)

// Members of one id are two messages, whether they are taken at once or one is leased already.
func TestMembersOfOneID(t *testing.T) {
	t.Parallel()
	each(t, javas, func(t *testing.T, p *place, f redisson.MemberFormat) {
		q := p.open()
		past := time.Now().Add(-time.Minute)
		for _, body := range []string{"a", "b"} {
			p.offer(memberOf(f, "the same", body), past)
		}
		ds := p.take(q, 2, time.Minute)
		p.offer(memberOf(f, "the same", "c"), past)
		ds = append(ds, p.take(q, 1, time.Minute)...)
		seen := make(map[string]bool)
		for _, d := range ds {
			seen[d.ID], seen[string(d.Body)] = true, true
		}
		if len(seen) != 6 {
			t.Errorf("ids and bodies are %v, want three of each", seen)
		}
		must(t, q.Ack(p.ctx, leases(ds))...)
		p.empty()
	})
}

// More leases have ended than a script gives back, long enough ago for Java to take their messages:
// each message comes under its second lease once all the same.
func TestManyEndedLeases(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open()
	texts := make([]string, 450)
	for i := range texts {
		texts[i] = fmt.Sprint(i)
	}
	p.push(q, 0, texts...)
	p.take(q, len(texts), time.Hour)
	// Both keys at once: a sweep that saw one of them moved would take it that Java had the messages.
	const back = "for _, key in ipairs(KEYS) do for _, m in ipairs(redis.call('ZRANGE', key, 0, -1)) do redis.call('ZINCRBY', key, -7200000, m) end end return 1"
	must(t, p.raw.Eval(p.ctx, back, []string{p.times(), p.own("leases")}).Err())
	ds := p.take(q, len(texts), time.Minute)
	seen := make(map[string]bool)
	for _, d := range ds {
		if seen[d.ID] || d.Attempt != 2 {
			t.Errorf("%s comes as attempt %d, seen before: %v", d.Body, d.Attempt, seen[d.ID])
		}
		seen[d.ID] = true
	}
	must(t, q.Ack(p.ctx, leases(ds))...)
	p.empty()
}
