package chaos

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// Blunderer makes calls with bad input through package delayq, as a program with mistakes does, between which it takes messages and acknowledges
// them, also twice.
func Blunderer(s *Stage, proc int) func(context.Context, backend.Backend) {
	return func(ctx context.Context, b backend.Backend) {
		c := &blunderer{actor: newActor(s, proc, b)}
		if c.dq = c.enter(ctx); c.dq == nil {
			return
		}
		defer func() { _ = c.dq.Close() }()
		for ctx.Err() == nil && !s.Draining.Load() && !s.Stopping.Load() {
			c.blunder(ctx)
			c.rest(ctx, 4*breath+jitter(c.dice, 16*breath))
		}
	}
}

type blunderer struct {
	*actor
	dq    delayq.Queue
	taken uint64
	huge  []byte
}

// clumsyLease is that of what a blunderer takes.
const clumsyLease = 2 * time.Second

// enter opens a queue, as often as it takes; nil when the run is over before.
func (b *blunderer) enter(ctx context.Context) delayq.Queue {
	for ctx.Err() == nil && !b.Draining.Load() && !b.Stopping.Load() {
		within, cancel := context.WithTimeout(ctx, callTime)
		q, err := delayq.New(within, b.Queue, delayq.WithBackend(b.b), delayq.WithLease(clumsyLease), delayq.WithLogger(slog.New(slog.DiscardHandler)))
		cancel()
		if err == nil {
			return q
		}
		b.rest(ctx, 20*breath)
	}
	return nil
}

// What is refused before the store is asked has one answer. Where the store is asked, faults may take the answer away.
const (
	invalid     = "invalid"
	unsupported = "unsupported"
	unknown     = "unknown"
)

func (b *blunderer) blunder(ctx context.Context) {
	switch b.dice.IntN(8) {
	case 0, 1, 2:
		b.pushBadly(ctx)
	case 3:
		b.callNobody(ctx)
	case 4:
		b.nameBadly(ctx)
	case 5:
		b.receiveBadly(ctx)
	case 6:
		b.afterClose(ctx)
	default:
		b.holdBadly(ctx)
	}
}

// wrong makes a call that must be refused. ns are the messages that it must not have pushed, or is about.
func (b *blunderer) wrong(ctx context.Context, what string, want []string, items []Item, do func(context.Context) error) {
	c := Call{Op: Wrong, Items: items, Wrong: &Mistake{What: what, Want: want}}
	b.call(ctx, callTime, c, func(ctx context.Context, c *Call) error {
		err := do(ctx)
		m := *c.Wrong
		m.Got = sentinelOf(err)
		c.Wrong = &m
		for i := range c.Items {
			c.Items[i].Out = Refused
		}
		return err
	})
}

var sentinels = []struct {
	err  error
	name string
}{
	{backend.ErrUnsupported, unsupported}, {backend.ErrNotFound, "not-found"}, {backend.ErrLeaseLost, "lease-lost"}, {backend.ErrClosed, "closed"},
	{backend.ErrDuplicate, "duplicate"}, {backend.ErrInFlight, "in-flight"},
}

// sentinelOf names what an error is. One for bad input has to say what is allowed.
func sentinelOf(err error) string {
	var bad *backend.InvalidError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &bad) && bad.Allowed != "" && errors.Is(err, backend.ErrInvalid):
		return invalid
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			return s.name
		}
	}
	return unknown
}

// pushBadly pushes a good message and a bad one together, of which neither may be stored.
func (b *blunderer) pushBadly(ctx context.Context) {
	first, ok := b.Numbers.take(2)
	if !ok {
		return
	}
	what, bad := b.badMessage()
	want := invalid
	if !b.Traits.Supports(backend.OwnIDs) && bad.ID != "" || !b.Traits.Supports(backend.Headers) && len(bad.Headers) > 0 {
		want = unsupported
	}
	if bad.Body == nil {
		bad.Body = bodyOf(first + 1)
	}
	b.wrong(ctx, "pushing "+what, []string{want}, []Item{{N: first}, {N: first + 1}}, func(ctx context.Context) error {
		_, err := b.dq.PushBatch(ctx, []delayq.Message{{Body: bodyOf(first)}, bad})
		return err
	})
}

func (b *blunderer) badMessage() (what string, m delayq.Message) {
	if b.huge == nil {
		b.huge = make([]byte, cmp.Or(b.Traits.MaxBody, backend.MaxBody)+1)
	}
	bad := []struct {
		what string
		m    delayq.Message
	}{
		{"a negative delay", delayq.Message{Delay: -time.Second}},
		{"a delay of 292 years", delayq.Message{Delay: math.MaxInt64}},
		{"a due time before 1970", delayq.Message{Due: time.Unix(-1, 0)}},
		{"a due time in year 300000", delayq.Message{Due: time.Date(300000, 1, 1, 0, 0, 0, 0, time.UTC)}},
		{"a due time and a delay", delayq.Message{Due: time.Unix(1e9, 0), Delay: 1}},
		{"an id with NUL", delayq.Message{ID: "a\x00b"}},
		{"an id of 256 bytes", delayq.Message{ID: strings.Repeat("x", backend.MaxID+1)}},
		{"an id that is not UTF-8", delayq.Message{ID: "\xff"}},
		{"too large a body", delayq.Message{Body: b.huge}},
		{"a header key with NUL", delayq.Message{Headers: map[string]string{"a\x00b": ""}}},
		{"an empty header key", delayq.Message{Headers: map[string]string{"": "x"}}},
		{"a reserved header key", delayq.Message{Headers: map[string]string{"delayq-x": "x"}}},
		{"headers of more than 64 KiB", delayq.Message{Headers: map[string]string{"x": strings.Repeat("x", backend.MaxHeaders)}}},
	}
	one := bad[b.dice.IntN(len(bad))]
	return one.what, one.m
}

