package conformance

import (
	"context"

	"github.com/delayq/delayq/backend"
)

// Invariant 12: no wake-up is lost.
var wakeChecks = []Check{
	{
		Name: "wake-up", Invariant: 12,
		Rule: "A worker that waits for a far message gets a nearer one in time.",
		run:  func(t *trial) { t.wakes(t.q, t.q) },
	},
	{
		Name: "wake-up-elsewhere", Invariant: 12,
		Rule: "A worker that waits for a far message gets a nearer one that another client pushes, in time.",
		run:  func(t *trial) { t.wakes(t.q, t.second()) },
	},
	{
		Name: "wake-up-at-once", Invariant: 12,
		Rule: "A worker that waits on an empty queue gets a message that is due at once.",
		run:  wakeUpAtOnce,
	},
	{
		Name: "wake-up-by-nack", Invariant: 12,
		Rule: "A waiting worker gets a message that another gives back.",
		run:  wakeUpByNack,
	},
	{
		Name: "wake-up-by-reschedule", Invariant: 12, needs: []need{moving},
		Rule: "A waiting worker gets a message that is rescheduled to sooner.",
		run:  wakeUpByReschedule,
	},
	{
		Name: "wake-up-of-many", Invariant: 12,
		Rule: "When many messages fall due while many workers wait, all messages are handed out.",
		run:  wakeUpOfMany,
	},
	{
		Name: "wake-up-outlives-leavers", Invariant: 12,
		Rule: "A worker that stops waiting takes no other worker's wake-up with it.",
		run:  wakeUpOutlivesLeavers,
	},
}

// wakes lets a worker of one client wait, and pushes through the other.
func (t *trial) wakes(worker, pusher backend.Queue) {
	far := t.pushAfter(1000 * t.Tick)
	s := t.sleep(worker)
	near := t.after(t.Tick)
	t.expect(near)
	due := t.now().Add(t.Tick)
	t.must(outcome(pusher.Schedule(t.ctx, []backend.Message{near})), "scheduling")
	t.settleDown()
	t.pass(t.Tick)
	t.grace()
	t.ack(s.woken(near.ID, "a nearer message was due"))
	if at := *s.at.Load(); at.After(due.Add(t.late())) {
		t.fail("the nearer message came %v late; allowed is %v", at.Sub(due), t.late())
	}
	if c, ok := t.q.(backend.Canceler); ok {
		t.must(outcome(c.Cancel(t.ctx, []string{far})), "cancelling the far message")
	}
}

func wakeUpAtOnce(t *trial) {
	for range 3 {
		s := t.sleep(t.q)
		id := t.pushAfter(0)
		t.grace()
		t.ack(s.woken(id, "a message was pushed"))
	}
}

func wakeUpByNack(t *trial) {
	id := t.pushAfter(0)
	d := t.takeID(id)
	s := t.sleep(t.q)
	t.nack(d, 0)
	t.grace()
	d = s.woken(id, "the message was given back")
	s = t.sleep(t.q)
	t.nack(d, t.Tick)
	t.settleDown()
	t.pass(t.Tick)
	t.grace()
	d = s.woken(id, "the message was given back with a delay")
	s = t.sleep(t.q)
	t.untouched(d)
	t.grace()
	t.ack(s.woken(id, "the message was given back untouched"))
}

func wakeUpByReschedule(t *trial) {
	id := t.pushAfter(1000 * t.Tick)
	s := t.sleep(t.q)
	t.expectAgain(id, t.now().Add(t.Tick))
	t.must(t.move(id, t.Tick), "rescheduling")
	t.settleDown()
	t.pass(t.Tick)
	t.grace()
	t.ack(s.woken(id, "the message was rescheduled to sooner"))
}

func wakeUpOfMany(t *trial) {
	const n = 20
	sleepers := make([]*sleeper, n)
	for i := range sleepers {
		sleepers[i] = t.sleep(t.q)
	}
	for range n {
		t.pushAfter(t.Tick)
	}
	t.settleDown()
	t.pass(t.Tick)
	t.grace()
	seen := make(map[string]bool)
	for _, s := range sleepers {
		d := s.wokenBy("many messages were due")
		if seen[d.ID] {
			t.fail("message %s was handed out twice", d.ID)
		}
		seen[d.ID] = true
		t.ack(d)
	}
}

func wakeUpOutlivesLeavers(t *trial) {
	const n = 10
	for range n {
		leaver, stayer := t.sleep(t.q), t.sleep(t.q)
		id := t.pushAfter(0)
		ds, err := leaver.stop()
		t.grace()
		if err == nil {
			t.ack(ds...)
			_, err := stayer.stop()
			t.want(err, context.Canceled, "Receive whose context ended")
			continue
		}
		t.ack(stayer.woken(id, "the worker that was woken first had left"))
	}
}
