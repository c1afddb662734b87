package redisson_test

import (
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/redisson"
)

// A payload that the codec does not read is a dead letter, whole. The others are not held up.
func TestUnreadablePayloads(t *testing.T) {
	t.Parallel()
	each(t, javas, func(t *testing.T, p *place, f redisson.MemberFormat) {
		var log redistest.Log
		q := p.openLogging(p.backend(redisson.WithCodec(redisson.Kryo5String)), log.Logger())
		const integer = "\x02\x02"
		now := time.Now()
		for i, payload := range []string{"\x03on\xe5", integer, "\x03tw\xef", integer, "\x03thre\xe5"} {
			p.offer(javaMember(f, payload), now.Add(time.Duration(i-10)*time.Millisecond))
		}
		p.takes(q, "one", "two", "three")
		await(t, "the dead letters", func() bool { return p.stats(q) == backend.Stats{Dead: 2} })
		ls, next, err := q.ListDead(p.ctx, "", 10)
		must(t, err)
		if len(ls) != 2 || next != "" {
			t.Fatalf("dead letters %+v, %q", ls, next)
		}
		for _, l := range ls {
			if string(l.Body) != integer || l.Attempts != 1 || !strings.Contains(l.Reason, "class id 02") || log.Count(l.ID) == 0 {
				t.Errorf("dead letter %+v", l)
			}
		}
		p.redriveToJava(f, q, ls)
	})
}

// redriveToJava brings a dead letter back for Java to take: the payload is as it was.
func (p *place) redriveToJava(f redisson.MemberFormat, q backend.Queue, ls []backend.DeadLetter) {
	p.t.Helper()
	must(p.t, q.DeleteDead(p.ctx, []string{ls[1].ID})...)
	must(p.t, q.Redrive(p.ctx, []string{ls[0].ID})...)
	if got := p.blpop(); got != string(ls[0].Body) {
		p.t.Errorf("Java gets %q, format %v", got, f)
	}
	p.empty()
}

// An unreadable message in the destination becomes a dead letter too.
func TestUnreadablePayloadsInTheDestination(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open(redisson.WithCodec(redisson.MarshallingString))
	must(t, p.raw.RPush(p.ctx, p.name, "garbage", "\x04\x3e\x02ok").Err())
	p.takes(q, "ok")
	await(t, "the dead letter", func() bool { return p.stats(q) == backend.Stats{Dead: 1} })
	ls, _, err := q.ListDead(p.ctx, "", 1)
	if err != nil || len(ls) != 1 || string(ls[0].Body) != "garbage" {
		t.Fatalf("dead letters %+v, %v", ls, err)
	}
	must(t, q.DeleteDead(p.ctx, []string{ls[0].ID})...)
	p.empty()
}
