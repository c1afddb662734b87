package server

import (
	"fmt"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/valid"
	"github.com/delayq/delayq/internal/wire"
)

// needs returns ErrUnsupported, with the backend's name, where the store lacks a feature.
func (c *request) needs(f backend.Feature) error { return valid.Feature(f, f.String(), c.traits) }

// ids reads the ids that a body names.
func (c *request) ids() ([]string, error) {
	asked, err := readMany[wire.IDs](c)
	if err == nil {
		err = c.many(len(asked.IDs))
	}
	if err == nil {
		_, err = valid.IDs(asked.IDs)
	}
	return asked.IDs, err
}

func (c *request) cancel() (any, error) {
	if err := c.needs(backend.Cancelling); err != nil {
		return nil, err
	}
	ids, err := c.ids()
	if err != nil {
		return nil, err
	}
	return results(len(ids), c.q.Cancel(c.ctx, ids), nil)
}

func (c *request) reschedule() (any, error) {
	if err := c.needs(backend.Rescheduling); err != nil {
		return nil, err
	}
	asked, err := readMany[wire.Reschedule](c)
	if err == nil {
		err = c.many(len(asked.Messages))
	}
	if err != nil {
		return nil, err
	}
	moves := make([]backend.Move, len(asked.Messages))
	for i, m := range asked.Messages {
		moves[i] = backend.Move{ID: m.ID, Due: wire.At(m.Due), Delay: time.Duration(m.After)}
		if err := valid.Move(moves[i], c.traits); err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
	}
	return results(len(moves), c.q.Reschedule(c.ctx, moves), nil)
}

func (c *request) purge() (any, error) {
	if err := c.needs(backend.Purging); err != nil {
		return nil, err
	}
	if _, err := read[wire.Done](c); err != nil {
		return nil, err
	}
	removed, err := c.q.Purge(c.ctx)
	return wire.Removed{Removed: removed}, err
}

func (c *request) pause() (any, error) {
	if err := c.needs(backend.Pausing); err != nil {
		return nil, err
	}
	asked, err := read[wire.Pause](c)
	if err != nil {
		return nil, err
	}
	p := backend.Pause{Until: wire.At(asked.Until)}
	if asked.For != nil { // 0 is no pause without an end
		if p.For = time.Duration(*asked.For); valid.PauseFor(p.For) != nil {
			return nil, backend.Invalid("for", p.For, "more than 0, up to "+backend.MaxDelay.String())
		}
	}
	if err := valid.Pause(p); err != nil {
		return nil, err
	}
	if !p.Until.IsZero() && valid.Due(p.Until) != nil {
		return nil, backend.Invalid("until", p.Until, "a time from 1970 to 2200")
	}
	return wire.Done{}, c.q.PauseAll(c.ctx, p)
}

func (c *request) resume() (any, error) {
	if err := c.needs(backend.Pausing); err != nil {
		return nil, err
	}
	if _, err := read[wire.Done](c); err != nil {
		return nil, err
	}
	return wire.Done{}, c.q.ResumeAll(c.ctx)
}
