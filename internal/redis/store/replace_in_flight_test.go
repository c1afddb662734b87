package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/redis/redistest"
)

// inFlight pushes the first message and leases it.
func (b *bench) inFlight() backend.Delivery {
	b.t.Helper()
	b.all(b.Schedule(b.ctx, []backend.Message{{ID: "a", Body: []byte("first")}}))
	c, err := b.Claim(b.ctx, 1, time.Minute, "worker")
	if err != nil || len(c.Deliveries) != 1 {
		b.t.Fatalf("claimed %d messages, %v", len(c.Deliveries), err)
	}
	return c.Deliveries[0]
}

func superseding(body string) []backend.Message {
	return []backend.Message{{ID: "a", Body: []byte(body), Replace: true, AfterInFlight: true}}
}

// shows checks the one message.
func (b *bench) shows(state backend.State, body string) {
	b.t.Helper()
	ms, errs := b.Get(b.ctx, []string{"a"})
	b.all(errs)
	if ms[0].State != state || string(ms[0].Body) != body {
		b.t.Errorf("the message is %v, with the body %q; want %v, %q", ms[0].State, ms[0].Body, state, body)
	}
}

// A push that replaces a message in flight and loses its reply recognizes what it has stored, also
// when the message is acknowledged before it is repeated.
func TestReplaceInFlightLosesItsReply(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(b *bench, d backend.Delivery){
		"nothing": func(*bench, backend.Delivery) {},
		"ack":     func(b *bench, d backend.Delivery) { b.all(b.Ack(b.ctx, []backend.Lease{d.Lease()})) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			d := b.inFlight()
			b.all(b.Schedule(b.ctx, superseding("second")))
			b.all(b.losingSecond(func() { meanwhile(b, d) }).Schedule(b.ctx, superseding("third")))
			if name == "nothing" {
				b.shows(backend.StateInFlight, "third")
				b.all(b.Ack(b.ctx, []backend.Lease{d.Lease()}))
			}
			b.shows(backend.StateReady, "third")
		})
	}
}

// A repeated push replaces nothing that was pushed since.
func TestReplaceInFlightLosesItsReplyToANewerOne(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := b.inFlight()
	newer := func() { b.all(b.Schedule(b.ctx, superseding("newer"))) }
	b.unknown(b.losingSecond(newer).Schedule(b.ctx, superseding("older")))
	b.shows(backend.StateInFlight, "newer")
	b.all(b.losing(newer).Schedule(b.ctx, superseding("newest"))) // only its look is lost
	b.shows(backend.StateInFlight, "newest")
	b.all(b.Ack(b.ctx, []backend.Lease{d.Lease()}))
	b.shows(backend.StateReady, "newest")
}

// An ack of a replaced message whose replies are lost leaves the new message.
func TestAckOfReplacedLosesItsReply(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := b.inFlight()
	b.all(b.Schedule(b.ctx, superseding("second")))
	b.all(b.losing(b.nothingMeanwhile).Ack(b.ctx, []backend.Lease{d.Lease()})) // the first script does nothing
	b.shows(backend.StateReady, "second")

	c, err := b.Claim(b.ctx, 1, time.Minute, "worker")
	if err != nil || len(c.Deliveries) != 1 {
		t.Fatalf("claimed %d messages, %v", len(c.Deliveries), err)
	}
	lease := []backend.Lease{c.Deliveries[0].Lease()}
	b.all(b.Schedule(b.ctx, superseding("third")))
	for _, err := range b.losingSecond(b.nothingMeanwhile).Ack(b.ctx, lease) {
		if err != nil && !errors.Is(err, backend.ErrOutcomeUnknown) {
			t.Errorf("got %v", err)
		}
	}
	b.shows(backend.StateReady, "third")
}

// A nack that arrives only after the lease of a replaced message has ended does not say that it was in
// time.
func TestNackOfReplacedComesTooLate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.push("a")
	d := b.next(b.Claim, 200*time.Millisecond, "a")
	later := superseding("second")
	later[0].Delay = time.Hour
	b.all(b.Schedule(b.ctx, later))
	ended := func() {
		await(t, "the end of the lease", func() bool {
			b.nothing(b.Claim) // it gives back messages of ended leases
			return b.raw.Exists(b.ctx, b.key("leases")).Val() == 0
		})
	}
	f := &redistest.Fault{At: "evalsha", Before: ended, Unsent: true}
	b.unknown(b.faulty(f).Nack(b.ctx, []backend.Return{{Lease: d.Lease()}}))
	b.shows(backend.StateScheduled, "second")
}

