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
	{"says that it cancelled a message, and hands it out", "cancel", func(q *queue) backend.Queue { return &promiser{q} }},
	{"ignores the cancel of a message in flight", "cancel-in-flight", func(q *queue) backend.Queue { return &agreeable{q, backend.ErrInFlight} }},
	{"cancels what is not there", "cancel-settled", func(q *queue) backend.Queue { return &agreeable{q, backend.ErrNotFound} }},
	{"looks, and cancels later", "cancel-race", func(q *queue) backend.Queue { return &racer{queue: q, doomed: map[string]bool{}} }},
	{"moves a message in flight", "reschedule-states", func(q *queue) backend.Queue { return &mover{q} }},
	{"hands out dead messages", "dead-is-out", func(q *queue) backend.Queue { return &undead{q} }},
	{"buries without the attempts being over", "poison", func(q *queue) backend.Queue { return &pessimist{q} }},
	{"lets a message that kills its worker live on", "poison-kills-worker", func(q *queue) backend.Queue {
		return &stopsCounting{q}
	}},
	{"deletes no dead letter, and says it did", "delete-dead", func(q *queue) backend.Queue { return &hoarder{q} }},
	{"accepts a push after Close", "closed", func(q *queue) backend.Queue { return &openDoor{queue: q} }},
	{"sleeps on after Close", "close-wakes", func(q *queue) backend.Queue { return &heavySleeper{q} }},
	{"takes its messages with it when it closes", "close-keeps", func(q *queue) backend.Queue { return &taker{q} }},
	{"leaves a goroutine behind", "close-leaves-no-goroutine", func(q *queue) backend.Queue { return &leaver{q} }},
	{"loses what a stopping worker gives back", "stop-returns-untouched", func(q *queue) backend.Queue { return &greedy{queue: q} }},
	{"forgets a message that failed twice", "consume", func(q *queue) backend.Queue { return &impatient{q} }},
	{"refuses odd arguments only when it feels like it", "bad-input", func(q *queue) backend.Queue { return &pushy{q} }},
	{"claims to cancel, and cannot", "unsupported", func(q *queue) backend.Queue { return &pretender{q} }},
	{"lets a lease be extended after an ack", "model", func(q *queue) backend.Queue { return &unextended{q} }},
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
	errs := q.whole.Cancel(ctx, ids)
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
		return q.whole.Cancel(ctx, ids)
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
	errs := q.whole.Reschedule(ctx, ms)
	for i, err := range errs {
		if errors.Is(err, backend.ErrInFlight) {
			errs[i] = nil
		}
	}
	return errs
}

type undead struct{ *queue }

func (q *undead) Dead(ctx context.Context, bs []backend.Burial) []error {
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
	bs := make([]backend.Burial, len(rs))
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
	ds, err := q.whole.Receive(ctx, limit, lease)
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
			return q.whole.Close()
		}
		q.drop(ds)
	}
}

type leaver struct{ *queue }

// Close leaves a goroutine for longer than anybody looks for it.
func (q *leaver) Close() error {
	go func() { <-time.After(5 * time.Second) }()
	return q.whole.Close()
}

// greedy fetches ahead, and counts that as an attempt when it gives back.
type greedy struct{ *queue }

func (q *greedy) Receive(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	ds, err := q.whole.Receive(ctx, limit, lease)
	if err != nil {
		return ds, err
	}
	ahead, _ := q.now(10, lease)
	for _, d := range ahead {
		q.Nack(context.Background(), []backend.Return{{Lease: d.Lease()}})
	}
	return ds, nil
}

// impatient puts off a retry for ever.
type impatient struct{ *queue }

func (q *impatient) Nack(ctx context.Context, rs []backend.Return) []error {
	for i := range rs {
		rs[i].Delay += 10000 * time.Hour
	}
	return q.whole.Nack(ctx, rs)
}

// pushy pushes one message more for each.
type pushy struct{ *queue }

func (q *pushy) Schedule(ctx context.Context, ms []backend.Message) []error {
	q.whole.Schedule(ctx, changed(ms, func(m *backend.Message) { m.ID += "+" }))
	return q.whole.Schedule(ctx, ms)
}
