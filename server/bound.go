package server

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/valid"
	"github.com/delayq/delayq/internal/wire"
)

// unknownSize stands for the size of a message before one was seen. Few are larger.
const unknownSize = backend.MaxBody / 16

// A mean is the bytes of a message, as seen lately; 0 where none was seen.
type mean struct{ bytes atomic.Int64 }

func (m *mean) saw(messages, bytes int) {
	if messages > 0 {
		m.bytes.Store(int64(max(bytes/messages, 1)))
	}
}

// fit returns how many of up to most messages probably fit into so many bytes, one at least.
func (m *mean) fit(most, bytes int) int {
	size := cmp.Or(int(m.bytes.Load()), unknownSize)
	return max(1, min(most, bytes/size))
}

// take receives up to limit messages, as many as fit into a reply. Those that do not fit go back.
func (c *request) take(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	ds, err := c.q.Receive(ctx, c.q.mean.fit(limit, c.replyBytes), lease)
	if err != nil {
		return nil, err
	}
	c.until = time.Now().Add(lease)
	bytes, fit := 0, 0
	for i, d := range ds {
		if bytes += sizeOf(d.Body, d.Headers); bytes <= c.replyBytes || i == 0 {
			fit = i + 1
		}
	}
	c.q.mean.saw(len(ds), bytes)
	if fit < len(ds) {
		c.returnUntouched(leasesOf(ds[fit:]))
	}
	return ds[:fit], nil
}

func sizeOf(body []byte, headers map[string]string) int {
	return len(body) + valid.HeaderBytes(headers)
}

// A lister is Peek or ListDead of a queue.
type lister func(ctx context.Context, cursor string, limit int) ([]backend.MessageInfo, string, error)

// fitting returns how many of the messages fit into a reply that has so many bytes, and how many
// bytes it has with them. The first message that has bytes always fits.
func (c *request) fitting(ms []backend.MessageInfo, bytes int) (n, with int) {
	for _, m := range ms {
		size := sizeOf(m.Body, m.Headers)
		if bytes > 0 && bytes+size > c.replyBytes {
			break
		}
		n, bytes = n+1, bytes+size
	}
	return n, bytes
}

// listed lists up to limit messages, as many as fit into a reply. Only the store can make a cursor:
// a page that does not fit is listed again without the messages that are too much.
func (c *request) listed(list lister, cursor string, limit int) (all []backend.MessageInfo, next string, err error) {
	var seen mean
	bytes, full := 0, false
	for look := seen.fit(limit, c.replyBytes); ; {
		page, next, err := list(c.ctx, cursor, look)
		if err != nil {
			return nil, "", err
		}
		n, with := c.fitting(page, bytes)
		switch {
		case n == len(page):
			all, bytes, cursor = append(all, page...), with, next
		case n == 0:
			return all, cursor, nil
		default:
			look, full = n, true
			continue
		}
		if full || next == "" || n == 0 || len(all) >= limit || bytes >= c.replyBytes {
			return all, next, nil
		}
		seen.saw(len(all), bytes)
		look = seen.fit(limit-len(all), c.replyBytes-bytes)
	}
}

// getSome gets messages until they fill a reply. The rest have an error by which the client asks for
// them again.
func (c *request) getSome(ids []string) (infos []backend.MessageInfo, errs []error) {
	var seen mean
	infos, errs = make([]backend.MessageInfo, len(ids)), make([]error, len(ids))
	for from, bytes := 0, 0; from < len(ids); {
		to := from + seen.fit(len(ids)-from, c.replyBytes-bytes)
		got, failed := c.q.Get(c.ctx, ids[from:to])
		copy(infos[from:to], got)
		copy(errs[from:to], failed)
		n, with := c.fitting(infos[from:to], bytes)
		from, bytes = from+n, with
		if from < to || bytes >= c.replyBytes {
			copy(errs[from:], backend.FailAll(len(ids)-from, wire.ErrReplyFull))
			break
		}
		seen.saw(from, bytes)
	}
	return infos, errs
}
