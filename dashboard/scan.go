package dashboard

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/delayq/delayq"
)

const (
	rowsShown = 50
	pageRead  = 50                     // messages of one call of the store, so that no call keeps it busy for long
	lookMost  = 5_000                  // messages that one page with a filter looks at
	lookFor   = 100 * time.Millisecond // and for how long
)

// lister reads one page of a list of messages.
type lister func(ctx context.Context, cursor string, limit int) ([]delayq.MessageInfo, string, error)

// waiting and dead are the lists of a queue.
const (
	waiting = "messages"
	dead    = "dead"
)

func (h *Handler) lister(q delayq.Queue, name, list string) lister {
	read := lister(q.Peek)
	if list == dead {
		read = q.Dead().List
	}
	return func(ctx context.Context, cursor string, limit int) ([]delayq.MessageInfo, string, error) {
		page, next, err := read(ctx, cursor, limit)
		for i := range page {
			h.redacted(name, &page[i])
		}
		return page, next, err
	}
}

// redacted changes what is shown of a message by the user's function, which gets copies.
func (h *Handler) redacted(name string, m *delayq.MessageInfo) {
	if h.redact == nil {
		return
	}
	m.Body, m.Headers = slices.Clone(m.Body), maps.Clone(m.Headers)
	if m.Headers == nil {
		m.Headers = make(map[string]string) // so that f may write to it
	}
	id, state := m.ID, m.State
	h.redact(name, m)
	m.ID, m.State = id, state
}

// found is a part of a list that a filter selects.
type found struct {
	rows   []delayq.MessageInfo
	looked int    // messages
	next   string // "" at the end of the list
}

// find reads a list from a cursor until a page is full or it has looked at enough.
func find(ctx context.Context, list lister, f filter, cursor string) (found, error) {
	began := time.Now()
	if f.Empty() {
		page, next, err := list(ctx, cursor, rowsShown)
		return found{page, len(page), next}, err
	}
	var all found
	for all.next = cursor; ; {
		page, next, err := list(ctx, all.next, pageRead)
		if err != nil {
			return all, err
		}
		all.looked, all.next = all.looked+len(page), next
		for i := range page {
			if f.matches(&page[i], began) {
				all.rows = append(all.rows, page[i])
			}
		}
		if next == "" || len(all.rows) >= rowsShown || all.looked >= lookMost || time.Since(began) > lookFor {
			return all, nil
		}
	}
}
