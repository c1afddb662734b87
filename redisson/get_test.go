package redisson_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

// shows gets a message, which must be in that state.
func (p *place) shows(q backend.Queue, id string, state backend.State, body string) backend.MessageInfo {
	p.t.Helper()
	ms, errs := q.Get(p.ctx, []string{id})
	must(p.t, errs...)
	if m := ms[0]; m.ID != id || m.State != state || string(m.Body) != body {
		p.t.Errorf("got %+v; want %s, %v, %q", m, id, state, body)
	}
	return ms[0]
}

// A message that was handed over to Java is ready, until Java takes it.
func TestGetOfHandedOverMessages(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open()
	ids := p.push(q, 0, "a", "b")
	await(t, "the hand-over", func() bool { return p.raw.LLen(p.ctx, p.name).Val() == 2 })
	p.shows(q, ids[0], backend.StateReady, "a")
	must(t, p.raw.LPop(p.ctx, p.name).Err())
	wants(t, second(q.Get(p.ctx, ids[:1])), backend.ErrNotFound)
	p.shows(q, ids[1], backend.StateReady, "b")
	p.takes(q, "b")
	p.empty()
}

func second[T, U any](_ T, u U) U { return u }

// A leased message that Java has had is not there any more.
func TestGetOfALeasedMessageThatJavaHasHad(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open()
	ids := p.push(q, 0, "a")
	p.take(q, 1, time.Minute)
	p.shows(q, ids[0], backend.StateInFlight, "a")
	must(t, p.raw.Del(p.ctx, p.times()).Err())
	wants(t, second(q.Get(p.ctx, ids)), backend.ErrNotFound)
	_, err := q.Purge(p.ctx)
	must(t, err)
	p.empty()
}

// An envelope that Java has moved is found by its id.
func TestGetOfAnEnvelopeThatJavaMoved(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open(redisson.WithCodec(redisson.Envelope))
	must(t, q.Schedule(p.ctx, []backend.Message{{ID: "mine", Body: []byte("body"), Headers: map[string]string{"k": "v"}, Delay: time.Hour}})...)
	if m := p.shows(q, "mine", backend.StateScheduled, "body"); m.Headers["k"] != "v" {
		t.Errorf("got %+v", m)
	}
	member := p.members()[0].Member.(string)
	m, err := redisson.ParseMember([]byte(member))
	must(t, err)
	must(t, p.raw.ZRem(p.ctx, p.times(), member).Err(), p.raw.RPush(p.ctx, p.name, m.Payload).Err())
	p.shows(q, "mine", backend.StateReady, "body")
}

// Java's own messages are found by their member, payloads that the codec cannot read too.
func TestGetOfMessagesThatJavaPushed(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open()
	due := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	for payload, readable := range map[string]bool{"ok": true, "\xff\xfe": false} {
		member := "\x08\x01\x02\x03\x04\x05\x06\x07\x08\x02\x00\x00\x00\x00\x00\x00\x00" + payload
		must(t, p.raw.ZAdd(p.ctx, p.times(), redis.Z{Score: float64(due.UnixMilli()), Member: member}).Err())
		id, err := redisson.MemberID([]byte(member), due)
		must(t, err)
		if m := p.shows(q, id, backend.StateScheduled, payload); !m.Due.Equal(due) || (m.Err == nil) != readable {
			t.Errorf("got %+v", m)
		}
		must(t, p.raw.ZRem(p.ctx, p.times(), member).Err())
	}
	p.empty()
}

// A redriven message has a new member, which names it too.
func TestGetOfARedrivenMessageThatDiesAgain(t *testing.T) {
	t.Parallel()
	p := setup(t)
	q := p.open()
	ids := p.push(q, 0, "a")
	for range 2 {
		ds := p.take(q, 1, time.Minute)
		must(t, q.Dead(p.ctx, []backend.DeadLetterRequest{{Lease: ds[0].Lease(), Reason: "of the test"}})...)
		if m := p.shows(q, ids[0], backend.StateDead, "a"); m.Reason != "of the test" || m.Attempts != 1 {
			t.Errorf("got %+v", m)
		}
		must(t, q.Redrive(p.ctx, ids)...)
		p.shows(q, ids[0], backend.StateReady, "a")
	}
	p.takes(q, "a")
	p.empty()
}