// TestReplaceInFlightLeavesNothing wants no entry more than before of a message that was replaced in
// flight, when it is done.
func TestReplaceInFlightLeavesNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.all(b.Schedule(b.ctx, []backend.Message{{ID: "other", Delay: time.Hour}}))
	d := b.inFlight()
	b.all(b.Schedule(b.ctx, superseding("second")))
	b.all(b.Ack(b.ctx, []backend.Lease{d.Lease()}))
	c, err := b.Claim(b.ctx, 1, time.Minute, "worker")
	if err != nil || len(c.Deliveries) != 1 || string(c.Deliveries[0].Body) != "second" {
		t.Fatalf("claimed %+v, %v", c.Deliveries, err)
	}
	b.all(b.Ack(b.ctx, []backend.Lease{c.Deliveries[0].Lease()}))
	if n := b.raw.Exists(b.ctx, b.key("gens"), b.key("held"), b.key("leases")).Val(); n != 0 {
		t.Error("an entry of a lease or of a return is left")
	}
}

// TestArbitrateMeetsAReplacedMessage has a push replace a message between the MULTI that leases it and
// the reading of its content. The new content is not handed out under that lease.
func TestArbitrateMeetsAReplacedMessage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.all(b.Schedule(b.ctx, []backend.Message{{ID: "a", Body: []byte("first")}}))
	later := superseding("second")
	later[0].Delay = time.Hour
	f := &redistest.Fault{At: "hmget", Before: func() { b.all(b.Schedule(b.ctx, later)) }}
	c, err := b.with(f.Client(t, b.raw)).Arbitrate(b.ctx, 1, time.Minute, "worker")
	if err != nil || len(c.Deliveries) > 0 {
		t.Errorf("handed out %+v, %v", c.Deliveries, err)
	}
	if !f.Met() {
		t.Error("the content was read in another way")
	}
	b.shows(backend.StateScheduled, "second")
}

// TestReplacedMessageIsUnreadable has the record of the new message broken before the
// worker settles the old one. It becomes a dead letter, as any other that cannot be read, and can be
// deleted whole.
func TestReplacedMessageIsUnreadable(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, b *bench, _ string, way claimer) {
		d := b.inFlight()
		b.all(b.Schedule(b.ctx, superseding("second")))
		b.garble("a")
		b.all(b.Ack(b.ctx, []backend.Lease{d.Lease()}))
		b.deadLettered(way)
	})
}

// TestArbitrateMeetsAnUnreadableReplacement is the same between the MULTI that leases the message and
// the reading of its content.
func TestArbitrateMeetsAnUnreadableReplacement(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, time.Hour} {
		b := setup(t)
		b.all(b.Schedule(b.ctx, []backend.Message{{ID: "a", Body: []byte("first")}}))
		f := &redistest.Fault{At: "hmget", Before: func() {
			second := superseding("second")
			second[0].Delay = delay
			b.all(b.Schedule(b.ctx, second))
			b.garble("a")
		}}
		if c, err := b.with(f.Client(t, b.raw)).Arbitrate(b.ctx, 1, time.Minute, "worker"); err != nil || len(c.Deliveries) > 0 {
			t.Errorf("handed out %+v, %v", c.Deliveries, err)
		}
		if !f.Met() {
			t.Error("the content was read in another way")
		}
		b.deadLettered(b.Arbitrate)
	}
}

// garble leaves of a record what says its place, and breaks the rest.
func (b *bench) garble(id string) {
	b.t.Helper()
	packed := string(record.PackID(nil, id))
	rec, err := b.raw.HGet(b.ctx, b.key("messages"), packed).Result()
	must(b.t, err, b.raw.HSet(b.ctx, b.key("messages"), packed, rec[:7]+"\xff\xff\xff").Err())
}

// deadLettered claims until the one message is a dead letter, redrives it, and deletes it when it is one
// again.
func (b *bench) deadLettered(way claimer) {
	b.t.Helper()
	for round := range 2 {
		await(b.t, "the dead letter", func() bool {
			b.nothing(way)
			ls, _, err := b.ListDead(b.ctx, "", 10)
			must(b.t, err)
			return len(ls) == 1 && ls[0].ID == "a"
		})
		if round == 0 {
			b.all(b.Redrive(b.ctx, []string{"a"}))
		}
	}
	b.all(b.DeleteDead(b.ctx, []string{"a"}))
	b.empty()
}
