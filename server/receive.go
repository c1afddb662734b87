package server

import (
	"context"
	"errors"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/limits"
	"github.com/delayq/delayq/internal/valid"
	"github.com/delayq/delayq/internal/wire"
)

const (
	defaultLease = 30 * time.Second
	// shortestWait gives a store the time for one look.
	shortestWait = 100 * time.Millisecond
)

func (c *request) receive() (any, error) {
	asked, err := read[wire.Receive](c)
	if err != nil {
		return nil, err
	}
	if asked.Limit == 0 {
		asked.Limit = 1
	}
	lease := time.Duration(asked.LeaseFor)
	if lease == 0 {
		lease = defaultLease
	}
	if err := c.many(asked.Limit); err != nil {
		return nil, err
	}
	if err := valid.Lease("lease_for", lease); err != nil {
		return nil, err
	}
	if asked.Wait < 0 {
		return nil, backend.Invalid("wait", time.Duration(asked.Wait), "0 or more")
	}
	if c.waiting.Add(1) > int64(c.settings.waiting) {
		c.waiting.Add(-1)
		return nil, &ownProblem{wire.New(wire.TooMany, "so many receives wait that no further one may; come again later")}
	}
	defer c.Server.waiting.Add(-1)
	ds, err := c.await(asked.Limit, lease, min(max(time.Duration(asked.Wait), shortestWait), c.wait), asked.KeepExpired)
	if err != nil {
		return nil, err
	}
	c.held = leasesOf(ds)
	return received(ds), nil
}

func received(ds []backend.Delivery) wire.Received {
	reply := wire.Received{Messages: make([]wire.Delivery, len(ds))}
	for i, d := range ds {
		reply.Messages[i] = wire.DeliveryOf(d, shownLimits(d.Headers))
	}
	return reply
}

// await returns no messages when the time is over, the server drains, or the client ends it.
func (c *request) await(limit int, lease, wait time.Duration, keepExpired bool) ([]backend.Delivery, error) {
	ctx, cancel := context.WithTimeout(c.ctx, wait)
	defer cancel()
	defer context.AfterFunc(c.draining, cancel)()
	for c.draining.Err() == nil {
		ds, err := c.take(ctx, limit, lease)
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) || errors.Is(err, backend.ErrClosed) && c.draining.Err() != nil {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if !keepExpired {
			ds = c.dropExpired(ds, lease)
		}
		if len(ds) > 0 {
			return ds, nil
		}
	}
	return nil, nil
}

// dropExpired deletes the messages that have expired, or makes them dead letters. A store may have
// rounded the end of the lease up: only what remains without that is the time of the hand-out for
// sure.
func (c *request) dropExpired(ds []backend.Delivery, lease time.Duration) (rest []backend.Delivery) {
	var drop []backend.Lease
	var dead []backend.DeadLetterRequest
	for _, d := range ds {
		l := storedLimits(d.Headers)
		switch {
		case l == nil || !l.ExpiredAt(d.Until.Add(-lease-c.traits.Resolution), d.Due):
			rest = append(rest, d)
		case l.DeadLetterExpired:
			dead = append(dead, backend.DeadLetterRequest{Lease: d.Lease(), Reason: reasonExpired})
		default:
			drop = append(drop, d.Lease())
		}
	}
	within := min(c.timeout, lease/3) // the others wait for it
	if len(rest) == 0 {
		within = max(within, time.Second)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), within)
	defer cancel()
	var errs []error
	if len(drop) > 0 {
		errs = append(errs, c.q.Ack(ctx, drop)...)
	}
	if len(dead) > 0 {
		errs = append(errs, c.q.Dead(ctx, dead)...)
		c.q.trimmer.Died(len(dead))
	}
	if err := errors.Join(errs...); err != nil {
		c.log.Warn("delayq: deleting expired messages failed; they come again", "queue", c.name, "err", err)
	}
	return rest
}

// reasonExpired is the text of delayq.ErrExpired.
const reasonExpired = "message expired before it was handed out"

// storedLimits reads the limits of a message, and leaves its headers alone.
func storedLimits(headers map[string]string) *limits.Stored {
	text, ok := headers[limits.Header]
	if !ok {
		return nil
	}
	return limits.Take(&map[string]string{limits.Header: text})
}

func shownLimits(headers map[string]string) *backend.Limits { return storedLimits(headers).Shown() }

func leasesOf(ds []backend.Delivery) []backend.Lease {
	ls := make([]backend.Lease, len(ds))
	for i, d := range ds {
		ls[i] = d.Lease()
	}
	return ls
}

// returnUntouched gives messages back, and their attempts do not count. If that fails, their leases end in time.
func (c *request) returnUntouched(ls []backend.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.http.Context()), c.timeout)
	defer cancel()
	rs := make([]backend.Return, len(ls))
	for i, l := range ls {
		rs[i] = backend.Return{Lease: l, Untouched: true}
	}
	err := c.enter(ctx)
	if err == nil {
		err = errors.Join(c.q.Nack(ctx, rs)...)
	}
	if err != nil {
		c.log.Warn("delayq: giving back what was not sent failed; it returns when its lease ends", "queue", c.name, "err", err)
	}
}

// endReceive ends a receive of the same caller, which then replies with no message, or with those
// that it has just taken.
func (c *request) endReceive() (any, error) {
	asked, err := read[wire.EndReceive](c)
	if err != nil {
		return nil, err
	}
	if asked.Key == "" || len(asked.Key) > maxKey {
		return nil, backend.Invalid("key", asked.Key, "the Idempotency-Key of a receive")
	}
	path := c.http.URL.EscapedPath()
	path = path[:len(path)-len("/end")]
	c.replies.end(keyOf(c.caller.name, path, asked.Key), jsonReply(200, received(nil)))
	return wire.Done{}, nil
}
