package redisson_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

// javaOffers offers n messages of one due time, and returns their members.
func (p *place) javaOffers(f redisson.MemberFormat, n int, due time.Time) (members []string) {
	p.t.Helper()
	_, err := p.raw.TxPipelined(p.ctx, func(tx redis.Pipeliner) error {
		for i := range n {
			members = append(members, javaMember(f, fmt.Sprint("body ", i)))
			tx.ZAdd(p.ctx, p.times(), redis.Z{Score: float64(due.UnixMilli()), Member: members[i]})
			tx.RPush(p.ctx, p.index(), members[i])
		}
		tx.Publish(p.ctx, p.channel(), due.UnixMilli())
		return nil
	})
	must(p.t, err)
	return members
}

func memberID(t *testing.T, member string, due time.Time) string {
	t.Helper()
	id, err := redisson.MemberID([]byte(member), due)
	must(t, err)
	return id
}

func TestCancelMessageOfJava(t *testing.T) {
	t.Parallel()
	each(t, javas, func(t *testing.T, p *place, f redisson.MemberFormat) {
		q := p.open()
		due := time.Now().Add(time.Hour)
		members := p.javaOffers(f, 1000, due)
		var gone, moved []string
		for i := 0; i < len(members); i += 10 {
			gone = append(gone, memberID(t, members[i], due))
			moved = append(moved, memberID(t, members[i+1], due))
		}
		must(t, q.Cancel(p.ctx, gone)...)
		wants(t, q.Cancel(p.ctx, gone), backend.ErrNotFound)
		p.moveAll(q, moved)
		// moved messages are due, and may be handed over already
		var waiting, listed, handed *redis.IntCmd
		_, err := p.raw.TxPipelined(p.ctx, func(tx redis.Pipeliner) error {
			waiting, listed, handed = tx.ZCard(p.ctx, p.times()), tx.LLen(p.ctx, p.index()), tx.LLen(p.ctx, p.name)
			return nil
		})
		must(t, err)
		if m, l, h := waiting.Val(), listed.Val(), handed.Val(); m+h != 900 || l+h != 900 {
			t.Errorf("%d members and %d entries of the index list are left, and %d are handed over", m, l, h)
		}
		want := make(map[string]bool, len(moved))
		for _, id := range moved {
			want[id] = true
		}
		ds := p.take(q, len(moved), time.Minute)
		for _, d := range ds {
			if !want[d.ID] || d.Attempt != 1 || !strings.HasSuffix(string(d.Body), "1") {
				t.Errorf("got %+v", d)
			}
			delete(want, d.ID)
		}
		must(t, q.Ack(p.ctx, leases(ds))...)
		if s := p.stats(q); s.Scheduled != 800 || s.Ready+s.InFlight > 0 {
			t.Errorf("stats %+v", s)
		}
	})
}

// moveAll makes messages due, by way of a later time.
func (p *place) moveAll(q backend.Queue, ids []string) {
	p.t.Helper()
	for _, delay := range []time.Duration{2 * time.Hour, 0} {
		ms := make([]backend.Move, len(ids))
		for i, id := range ids {
			ms[i] = backend.Move{ID: id, Delay: delay}
		}
		must(p.t, q.Reschedule(p.ctx, ms)...)
	}
}

// An unknown id names nothing: in particular no message whose id begins with it.
func TestUnknownIDs(t *testing.T) {
	t.Parallel()
	eachFormat(t, func(p *place, ours, javas redisson.MemberFormat) {
		q := p.open(redisson.Format(ours))
		due := time.Now().Add(time.Hour)
		id := p.at(q, due, "ours")
		theirs := javaMember(javas, "theirs")
		p.offer(theirs, due)
		ids := []string{"", "-", "x", id[:len(id)-1], id + "1", strings.ReplaceAll(id, "-", ""), "zz" + id, "00" + id, "id of ours", "0x" + id}
		for _, good := range []string{id, memberID(p.t, theirs, due)} {
			key, origin, _ := strings.Cut(good, "-")
			for n := 2; n < len(key); n += 2 {
				ids = append(ids, key[:n]+"-"+origin)
			}
			ids = append(ids, key+"00-"+origin, key+"-", "-"+origin, key+"--"+origin, key+"-1")
		}
		wants(p.t, q.Cancel(p.ctx, ids), backend.ErrNotFound)
		for _, id := range ids {
			wants(p.t, q.Reschedule(p.ctx, []backend.Move{{ID: id}}), backend.ErrNotFound)
		}
		wants(p.t, q.Redrive(p.ctx, ids), backend.ErrNotFound)
		wants(p.t, q.DeleteDead(p.ctx, ids), backend.ErrNotFound)
		if s := p.stats(q); s.Scheduled != 2 {
			p.t.Errorf("stats %+v", s)
		}
		must(p.t, q.Cancel(p.ctx, []string{id, memberID(p.t, theirs, due)})...)
		p.empty()
	})
}

// A leased message cannot be cancelled, neither by its id nor by the id of the member that
// represents it.
func TestCancelLeasedMessage(t *testing.T) {
	t.Parallel()
	eachFormat(t, func(p *place, ours, _ redisson.MemberFormat) {
		q := p.open(redisson.Format(ours))
		ids := p.push(q, 0, "held")
		held := p.take(q, 1, time.Minute)
		spare := p.members()[0]
		ids = append(ids, memberID(p.t, spare.Member.(string), time.UnixMilli(int64(spare.Score))))
		wants(p.t, q.Cancel(p.ctx, ids), backend.ErrInFlight)
		for _, id := range ids {
			wants(p.t, q.Reschedule(p.ctx, []backend.Move{{ID: id}}), backend.ErrInFlight)
		}
		must(p.t, q.Ack(p.ctx, leases(held))...)
		p.empty()
	})
}

// An entry that the index list has twice makes no second message.
func TestIndexHasAnEntryTwice(t *testing.T) {
	t.Parallel()
	p := setup(t)
	due := time.Now().Add(50 * time.Millisecond)
	members := p.javaOffers(redisson.V2, 10, due)
	must(t, p.raw.LPush(p.ctx, p.index(), members[9], members[9]).Err())
	q := p.open()
	if ds := p.take(q, 10, time.Minute); !sameSet(bodies(ds), numbered(10)) {
		t.Errorf("got %q", bodies(ds))
	} else {
		must(t, q.Ack(p.ctx, leases(ds))...)
	}
	p.empty()
}