// callNobody cancels or moves what is not there.
func (b *blunderer) callNobody(ctx context.Context) {
	b.wrong(ctx, "cancelling an unknown id", b.nobody(delayq.Cancelling), nil, func(ctx context.Context) error { return b.dq.Cancel(ctx, "nobody") })
	b.wrong(ctx, "moving an unknown id", b.nobody(delayq.Rescheduling), nil, func(ctx context.Context) error {
		return b.dq.Reschedule(ctx, "nobody", time.Now().Add(time.Second))
	})
}

func (b *blunderer) nobody(f delayq.Feature) []string {
	switch {
	case !b.dq.Supports(f):
		return []string{unsupported}
	case !b.Traits.Supports(backend.CancelNotFound):
		return []string{"ok", unknown}
	default:
		return []string{"not-found", unknown}
	}
}

// nameBadly opens queues that cannot be.
func (b *blunderer) nameBadly(ctx context.Context) {
	names := []string{"", strings.Repeat("n", backend.MaxName+1)}
	if !b.Traits.AnyName {
		names = append(names, "a/b", "{a}", "a*", "a\x00b", "ä")
	}
	name := pick(b.dice, names)
	b.wrong(ctx, "opening a queue of a bad name", []string{invalid}, nil, func(ctx context.Context) error {
		q, err := delayq.New(ctx, name, delayq.WithBackend(b.b))
		if err == nil {
			_ = q.Close()
		}
		return err
	})
}

func (b *blunderer) receiveBadly(ctx context.Context) {
	limit := pick(b.dice, []int{0, -1, delayq.MaxBatch + 1})
	b.wrong(ctx, "receiving too few or too many", []string{invalid}, nil, func(ctx context.Context) error {
		_, err := b.dq.ReceiveBatch(ctx, limit)
		return err
	})
	b.wrong(ctx, "receiving without a context", []string{invalid}, nil, func(context.Context) error {
		var none context.Context
		_, err := b.dq.Receive(none)
		return err
	})
}

// afterClose pushes on a handle that is closed.
func (b *blunderer) afterClose(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	q, err := delayq.New(within, b.Queue, delayq.WithBackend(b.b), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return
	}
	_ = q.Close() // it has no handlers
	first, ok := b.Numbers.take(1)
	if !ok {
		return
	}
	b.wrong(ctx, "pushing on a closed queue", []string{"closed"}, []Item{{N: first}}, func(ctx context.Context) error {
		_, err := q.Push(ctx, bodyOf(first))
		return err
	})
}

// holdBadly takes a message, and makes mistakes with it before and after it is done.
func (b *blunderer) holdBadly(ctx context.Context) {
	d, it := b.take(ctx)
	if d == nil {
		return
	}
	about := func() []Item { return []Item{{N: it.N, Token: it.Token}} }
	b.wrong(ctx, "extending a lease by nothing", []string{invalid}, about(), func(ctx context.Context) error { return d.Extend(ctx, 0) })
	b.wrong(ctx, "giving back with a negative delay", []string{invalid}, about(), func(ctx context.Context) error { return d.Nack(ctx, -1) })
	c := b.call(ctx, callTime, Call{Op: Ack, Items: about()}, func(ctx context.Context, c *Call) error { return sortOut(c, []error{d.Ack(ctx)}) })
	if c.Items[0].Out == OK {
		lost := []string{"lease-lost", unknown}
		b.wrong(ctx, "acknowledging twice", lost, about(), d.Ack)
		b.wrong(ctx, "giving back what is done", lost, about(), func(ctx context.Context) error { return d.Nack(ctx, 0) })
	}
}

// take records a hand-out under a token of its own: that of the store is not to be seen here.
func (b *blunderer) take(ctx context.Context) (d *delayq.Delivery, it Item) {
	b.taken++
	b.call(ctx, waitAtMost, Call{Op: Take, Lease: int64(clumsyLease)}, func(ctx context.Context, c *Call) (err error) {
		if d, err = b.dq.Receive(ctx); err != nil {
			return err
		}
		n, whole := recognize(d.Body, d.Headers, b.Traits.Supports(backend.Headers))
		if b.Traits.Supports(backend.OwnIDs) {
			whole = whole && d.ID == b.idOf(n)
		}
		it = Item{
			N: n, Out: OK, Bad: !whole, Attempt: d.Attempt, Token: backend.Token{Hi: math.MaxUint64, Lo: b.taken}, Due: d.Due.UnixNano(), Until: d.LeaseUntil().UnixNano(),
		}
		c.Items = append(c.Items, it)
		return nil
	})
	return d, it
}
