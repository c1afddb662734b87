package server

import (
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/valid"
	"github.com/delayq/delayq/internal/wire"
)

// leases reads the leases that a body names.
func (c *request) leases(texts []string) ([]backend.Lease, error) {
	if err := c.many(len(texts)); err != nil {
		return nil, err
	}
	ls := make([]backend.Lease, len(texts))
	for i, text := range texts {
		var err error
		if ls[i], err = c.lease(text); err != nil {
			return nil, err
		}
	}
	return ls, nil
}

func (c *request) lease(text string) (backend.Lease, error) {
	l, err := wire.ReadLease(text)
	if err != nil {
		return l, err
	}
	return l, c.checkID(text, l)
}

// checkID rejects a lease whose id no pusher can have given. On PostgreSQL it would fail the others of
// the same call.
func (c *request) checkID(text string, l backend.Lease) error {
	if c.traits.Supports(backend.OwnIDs) && valid.ID(l.ID) != nil {
		return backend.Invalid("lease", text, "the lease of a message that was received")
	}
	return nil
}

func (c *request) namedLeases() ([]backend.Lease, error) {
	asked, err := readMany[wire.Leases](c)
	if err != nil {
		return nil, err
	}
	return c.leases(asked.Leases)
}

func (c *request) ack() (any, error) {
	ls, err := c.namedLeases()
	if err != nil {
		return nil, err
	}
	if len(ls) == 1 {
		return results(1, one(c.q.batch.Acks.Do(c.ctx, &[1]backend.Lease{ls[0]})), nil)
	}
	return results(len(ls), c.q.Ack(c.ctx, ls), nil)
}

func one(err error) []error { return []error{err} }

func (c *request) release() (any, error) {
	ls, err := c.namedLeases()
	if err != nil {
		return nil, err
	}
	rs := make([]backend.Return, len(ls))
	for i, l := range ls {
		rs[i] = backend.Return{Lease: l, Untouched: true}
	}
	return c.giveBackAll(rs)
}

func (c *request) nack() (any, error) {
	asked, err := readMany[wire.Nack](c)
	if err == nil {
		err = c.many(len(asked.Messages))
	}
	if err != nil {
		return nil, err
	}
	rs := make([]backend.Return, len(asked.Messages))
	for i := range rs {
		if rs[i], err = c.readReturn(&asked.Messages[i]); err != nil {
			return nil, err
		}
	}
	return c.giveBackAll(rs)
}

func (c *request) readReturn(asked *wire.Return) (backend.Return, error) {
	r, err := asked.Read()
	if err == nil {
		err = c.checkID(asked.Lease, r.Lease)
	}
	if err == nil {
		err = valid.Delay(r.Delay, c.traits)
	}
	if err == nil && r.Untouched && (r.Delay != 0 || r.NewHeaders) {
		err = backend.Invalid("untouched", wire.Described("with after or headers"), "untouched alone")
	}
	if err != nil || !r.NewHeaders {
		return r, err
	}
	if err := valid.Feature(backend.ChangingHeaders, backend.ChangingHeaders.String(), c.traits); err != nil {
		return r, err
	}
	own := ownHeaders(&r.Headers)
	err = valid.Headers(r.Headers, "")
	putBack(&r.Headers, own)
	return r, err
}

func (c *request) giveBackAll(rs []backend.Return) (any, error) {
	if len(rs) == 1 {
		return results(1, one(c.q.batch.Nacks.Do(c.ctx, &[1]backend.Return{rs[0]})), nil)
	}
	return results(len(rs), c.q.Nack(c.ctx, rs), nil)
}

func (c *request) extend() (any, error) {
	asked, err := readMany[wire.Extend](c)
	if err != nil {
		return nil, err
	}
	ls, err := c.leases(asked.Leases)
	if err == nil {
		err = valid.Lease("lease_for", time.Duration(asked.LeaseFor))
	}
	if err != nil {
		return nil, err
	}
	ends, errs := c.q.Extend(c.ctx, ls, time.Duration(asked.LeaseFor))
	return results(len(ls), errs, func(i int, r *wire.Result) { r.LeaseUntil = wire.Time(ends[i]) })
}

func (c *request) dead() (any, error) {
	asked, err := readMany[wire.Dead](c)
	if err == nil {
		err = c.many(len(asked.Messages))
	}
	if err != nil {
		return nil, err
	}
	requests := make([]backend.DeadLetterRequest, len(asked.Messages))
	for i, m := range asked.Messages {
		reason := m.Reason
		if m.ReasonBase64 != nil {
			reason = string(m.ReasonBase64)
		}
		l, err := c.lease(m.Lease)
		if err != nil {
			return nil, err
		}
		requests[i] = backend.DeadLetterRequest{Lease: l, Reason: valid.Reason(reason)}
	}
	errs := c.q.Dead(c.ctx, requests)
	died := len(requests)
	for _, err := range errs {
		if err != nil {
			died--
		}
	}
	c.q.trimmer.Died(died)
	return results(len(requests), errs, nil)
}
