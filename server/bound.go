package server

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/valid"
	"github.com/delayq/delayq/internal/wire"
)

// firstLook is how many messages are listed before their size is known.
const firstLook = 16

// A mean is the bytes of a message, as seen lately; 0 where none was seen.
type mean struct{ bytes atomic.Int64 }

func (m *mean) saw(messages, bytes int) {
	if messages > 0 {
		m.bytes.Store(int64(max(bytes/messages, 1)))
	}
}

// fit returns how many of up to most messages probably fit into so many bytes, one at least.
func (m *mean) fit(most, bytes int) int {
	size := m.bytes.Load()
	if size == 0 {
		return most
	}
	return max(1, min(most, bytes/int(size)))
}

// take receives up to limit messages, as many as fit into a reply. Those that do not fit go back.
func (c *request) take(ctx context.Context, limit int, lease time.Duration) ([]backend.Delivery, error) {
	ds, err := c.q.Receive(ctx, c.q.mean.fit(limit, c.replyBytes), lease)
	if err != nil {
		return nil, err
	}
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

// listed lists up to limit messages, until they fill a reply: only the store can make a cursor.
func (c *request) listed(list lister, cursor string, limit int) (all []backend.MessageInfo, next string, err error) {
	var seen mean
	bytes := 0
	for look := min(limit, firstLook); ; look = seen.fit(limit-len(all), c.replyBytes-bytes) {
		var page []backend.MessageInfo
		if page, next, err = list(c.ctx, cursor, look); err != nil {
			return nil, "", err
		}
		for _, m := range page {
			bytes += sizeOf(m.Body, m.Headers)
		}
		all, cursor = append(all, page...), next
		if next == "" || len(page) == 0 || len(all) >= limit || bytes >= c.replyBytes {
			return all, next, nil
		}
		seen.saw(len(all), bytes)
	}
}

// getSome gets messages until they fill a reply. The rest have an error by which the client asks for
// them again.
func (c *request) getSome(ids []string) (infos []backend.MessageInfo, errs []error) {
	var seen mean
	infos, errs = make([]backend.MessageInfo, len(ids)), make([]error, len(ids))
	bytes := 0
	for from, look := 0, min(len(ids), firstLook); from < len(ids); {
		if bytes >= c.replyBytes {
			copy(errs[from:], backend.FailAll(len(ids)-from, wire.ErrReplyFull))
			break
		}
		got, failed := c.q.Get(c.ctx, ids[from:from+look])
		copy(infos[from:], got)
		copy(errs[from:], failed)
		for _, m := range got {
			bytes += sizeOf(m.Body, m.Headers)
		}
		from += look
		seen.saw(from, bytes)
		look = seen.fit(len(ids)-from, max(c.replyBytes-bytes, 0))
	}
	return infos, errs
}
