package redisson_test

import (
	"errors"
	"fmt"
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

// A dead letter whose record somebody has deleted or cut is listed with its problem, among the
// others, and can be deleted. The others can be redriven.
func TestDeadLetterWithoutItsRecord(t *testing.T) {
	t.Parallel()
	for _, codec := range []redisson.Codec{redisson.Bytes, redisson.Envelope} {
		for _, kept := range []int{0, 10} {
			t.Run(fmt.Sprintf("envelopes=%t/%d bytes kept", codec == redisson.Envelope, kept), func(t *testing.T) {
				t.Parallel()
				p := setup(t)
				q := p.store(p.backend(redisson.WithCodec(codec)))
				for i := range 3 {
					must(t, q.Schedule(p.ctx, []backend.Message{{ID: lettered(codec, i), Body: []byte("dead")}})...)
					must(t, p.settle(q, "dead", p.lease(q))...)
				}
				keys, err := p.raw.ZRange(p.ctx, p.own("dead"), 0, -1).Result()
				must(t, err)
				p.cut(keys[1], kept)
				p.listsCut(q)
			})
		}
	}
}

// cut leaves so many bytes of a death's record.
func (p *place) cut(key string, kept int) {
	p.t.Helper()
	record, err := p.raw.HGet(p.ctx, p.own("graves"), key).Result()
	must(p.t, err)
	if kept == 0 {
		must(p.t, p.raw.HDel(p.ctx, p.own("graves"), key).Err())
	} else {
		must(p.t, p.raw.HSet(p.ctx, p.own("graves"), key, record[:kept]).Err())
	}
}

// listsCut checks three dead letters, of which the second one's record was cut.
func (p *place) listsCut(q redisson.Store) {
	p.t.Helper()
	ls, next, err := q.ListDead(p.ctx, "", 10)
	if err != nil || len(ls) != 3 || next != "" {
		p.t.Fatalf("dead letters %+v, %q, %v", ls, next, err)
	}
	for i, l := range ls {
		if (l.Err != nil) != (i == 1) || i != 1 && string(l.Body) != "dead" || l.Reason == "" && i == 1 {
			p.t.Errorf("letter %d is %+v", i, l)
		}
	}
	ids, _, err := q.ListDeadIDs(p.ctx, "", 10)
	if err != nil || len(ids) != 3 || ids[1] != ls[1].ID {
		p.t.Fatalf("ids %q, %v", ids, err)
	}
	errs := q.Redrive(p.ctx, ids)
	if errs[0] != nil || !errors.Is(errs[1], backend.ErrNotFound) || errs[2] != nil {
		p.t.Fatalf("redriving: %v", errs)
	}
	must(p.t, q.DeleteDead(p.ctx, ids[1:2])...)
	for range 2 {
		must(p.t, p.settle(q, "ack", p.lease(q))...)
	}
	p.empty()
}
