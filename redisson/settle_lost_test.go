package redisson_test

import (
	"errors"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/redisson"
)

// A faultySettlement is one that meets a fault, and what happens to its message meanwhile.
type faultySettlement struct {
	name, how string
	codec     redisson.Codec
	till      time.Duration // the end of the lease, by Extend
	meanwhile func(p *place, others redisson.Store)
	want      error
}

// A settlement that was lost on its way to the server is repeated when the message is no longer its
// worker's: Extend has brought the end of the lease forward, or Java has deleted the queue. The
// worker is not told that the message is settled.
func TestSettlementIsLostAndTheLease(t *testing.T) {
	t.Parallel()
	unsent := func(meanwhile func()) *redistest.Fault {
		return &redistest.Fault{At: "evalsha", Unsent: true, Before: meanwhile}
	}
	for _, codec := range []redisson.Codec{redisson.Bytes, redisson.Envelope} {
		acked := backend.ErrLeaseLost
		if codec == redisson.Envelope { // the first try may have done it, and the id may have been pushed again
			acked = backend.ErrOutcomeUnknown
		}
		for _, s := range []faultySettlement{
			{"ended", "ack", codec, time.Millisecond, nothing, backend.ErrLeaseLost},
			{"ended", "dead", codec, time.Millisecond, nothing, backend.ErrLeaseLost},
			{"ended", "nack", codec, time.Millisecond, nothing, backend.ErrLeaseLost},
			{"leased again", "ack", codec, time.Millisecond, leasedAgain, acked},
			{"leased again", "dead", codec, time.Millisecond, leasedAgain, backend.ErrOutcomeUnknown},
			{"leased again", "nack", codec, time.Millisecond, leasedAgain, backend.ErrOutcomeUnknown}, // as if it had been done
			{"given back", "ack", codec, time.Millisecond, givenBack, acked},
			{"given back", "dead", codec, time.Millisecond, givenBack, backend.ErrOutcomeUnknown},
			{"dead", "ack", codec, time.Millisecond, deadByOther, acked},
			{"dead", "dead", codec, time.Millisecond, deadByOther, nil},
		} {
			s.run(t, unsent)
		}
	}
	for _, how := range []string{"ack", "dead", "nack"} {
		s := faultySettlement{"deleted by Java", how, redisson.Bytes, time.Hour, deletedByJava, backend.ErrLeaseLost}
		s.run(t, unsent)
	}
}

// A settlement whose reply was lost has happened whatever has become of the message since, or its
// outcome is unknown. One of a lost lease stays lost.
func TestSettlementLosesItsReply(t *testing.T) {
	t.Parallel()
	for _, s := range []faultySettlement{
		{"pushed again", "ack", redisson.Envelope, time.Hour, pushedAgain, nil},
		{"pushed and leased again", "ack", redisson.Envelope, time.Hour, leasedAnew, nil},
		{"pushed again and given back", "ack", redisson.Envelope, time.Hour, givenBackAnew, backend.ErrOutcomeUnknown},
		{"redriven", "dead", redisson.Bytes, time.Hour, revived, backend.ErrOutcomeUnknown},
		{"redriven", "dead", redisson.Envelope, time.Hour, revived, backend.ErrOutcomeUnknown},
		{"redriven and leased", "dead", redisson.Bytes, time.Hour, revivedAndLeased, backend.ErrOutcomeUnknown},
		{"redriven and given back", "dead", redisson.Bytes, time.Hour, revivedAndGivenBack, backend.ErrOutcomeUnknown},
		{"nothing", "nack", redisson.Bytes, time.Hour, nothing, nil},
		{"leased again", "nack", redisson.Bytes, time.Hour, leasedAgain, backend.ErrOutcomeUnknown},
	} {
		s.run(t, redistest.LostReply)
	}
	for _, how := range []string{"ack", "dead", "nack"} {
		s := faultySettlement{"deleted by Java", how, redisson.Bytes, time.Hour, deletedByJava, backend.ErrLeaseLost}
		s.run(t, func(meanwhile func()) *redistest.Fault {
			return &redistest.Fault{At: "evalsha", Before: meanwhile, After: func() {}}
		})
	}
}

// run settles in a client that meets the fault.
func (s faultySettlement) run(t *testing.T, fault func(meanwhile func()) *redistest.Fault) {
	name := "shared"
	if s.codec == redisson.Envelope {
		name = "envelope"
	}
	t.Run(name+"/"+s.name+"/"+s.how, func(t *testing.T) {
		t.Parallel()
		p := setup(t)
		client := p.server.Client(t)
		q := p.store(p.backendOn(client, redisson.WithCodec(s.codec)))
		others := p.store(p.backend(redisson.WithCodec(s.codec)))
		p.pushHeld(others, s.codec)
		p.settle(others, s.how, backend.Lease{ID: "nobody's"}) // the script is there now
		held := p.lease(q)
		_, errs := q.Extend(p.ctx, []backend.Lease{held}, s.till)
		must(t, errs...)
		f := fault(func() { s.meanwhile(p, others) })
		client.AddHook(f.Hook())
		err := errors.Join(p.settle(q, s.how, held)...)
		if !errors.Is(err, s.want) || !f.Met() {
			t.Errorf("got %v, want %v; met the fault: %t", err, s.want, f.Met())
		}
	})
}

func (p *place) settle(q redisson.Store, how string, l backend.Lease) []error {
	switch how {
	case "ack":
		return q.Ack(p.ctx, []backend.Lease{l})
	case "nack":
		return q.Nack(p.ctx, []backend.Return{{Lease: l}})
	default:
		return q.Dead(p.ctx, []backend.DeadLetterRequest{{Lease: l}})
	}
}

func (p *place) pushHeld(q redisson.Store, c redisson.Codec) {
	m := backend.Message{Body: []byte("held")}
	if c == redisson.Envelope {
		m.ID = "held"
	}
	must(p.t, q.Schedule(p.ctx, []backend.Message{m})...)
}

// lease claims the message, as soon as it can be had.
func (p *place) lease(q redisson.Store) (l backend.Lease) {
	p.t.Helper()
	await(p.t, "the message", func() bool {
		c, err := q.Claim(p.ctx, 1, time.Hour, redistest.Name())
		must(p.t, err)
		for _, d := range c.Deliveries {
			l = d.Lease()
		}
		return len(c.Deliveries) > 0
	})
	return l
}

func nothing(*place, redisson.Store) {}

func leasedAgain(p *place, others redisson.Store) { p.lease(others) }

func givenBack(p *place, others redisson.Store) {
	must(p.t, p.settle(others, "nack", p.lease(others))...)
}

func deadByOther(p *place, others redisson.Store) {
	must(p.t, p.settle(others, "dead", p.lease(others))...)
}

func deletedByJava(p *place, _ redisson.Store) { must(p.t, p.raw.Del(p.ctx, p.times()).Err()) }

func pushedAgain(p *place, others redisson.Store) { p.pushHeld(others, redisson.Envelope) }

func leasedAnew(p *place, others redisson.Store) {
	pushedAgain(p, others)
	p.lease(others)
}

func revived(p *place, others redisson.Store) {
	ids, _, err := others.ListDeadIDs(p.ctx, "", 1)
	must(p.t, err)
	must(p.t, others.Redrive(p.ctx, ids)...)
}

func revivedAndLeased(p *place, others redisson.Store) {
	revived(p, others)
	p.lease(others)
}

func givenBackAnew(p *place, others redisson.Store) {
	pushedAgain(p, others)
	givenBack(p, others)
}

func revivedAndGivenBack(p *place, others redisson.Store) {
	revived(p, others)
	givenBack(p, others)
}
