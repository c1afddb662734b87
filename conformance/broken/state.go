package broken

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

var stateFaults = []Fault{
	{Name: "says that it cancelled a message, and hands it out", Rule: "cancel", wrap: func(q *queue) backend.Queue { return &promiser{q} }},
	{Name: "ignores the cancel of a message in flight", Rule: "cancel-in-flight", wrap: func(q *queue) backend.Queue { return &agreeable{q, backend.ErrInFlight} }},
	{Name: "cancels what is not there", Rule: "cancel-settled", wrap: func(q *queue) backend.Queue { return &agreeable{q, backend.ErrNotFound} }},
	{Name: "looks, and cancels later", Rule: "cancel-race", wrap: func(q *queue) backend.Queue { return &racer{queue: q, doomed: map[string]bool{}} }},
	{Name: "moves a message in flight", Rule: "reschedule-states", wrap: func(q *queue) backend.Queue { return &mover{q} }},
	{Name: "hands out dead messages", Rule: "dead-is-out", wrap: func(q *queue) backend.Queue { return &undead{q} }},
	{Name: "buries without the attempts being over", Rule: "poison", wrap: func(q *queue) backend.Queue { return &pessimist{q} }},
	{Name: "lets a message that kills its worker live on", Rule: "poison-kills-worker", wrap: func(q *queue) backend.Queue {
		return &stopsCounting{q}
	}},
	{Name: "deletes no dead letter, and says it did", Rule: "delete-dead", wrap: func(q *queue) backend.Queue { return &hoarder{q} }},
	{Name: "accepts a push after Close", Rule: "closed", wrap: func(q *queue) backend.Queue { return &openDoor{queue: q} }},
	{Name: "sleeps on after Close", Rule: "close-wakes", wrap: func(q *queue) backend.Queue { return &heavySleeper{q} }},
	{Name: "takes its messages with it when it closes", Rule: "close-keeps", wrap: func(q *queue) backend.Queue { return &taker{q} }},
	{Name: "leaves a goroutine behind", Rule: "close-leaves-no-goroutine", wrap: func(q *queue) backend.Queue { return &leaver{q} }},
	{Name: "loses what a stopping worker gives back", Rule: "stop-returns-untouched", wrap: func(q *queue) backend.Queue { return &greedy{queue: q} }},
	{Name: "forgets a message that failed twice", Rule: "consume", wrap: func(q *queue) backend.Queue { return &impatient{q} }},
	{Name: "refuses odd arguments only when it feels like it", Rule: "bad-input", wrap: func(q *queue) backend.Queue { return &pushy{q} }},
	{Name: "claims to cancel, and cannot", Rule: "unsupported", wrap: func(q *queue) backend.Queue { return &pretender{q} }},
	{Name: "lets a lease be extended after an ack", Rule: "model", wrap: func(q *queue) backend.Queue { return &unextended{q} }},
}

func (q *queue) clock() clockwork.Clock {
	if q.options.Clock != nil {
		return q.options.Clock
	}
	return clockwork.NewRealClock()
}

type promiser struct{ *queue }

func (q *promiser) Cancel(context.Context, []string) []error { return nil }

// agreeable turns one refusal into a yes.
type agreeable struct {
	*queue
	to error
}

func (q *agreeable) Cancel(ctx context.Context, ids []string) []error {
	errs := q.Queue.Cancel(ctx, ids)
	for i, err := range errs {
		if errors.Is(err, q.to) {
			errs[i] = nil
		}
	}
	return errs
}

type pretender struct{ *queue }

func (q *pretender) Cancel(_ context.Context, ids []string) []error {
	return backend.FailAll(len(ids), &backend.UnsupportedError{Backend: "broken", Op: "cancel"})
}

// stopsCounting counts attempts to two.
type stopsCounting struct{ *queue }

func (q *stopsCounting) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	return q.handed(ctx, limit, lease, func(d *backend.Delivery) { d.Attempt = min(d.Attempt, 2) })
}

// racer decides about a cancel before it carries it out.
type racer struct {
	*queue
	mu     sync.Mutex
	doomed map[string]bool
}

func (q *racer) Cancel(ctx context.Context, ids []string) []error {
	s, err := q.Stats(ctx)
	if err != nil || s.Ready == 0 {
		return q.Queue.Cancel(ctx, ids)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.doomed[ids[0]] {
		return []error{backend.ErrNotFound}
	}
	q.doomed[ids[0]] = true
	return nil
}

type mover struct{ *queue }

func (q *mover) Reschedule(ctx context.Context, ms []backend.Move) []error {
	errs := q.Queue.Reschedule(ctx, ms)
	for i, err := range errs {
		if errors.Is(err, backend.ErrInFlight) {
			errs[i] = nil
		}
	}
	return errs
}

type undead struct{ *queue }

func (q *undead) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	for i := range bs {
		if errs := q.Nack(ctx, []backend.Return{{Lease: bs[i].Lease}}); errs != nil {
			return backend.FailAll(len(bs), errs[0])
		}
	}
	return nil
}

// pessimist buries what is given back.
type pessimist struct{ *queue }

func (q *pessimist) Nack(ctx context.Context, rs []backend.Return) []error {
	bs := make([]backend.DeadLetterRequest, len(rs))
	for i, r := range rs {
		bs[i].Lease = r.Lease
	}
	return q.Dead(ctx, bs)
}

type hoarder struct{ *queue }

func (q *hoarder) DeleteDead(context.Context, []string) []error { return nil }

// openDoor takes messages through another handle.
type openDoor struct {
	*queue
	once sync.Once
	side backend.Queue
}

func (q *openDoor) Schedule(ctx context.Context, ms []backend.Message) []error {
	q.once.Do(func() { q.side, _ = q.backend.Open(ctx, q.name, q.options) })
	return q.side.Schedule(ctx, ms)
}

type heavySleeper struct{ *queue }

func (q *heavySleeper) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	ds, err := q.Queue.Receive(ctx, limit, lease)
	if errors.Is(err, backend.ErrClosed) {
		<-ctx.Done()
	}
	return ds, err
}

// taker settles all that is due before it closes.
type taker struct{ *queue }

func (q *taker) Close() error {
	for {
		ds, err := q.now(100, time.Hour)
		if err != nil {
			return q.Queue.Close()
		}
		q.drop(ds)
	}
}

type leaver struct{ *queue }

// Close leaves a goroutine for longer than anybody looks for it.
func (q *leaver) Close() error {
	go func() { <-time.After(5 * time.Second) }()
	return q.Queue.Close()
}

// greedy fetches ahead, and counts that as an attempt when it gives back.
type greedy struct{ *queue }

func (q *greedy) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	ahead, _ := q.now(20, lease)
	for _, d := range ahead {
		q.Nack(context.Background(), []backend.Return{{Lease: d.Lease()}})
	}
	return q.Queue.Receive(ctx, limit, lease)
}

// impatient puts off a retry for ever.
type impatient struct{ *queue }

func (q *impatient) Nack(ctx context.Context, rs []backend.Return) []error {
	for i := range rs {
		rs[i].Delay += 10000 * time.Hour
	}
	return q.Queue.Nack(ctx, rs)
}

// pushy pushes one message more for each.
type pushy struct{ *queue }

func (q *pushy) Schedule(ctx context.Context, ms []backend.Message) []error {
	q.Queue.Schedule(ctx, changed(ms, func(m *backend.Message) { m.ID += "+" }))
	return q.Queue.Schedule(ctx, ms)
}
