package server

import (
	"slices"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/wire"
)

const defaultPage = 100

func (c *request) get() (any, error) {
	if err := c.needs(backend.Getting); err != nil {
		return nil, err
	}
	ids, err := c.ids()
	if err != nil {
		return nil, err
	}
	infos, errs := c.getSome(ids)
	return results(len(ids), errs, func(i int, r *wire.Result) {
		shown := wire.InfoOf(infos[i], shownLimits(infos[i].Headers))
		r.Message = &shown
	})
}

func (c *request) peek() (any, error) {
	if err := c.needs(backend.Peeking); err != nil {
		return nil, err
	}
	limit, err := c.number("limit", min(defaultPage, c.batch), c.batch)
	if err != nil {
		return nil, err
	}
	page, next, err := c.listed(c.q.Peek, c.query.Get("cursor"), limit)
	return pageOf(page, next), err
}

func pageOf(page []backend.MessageInfo, next string) wire.Page {
	shown := wire.Page{Messages: make([]wire.Info, len(page)), Next: next}
	for i, m := range page {
		shown.Messages[i] = wire.InfoOf(m, shownLimits(m.Headers))
	}
	return shown
}

func (c *request) stats() (any, error) {
	if err := c.needs(backend.Counting); err != nil {
		return nil, err
	}
	s, err := c.q.Stats(c.ctx)
	return wire.StatsOf(s), err
}

func (c *request) store() (any, error) {
	s := wire.StoreOf(c.traits)
	s.RequestBytes, s.Batch, s.Wait = c.requestBytes, c.batch, wire.Duration(c.wait)
	return s, nil
}

// list returns the queues on which the caller may do something.
func (c *request) list() (any, error) {
	l, ok := c.backend.(admin.Lister)
	if !ok {
		return nil, &backend.UnsupportedError{Backend: c.traits.Name, Op: "queues"}
	}
	names, err := l.Queues(c.ctx)
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return name == probeQueue || !slices.ContainsFunc(rights, func(r Right) bool { return c.caller.may(r, name) })
	})
	if names == nil {
		names = []string{}
	}
	return wire.Queues{Queues: names}, nil
}
