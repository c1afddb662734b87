package server

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/paging"
	"github.com/delayq/delayq/internal/valid"
	"github.com/delayq/delayq/internal/wire"
)

func (c *request) listDead() (any, error) {
	cursor, limit, err := c.deadPage()
	if err != nil {
		return nil, err
	}
	f, err := c.filterOfURL()
	if err != nil {
		return nil, err
	}
	page, next, err := c.listed(c.q.ListDead, cursor, limit)
	page = slices.DeleteFunc(page, func(l backend.DeadLetter) bool { return !f.matches(l) })
	return pageOf(page, next), err
}

func (c *request) listDeadIDs() (any, error) {
	cursor, limit, err := c.deadPage()
	if err != nil {
		return nil, err
	}
	ids, next, err := c.q.ListDeadIDs(c.ctx, cursor, limit)
	if ids == nil {
		ids = []string{}
	}
	return wire.PageOfIDs{IDs: ids, Next: next}, err
}

func (c *request) deadPage() (cursor string, limit int, err error) {
	if err := c.needs(backend.Redriving); err != nil {
		return "", 0, err
	}
	limit, err = c.number("limit", min(defaultPage, c.batch), c.batch)
	return c.query.Get("cursor"), limit, err
}

// A filter selects dead letters.
type filter struct{ wire.DeadFilter }

// filterOfURL reads the filter of a listing. A page may have few letters, or none, and more behind.
func (c *request) filterOfURL() (f filter, err error) {
	f.ReasonPrefix = c.query.Get("reason_prefix")
	if text := c.query.Get("died_before"); text != "" {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return f, backend.Invalid("died_before", text, "a time, as 2030-01-31T18:00:00Z")
		}
		f.DiedBefore = &t
	}
	return f, nil
}

func (f filter) matches(l backend.DeadLetter) bool {
	for k, want := range f.Headers {
		if got, ok := l.Headers[k]; !ok || got != want {
			return false
		}
	}
	return (f.DiedBefore == nil || l.Died.Before(*f.DiedBefore)) && strings.HasPrefix(l.Reason, f.ReasonPrefix)
}

func (c *request) redrive() (any, error)    { return c.letters(backend.Queue.Redrive) }
func (c *request) deleteDead() (any, error) { return c.letters(backend.Queue.DeleteDead) }

// letters redrives or deletes dead letters: those of ids, or those that a filter selects.
func (c *request) letters(do func(q backend.Queue, ctx context.Context, ids []string) []error) (any, error) {
	if err := c.needs(backend.Redriving); err != nil {
		return nil, err
	}
	asked, err := readMany[wire.Letters](c)
	if err != nil {
		return nil, err
	}
	if (asked.Filter != nil) == (asked.IDs != nil) {
		return nil, backend.Invalid("ids and filter", wire.Described("both or none"), "one of the two; {} is the filter that selects all")
	}
	if asked.Filter != nil {
		return c.filtered(filter{*asked.Filter}, do)
	}
	if err := c.many(len(asked.IDs)); err != nil {
		return nil, err
	}
	if _, err := valid.IDs(asked.IDs); err != nil {
		return nil, err
	}
	return results(len(asked.IDs), do(c.q.Queue, c.ctx, asked.IDs), nil)
}

// filtered lists the ids before it changes anything, so that no letter that dies again is changed
// twice.
func (c *request) filtered(f filter, do func(q backend.Queue, ctx context.Context, ids []string) []error) (any, error) {
	ids, err := paging.Select(c.ctx, c.q.ListDead, min(defaultPage, c.batch), func(l backend.DeadLetter) (string, bool) { return l.ID, f.matches(l) })
	if err != nil {
		return nil, err
	}
	changed := 0
	for some := range slices.Chunk(ids, c.batch) {
		errs := do(c.q.Queue, c.ctx, some)
		changed += len(some)
		for i, err := range errs {
			if err != nil {
				changed--
			}
			if errors.Is(err, backend.ErrNotFound) { // another caller was faster
				errs[i] = nil
			}
		}
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
	}
	return wire.Changed{Changed: changed}, nil
}

func (c *request) trimDead() (any, error) {
	if err := c.needs(backend.Redriving); err != nil {
		return nil, err
	}
	asked, err := read[wire.Trim](c)
	if err != nil {
		return nil, err
	}
	keep := backend.Retention{MaxAge: time.Duration(asked.MaxAge), MaxCount: asked.MaxCount}
	if keep.MaxAge < 0 || keep.MaxAge > backend.MaxDelay || keep.MaxCount < 0 {
		return nil, backend.Invalid("trim", keep, "a max_age of 0 to 100 years, and a max_count of 0 or more")
	}
	if keep == (backend.Retention{}) {
		return nil, backend.Invalid("trim", wire.Described("without a bound"), "max_age, max_count or both")
	}
	removed, more, err := c.q.TrimDead(c.ctx, keep)
	return wire.Removed{Removed: int64(removed), More: more}, err
}
