package chaos

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
)

// MisuseClient makes calls with bad input through package delayq, as a program with mistakes does.
// In between it receives messages and acks them, also twice.
func MisuseClient(e *Env, proc int) Run {
	return func(ctx context.Context, b backend.Backend) {
		c := &misuseClient{client: newClient(e, proc, b)}
		for c.dq == nil && !e.ended(ctx) {
			within, cancel := context.WithTimeout(ctx, callTime)
			q, err := c.openQueue(within)
			cancel()
			if err != nil {
				c.rest(ctx, 20*shortPause)
				continue
			}
			c.dq = q
			defer func() { _ = q.Close() }()
		}
		for !e.ended(ctx) {
			c.round(ctx)
			c.rest(ctx, 4*shortPause+jitter(c.rng, 16*shortPause))
		}
	}
}

type misuseClient struct {
	*client
	dq       delayq.Queue
	received uint64
	mistakes []delayq.Message
	about    []string // what is wrong with each of them
}

const misuseLease = 2 * time.Second

func (c *misuseClient) openQueue(ctx context.Context) (delayq.Queue, error) {
	return delayq.New(ctx, c.Queue, delayq.WithBackend(c.b), delayq.WithLease(misuseLease), delayq.WithLogger(noLog))
}

// Names of the errors that misuse gets.
const (
	invalid     = "invalid"
	unsupported = "unsupported"
	closed      = "closed"
	notFound    = "not-found"
	leaseLost   = "lease-lost"
	unknown     = "unknown" // a fault may hide the error of a call that reaches the store
)

var sentinels = map[string]error{
	unsupported: backend.ErrUnsupported, notFound: backend.ErrNotFound, leaseLost: backend.ErrLeaseLost, closed: backend.ErrClosed,
	"duplicate": backend.ErrDuplicate, "in-flight": backend.ErrInFlight,
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
	for name, sentinel := range sentinels {
		if errors.Is(err, sentinel) {
			return name
		}
	}
	return unknown
}

func (c *misuseClient) round(ctx context.Context) {
	switch c.rng.IntN(8) {
	case 0, 1, 2:
		c.badPush(ctx)
	case 3:
		c.unknownIDs(ctx)
	case 4:
		c.badName(ctx)
	case 5:
		c.badReceive(ctx)
	case 6:
		c.pushAfterClose(ctx)
	default:
		c.badSettle(ctx)
	}
}

// misuse makes a call that must be rejected with one of the wanted errors. It must not push the
// items, or is about them.
func (c *misuseClient) misuse(ctx context.Context, what string, items []judge.Item, do func(context.Context) error, want ...string) {
	call := judge.Call{Op: judge.Misuse, Items: items, Misuse: &judge.Mistake{What: what, Want: want}}
	c.call(ctx, callTime, call, func(ctx context.Context, call *judge.Call) error {
		err := do(ctx)
		call.Misuse = &judge.Mistake{What: what, Want: want, Got: sentinelOf(err)} // the first one is recorded already
		for i := range call.Items {
			call.Items[i].Out = judge.Refused
		}
		return err
	})
}

// badPush pushes a good message and a bad one together; neither may be stored.
func (c *misuseClient) badPush(ctx context.Context) {
	first, ok := c.Numbers.take(2)
	if !ok {
		return
	}
	if c.mistakes == nil {
		c.makeMistakes()
	}
	i := c.rng.IntN(len(c.mistakes))
	bad, want := c.mistakes[i], invalid
	if !c.Traits.Supports(backend.OwnIDs) && bad.ID != "" || !c.Traits.Supports(backend.KeepingHeaders) && len(bad.Headers) > 0 {
		want = unsupported
	}
	if bad.Body == nil {
		bad.Body = bodyOf(first + 1)
	}
	c.misuse(ctx, "pushing "+c.about[i], []judge.Item{{N: first}, {N: first + 1}}, func(ctx context.Context) error {
		_, err := c.dq.PushBatch(ctx, []delayq.Message{{Body: bodyOf(first)}, bad})
		return err
	}, want)
}

func (c *misuseClient) makeMistakes() {
	add := func(about string, m delayq.Message) {
		c.about, c.mistakes = append(c.about, about), append(c.mistakes, m)
	}
	header := func(key, value string) delayq.Message { return delayq.Message{Headers: map[string]string{key: value}} }
	add("a negative delay", delayq.Message{Delay: -time.Second})
	add("a delay of 292 years", delayq.Message{Delay: math.MaxInt64})
	add("a due time before 1970", delayq.Message{Due: time.Unix(-1, 0)})
	add("a due time in year 300000", delayq.Message{Due: time.Date(300000, 1, 1, 0, 0, 0, 0, time.UTC)})
	add("a due time and a delay", delayq.Message{Due: time.Unix(1e9, 0), Delay: 1})
	add("an id with NUL", delayq.Message{ID: "a\x00b"})
	add("an id of 256 bytes", delayq.Message{ID: strings.Repeat("x", backend.MaxID+1)})
	add("an id that is not UTF-8", delayq.Message{ID: "\xff"})
	add("too large a body", delayq.Message{Body: make([]byte, cmp.Or(c.Traits.MaxBody, backend.MaxBody)+1)})
	add("a header key with NUL", header("a\x00b", ""))
	add("an empty header key", header("", "x"))
	add("a reserved header key", header("delayq-x", "x"))
	add("headers of more than 64 KiB", header("x", strings.Repeat("x", backend.MaxHeaders)))
}

