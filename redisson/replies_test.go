package redisson_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

// A tally has the outcome of each message, by its body.
type tally struct {
	t  *testing.T
	mu sync.Mutex

	pushed    map[string]bool // false where the push failed, which leaves it open
	delivered map[string]int
	unknown   int // acks that failed for lack of a reply
}

func (y *tally) pushes(ms []backend.Message, errs []error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for i, err := range padded(errs, len(ms)) {
		y.pushed[string(ms[i].Body)] = err == nil
		if err != nil && (errors.Is(err, backend.ErrDuplicate) || !errors.Is(err, script.ErrUnknown)) {
			y.t.Errorf("the push of %s: %v", ms[i].Body, err)
		}
	}
}

func (y *tally) takes(ds []backend.Delivery, errs []error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	for i, err := range padded(errs, len(ds)) {
		body := string(ds[i].Body)
		if y.delivered[body]++; y.delivered[body] > 1 || ds[i].Attempt != 1 {
			y.t.Errorf("%s came %d times, attempt %d", body, y.delivered[body], ds[i].Attempt)
		}
		if errors.Is(err, backend.ErrLeaseLost) {
			y.t.Errorf("the ack of %s: %v", body, err)
		} else if err != nil {
			y.unknown++
		}
	}
}

// complete reports whether all that is known to be there has come.
func (y *tally) complete() bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	for body, ok := range y.pushed {
		if ok && y.delivered[body] == 0 {
			return false
		}
	}
	return true
}

func (y *tally) failed() (n int) {
	for _, ok := range y.pushed {
		if !ok {
			n++
		}
	}
	return n
}

// TestRepliesCut cuts replies after the server has executed the command. In an envelope a push is
// repeated until it is known to be stored; on a queue shared with Java it is not, and its error
// says so. Neither is stored twice.
func TestRepliesCut(t *testing.T) {
	t.Parallel()
	for _, c := range []redisson.Codec{redisson.String, redisson.Envelope} {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			proxy := testenv.Proxy(t, p.server.Addr())
			client := p.server.Client(t, func(o *redis.Options) { o.Addr = proxy.Addr() })
			q := p.openOn(p.backendOn(client, redisson.WithCodec(c), redisson.Sweep(50*time.Millisecond)))
			proxy.CutReplies(0.03)
			y := &tally{t: t, pushed: make(map[string]bool), delivered: make(map[string]int)}
			var wg sync.WaitGroup
			for w := range 8 {
				wg.Go(func() { p.pushMany(q, y, w) })
			}
			wg.Wait()
			p.drain(q, y)
			proxy.CutReplies(0)
			t.Logf("%d cuts, %d pushes, %d failed; %d acks unknown", proxy.Cuts(), len(y.pushed), y.failed(), y.unknown)
			if n := y.failed(); proxy.Cuts() == 0 || c == redisson.Envelope && n > len(y.pushed)/50 || c != redisson.Envelope && n == 0 {
				t.Errorf("%d cuts made %d of %d pushes fail", proxy.Cuts(), n, len(y.pushed))
			}
			p.checkRest(q, y)
		})
	}
}

// pushMany pushes messages, a few batches among them.
func (p *place) pushMany(q backend.Queue, y *tally, worker int) {
	for i := 0; i < 300; {
		ms := make([]backend.Message, 1+9*(i%2))
		for j := range ms {
			text := fmt.Sprintf("%d-%d", worker, i)
			ms[j] = backend.Message{ID: text, Body: []byte(text)}
			i++
		}
		y.pushes(ms, q.Schedule(p.ctx, ms))
	}
}

func (p *place) drain(q backend.Queue, y *tally) {
	for !y.complete() && p.ctx.Err() == nil {
		ds, err := q.Receive(p.ctx, 20, time.Hour)
		if err != nil {
			continue // a lost reply, or the end
		}
		y.takes(ds, q.Ack(p.ctx, leases(ds)))
	}
	if !y.complete() {
		p.t.Error("messages are lost")
	}
}

// checkRest takes the messages left: only those whose push failed, once each.
func (p *place) checkRest(q backend.Queue, y *tally) {
	p.t.Helper()
	for {
		s := p.stats(q)
		if s.Scheduled+s.Dead+s.Quarantined > 0 || s.InFlight > int64(y.unknown) {
			p.t.Errorf("stats %+v", s)
		}
		if s.Ready == 0 {
			return
		}
		ds := p.take(q, 1, time.Hour)
		if y.pushed[string(ds[0].Body)] {
			p.t.Errorf("%s came late", ds[0].Body)
		}
		y.takes(ds, q.Ack(p.ctx, leases(ds)))
	}
}

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
