package memory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

// Pushers, cancellers and workers of several handles, whose contexts end at random, in real time.
// In the end every message was acked, cancelled or dead-lettered, once, and nothing is left.
func TestHammer(t *testing.T) {
	h := &hammer{b: New(), fate: make([]atomic.Int32, hammered)}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { h.push(t, openOn(t, h.b, nil)) })
		all.Go(func() { h.cancel(openOn(t, h.b, nil)) })
		all.Go(func() { h.look(t, openOn(t, h.b, nil)) })
	}
	for range 8 {
		all.Go(func() { h.work(t) })
	}
	all.Wait()
	for i := range h.fate {
		if n := h.fate[i].Load(); n != 1 {
			t.Errorf("message %d ended %d times", i, n)
		}
	}
	q := openOn(t, h.b, nil)
	mustBeEmpty(t, q.store)
	if messages, bytes := h.b.Usage(); messages != 0 || bytes != 0 {
		t.Errorf("left: %d messages, %d bytes", messages, bytes)
	}
}

const hammered = 3000

type hammer struct {
	b      *Backend
	pushed atomic.Int32
	ended  atomic.Int32
	fate   []atomic.Int32 // how often each message ended
}

func (h *hammer) over() bool { return h.ended.Load() >= hammered }

func (h *hammer) end(id string) {
	var i int
	_, _ = fmt.Sscan(id, &i)
	h.fate[i].Add(1)
	h.ended.Add(1)
}

func (h *hammer) push(t *testing.T, q *queue) {
	for i := h.pushed.Add(1) - 1; i < hammered; i = h.pushed.Add(1) - 1 {
		if err := push(q, fmt.Sprint(i), micros(5000)); err != nil {
			t.Errorf("push: %v", err)
		}
		if i%20 == 0 {
			time.Sleep(micros(500))
		}
	}
}

func micros(n int) time.Duration { return time.Duration(rand.IntN(n)) * time.Microsecond }

func (h *hammer) cancel(q *queue) {
	ctx := context.Background()
	for !h.over() {
		id := fmt.Sprint(rand.IntN(hammered))
		if rand.IntN(2) == 0 {
			q.Reschedule(ctx, []backend.Move{{ID: id, Delay: micros(2000)}})
		} else if one(q.Cancel(ctx, []string{id})) == nil {
			h.end(id)
		}
		time.Sleep(micros(300))
	}
}

// look reads the counts while everything moves, and deletes the dead letters.
func (h *hammer) look(t *testing.T, q *queue) {
	ctx := context.Background()
	for !h.over() {
		st, err := q.Stats(ctx)
		if err != nil || st.Scheduled+st.Ready+st.InFlight+st.Dead > hammered {
			t.Errorf("stats: %+v, %v", st, err)
		}
		ls, _, _ := q.ListDead(ctx, "", 5)
		for _, l := range ls {
			if rand.IntN(2) == 0 {
				q.Redrive(ctx, []string{l.ID})
			} else if one(q.DeleteDead(ctx, []string{l.ID})) == nil {
				h.end(l.ID)
			}
		}
		time.Sleep(micros(1000))
	}
}

// work opens a handle, takes with a context that soon ends, and closes the handle, again
// and again.
func (h *hammer) work(t *testing.T) {
	for !h.over() {
		q := openOn(t, h.b, nil)
		for range rand.IntN(30) {
			h.take(t, q)
		}
		must(t, q.Close())
	}
}

func (h *hammer) take(t *testing.T, q *queue) {
	ctx, cancel := context.WithTimeout(context.Background(), micros(2000))
	defer cancel()
	ds, err := q.Receive(ctx, 1+rand.IntN(4), time.Millisecond+micros(3000))
	if err != nil && !errors.Is(err, context.DeadlineExceeded) || err == nil && len(ds) == 0 {
		t.Errorf("receive: %v, %v", ds, err)
	}
	now := time.Now().UnixNano()
	for _, d := range ds {
		if now < d.Due.UnixNano() {
			t.Errorf("message %s came early", d.ID)
		}
		h.settle(q, d)
	}
}

// settle does one of the things that workers do, slowly at times, so that leases end.
func (h *hammer) settle(q *queue, d backend.Delivery) {
	ctx, l := context.Background(), []backend.Lease{d.Lease()}
	if rand.IntN(10) == 0 {
		time.Sleep(micros(6000))
	}
	switch rand.IntN(6) {
	case 0: // it dies
	case 1:
		q.Nack(ctx, []backend.Return{{Lease: l[0], Delay: micros(2000)}})
	case 2:
		q.Nack(ctx, []backend.Return{{Lease: l[0], Untouched: true}})
	case 3:
		q.Dead(ctx, []backend.Burial{{Lease: l[0], Reason: "bad"}})
	case 4:
		q.Extend(ctx, l, 5*time.Millisecond)
		fallthrough
	default:
		if one(q.Ack(ctx, l)) == nil {
			h.end(d.ID)
		}
	}
}