// unknownIDs cancels and reschedules a message that does not exist.
func (c *misuseClient) unknownIDs(ctx context.Context) {
	c.misuse(ctx, "cancelling an unknown id", nil, func(ctx context.Context) error { return c.dq.Cancel(ctx, "nobody") },
		c.wantNotFound(delayq.Cancelling)...)
	c.misuse(ctx, "rescheduling an unknown id", nil, func(ctx context.Context) error {
		return c.dq.Reschedule(ctx, "nobody", time.Now().Add(time.Second))
	}, c.wantNotFound(delayq.Rescheduling)...)
}

func (c *misuseClient) wantNotFound(f delayq.Feature) []string {
	switch {
	case !c.dq.Supports(f):
		return []string{unsupported}
	case !c.Traits.Supports(backend.CancelNotFound):
		return []string{"ok", unknown}
	default:
		return []string{notFound, unknown}
	}
}

// badName opens a queue by a name that is not allowed.
func (c *misuseClient) badName(ctx context.Context) {
	names := []string{"", strings.Repeat("n", backend.MaxName+1)}
	if !c.Traits.AnyName {
		names = append(names, "a/b", "{a}", "a*", "a\x00b", "ä")
	}
	name := pick(c.rng, names)
	c.misuse(ctx, "opening a queue of a bad name", nil, func(ctx context.Context) error {
		q, err := delayq.New(ctx, name, delayq.WithBackend(c.b))
		if err == nil {
			_ = q.Close()
		}
		return err
	}, invalid)
}

func (c *misuseClient) badReceive(ctx context.Context) {
	limit := pick(c.rng, []int{0, -1, delayq.MaxBatch + 1})
	c.misuse(ctx, "receiving too few or too many", nil, func(ctx context.Context) error {
		_, err := c.dq.ReceiveBatch(ctx, limit)
		return err
	}, invalid)
	c.misuse(ctx, "receiving without a context", nil, func(context.Context) error {
		var none context.Context
		_, err := c.dq.Receive(none)
		return err
	}, invalid)
}

func (c *misuseClient) pushAfterClose(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	q, err := c.openQueue(within)
	if err != nil {
		return
	}
	_ = q.Close() // it has no handlers
	if first, ok := c.Numbers.take(1); ok {
		c.misuse(ctx, "pushing on a closed queue", []judge.Item{{N: first}}, func(ctx context.Context) error {
			_, err := q.Push(ctx, bodyOf(first))
			return err
		}, closed)
	}
}

// badSettle receives a message, and makes mistakes with it before and after the ack.
func (c *misuseClient) badSettle(ctx context.Context) {
	d, it := c.receive(ctx)
	if d == nil {
		return
	}
	about := func() []judge.Item { return []judge.Item{{N: it.N, Token: it.Token}} }
	c.misuse(ctx, "extending a lease by nothing", about(), func(ctx context.Context) error { return d.Extend(ctx, 0) }, invalid)
	c.misuse(ctx, "giving back with a negative delay", about(), func(ctx context.Context) error { return d.Nack(ctx, -1) }, invalid)
	acked := c.batch(ctx, judge.Call{Op: judge.Ack, Items: about()}, func(ctx context.Context) []error { return []error{d.Ack(ctx)} })
	if acked.Items[0].Out == judge.OK {
		c.misuse(ctx, "acknowledging twice", about(), d.Ack, leaseLost, unknown)
		c.misuse(ctx, "giving back after the ack", about(), func(ctx context.Context) error { return d.Nack(ctx, 0) }, leaseLost, unknown)
	}
}

// receive records a delivery under a token of its own: package delayq hides the store's.
func (c *misuseClient) receive(ctx context.Context) (d *delayq.Delivery, it judge.Item) {
	c.received++
	c.call(ctx, maxWait, judge.Call{Op: judge.Receive, Lease: int64(misuseLease)}, func(ctx context.Context, call *judge.Call) (err error) {
		if d, err = c.dq.Receive(ctx); err != nil {
			return err
		}
		it = c.delivered(&backend.Delivery{
			ID: d.ID, Body: d.Body, Headers: d.Headers, Due: d.Due, Attempt: d.Attempt,
			Token: backend.Token{Hi: math.MaxUint64, Lo: c.received}, Until: d.LeaseUntil(),
		})
		call.Items = append(call.Items, it)
		return nil
	})
	return d, it
}
