package redisson_test

import (
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

// TestScriptsFlushed makes the server forget scripts before each call.
func TestScriptsFlushed(t *testing.T) {
	t.Parallel()
	p := on(t, testenv.Redis(t, testenv.Private()))
	b := p.backend()
	q := p.openOn(b)
	flush := func() { must(t, p.raw.ScriptFlush(p.ctx).Err()) }
	flush()
	ids := p.push(q, 0, "a", "b", "c")
	flush()
	ds := p.take(q, 3, time.Minute)
	flush()
	_, errs := q.Extend(p.ctx, leases(ds), time.Hour)
	must(t, errs...)
	flush()
	must(t, q.Nack(p.ctx, []backend.Return{{Lease: ds[0].Lease(), Delay: time.Hour}})...)
	flush()
	must(t, q.Reschedule(p.ctx, []backend.Move{{ID: ids[0], Delay: time.Minute}})...)
	flush()
	must(t, q.Cancel(p.ctx, ids[:1])...)
	flush()
	must(t, q.Dead(p.ctx, []backend.Burial{{Lease: ds[1].Lease(), Reason: "r"}})...)
	flush()
	ls, _, err := q.ListDead(p.ctx, "", 10)
	if err != nil || len(ls) != 1 || ls[0].ID != ids[1] || ls[0].Reason != "r" || string(ls[0].Body) != "b" {
		t.Errorf("dead letters %+v, %v", ls, err)
	}
	flush()
	must(t, q.DeleteDead(p.ctx, ids[1:2])...)
	flush()
	_, _, err = b.Pending(p.ctx, p.name, "", 10)
	must(t, err)
	flush()
	must(t, q.Ack(p.ctx, leases(ds[2:]))...)
	flush()
	p.stats(q)
	p.empty()
}
