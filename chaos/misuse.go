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
	"github.com/delayq/delayq/internal/judge"
)

// MisuseClient makes calls with bad input through package delayq, as a program with mistakes does.
// In between it receives messages and acknowledges them, also twice.
func MisuseClient(e *Env, proc int) func(context.Context, backend.Backend) {
	return func(ctx context.Context, b backend.Backend) {
		c := &misuseClient{client: newClient(e, proc, b)}
		if c.dq = c.openQueue(ctx); c.dq == nil {
			return
		}
		defer func() { _ = c.dq.Close() }()
		for ctx.Err() == nil && !e.Draining.Load() && !e.Stopping.Load() {
			c.round(ctx)
			c.rest(ctx, 4*breath+jitter(c.dice, 16*breath))
		}
	}
}

type misuseClient struct {
	*client
	dq       delayq.Queue
	received uint64
	huge     []byte
}

const misuseLease = 2 * time.Second

// openQueue opens a queue, and retries until the test run ends; then it returns nil.
func (b *misuseClient) openQueue(ctx context.Context) delayq.Queue {
	for ctx.Err() == nil && !b.Draining.Load() && !b.Stopping.Load() {
		within, cancel := context.WithTimeout(ctx, callTime)
		q, err := delayq.New(within, b.Queue, delayq.WithBackend(b.b), delayq.WithLease(misuseLease), delayq.WithLogger(slog.New(slog.DiscardHandler)))
		cancel()
		if err == nil {
			return q
		}
		b.rest(ctx, 20*breath)
	}
	return nil
}

// The errors that misuse may get. A fault may make the error of a call that reaches the store unknown.
const (
	invalid     = "invalid"
	unsupported = "unsupported"
	unknown     = "unknown"
)

func (b *misuseClient) round(ctx context.Context) {
	switch b.dice.IntN(8) {
	case 0, 1, 2:
		b.badPush(ctx)
	case 3:
		b.unknownIDs(ctx)
	case 4:
		b.badName(ctx)
	case 5:
		b.badReceive(ctx)
	case 6:
		b.afterClose(ctx)
	default:
		b.badSettle(ctx)
	}
}

// wrong makes a call that must be refused. items are the messages that it must not push, or is about.
func (b *misuseClient) wrong(ctx context.Context, what string, want []string, items []judge.Item, do func(context.Context) error) {
	c := judge.Call{Op: judge.Misuse, Items: items, Misuse: &judge.Mistake{What: what, Want: want}}
	b.call(ctx, callTime, c, func(ctx context.Context, c *judge.Call) error {
		err := do(ctx)
		m := *c.Misuse
		m.Got = sentinelOf(err)
		c.Misuse = &m
		for i := range c.Items {
			c.Items[i].Out = judge.Refused
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

// sentinelOf returns the name of an error. An error for bad input has to say what is allowed.
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

// badPush pushes a good message and a bad one together; neither may be stored.
func (b *misuseClient) badPush(ctx context.Context) {
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
	b.wrong(ctx, "pushing "+what, []string{want}, []judge.Item{{N: first}, {N: first + 1}}, func(ctx context.Context) error {
		_, err := b.dq.PushBatch(ctx, []delayq.Message{{Body: bodyOf(first)}, bad})
		return err
	})
}

func (b *misuseClient) badMessage() (what string, m delayq.Message) {
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

// unknownIDs cancels and reschedules a message that is not there.
func (b *misuseClient) unknownIDs(ctx context.Context) {
	b.wrong(ctx, "cancelling an unknown id", b.notFound(delayq.Cancelling), nil, func(ctx context.Context) error { return b.dq.Cancel(ctx, "nobody") })
	b.wrong(ctx, "rescheduling an unknown id", b.notFound(delayq.Rescheduling), nil, func(ctx context.Context) error {
		return b.dq.Reschedule(ctx, "nobody", time.Now().Add(time.Second))
	})
}

func (b *misuseClient) notFound(f delayq.Feature) []string {
	switch {
	case !b.dq.Supports(f):
		return []string{unsupported}
	case !b.Traits.Supports(backend.CancelNotFound):
		return []string{"ok", unknown}
	default:
		return []string{"not-found", unknown}
	}
}

// badName opens a queue by a name that is not allowed.
func (b *misuseClient) badName(ctx context.Context) {
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

func (b *misuseClient) badReceive(ctx context.Context) {
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
func (b *misuseClient) afterClose(ctx context.Context) {
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
	b.wrong(ctx, "pushing on a closed queue", []string{"closed"}, []judge.Item{{N: first}}, func(ctx context.Context) error {
		_, err := q.Push(ctx, bodyOf(first))
		return err
	})
}

// badSettle receives a message, and makes mistakes with it before and after the ack.
func (b *misuseClient) badSettle(ctx context.Context) {
	d, it := b.receive(ctx)
	if d == nil {
		return
	}
	about := func() []judge.Item { return []judge.Item{{N: it.N, Token: it.Token}} }
	b.wrong(ctx, "extending a lease by nothing", []string{invalid}, about(), func(ctx context.Context) error { return d.Extend(ctx, 0) })
	b.wrong(ctx, "giving back with a negative delay", []string{invalid}, about(), func(ctx context.Context) error { return d.Nack(ctx, -1) })
	c := b.call(ctx, callTime, judge.Call{Op: judge.Ack, Items: about()}, func(ctx context.Context, c *judge.Call) error { return c.SetOutcomes([]error{d.Ack(ctx)}) })
	if c.Items[0].Out == judge.OK {
		lost := []string{"lease-lost", unknown}
		b.wrong(ctx, "acknowledging twice", lost, about(), d.Ack)
		b.wrong(ctx, "giving back after the ack", lost, about(), func(ctx context.Context) error { return d.Nack(ctx, 0) })
	}
}

// receive records a delivery under a token of its own: package delayq hides the store's.
func (b *misuseClient) receive(ctx context.Context) (d *delayq.Delivery, it judge.Item) {
	b.received++
	b.call(ctx, waitAtMost, judge.Call{Op: judge.Receive, Lease: int64(misuseLease)}, func(ctx context.Context, c *judge.Call) (err error) {
		if d, err = b.dq.Receive(ctx); err != nil {
			return err
		}
		n, whole := recognize(d.Body, d.Headers, b.Traits.Supports(backend.Headers))
		if b.Traits.Supports(backend.OwnIDs) {
			whole = whole && d.ID == b.idOf(n)
		}
		it = judge.Item{
			N: n, Out: judge.OK, Altered: !whole, Attempt: d.Attempt, Token: backend.Token{Hi: math.MaxUint64, Lo: b.received}, Due: d.Due.UnixNano(), Until: d.LeaseUntil().UnixNano(),
		}
		c.Items = append(c.Items, it)
		return nil
	})
	return d, it
}
