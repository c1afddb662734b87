package sqlite

import (
	"context"
	"math"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/handle"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/sqlqueue"
)

const (
	mostClaimed = 1000     // messages of one claim
	mostRead    = 32 << 20 // bytes of bodies in one claim or page
)

// claim is as in handle.Source. It looks before it writes, so that a look that finds nothing
// neither locks the file nor changes it.
func (m *messages) claim(ctx context.Context, limit int, lease time.Duration) (handle.Claim, error) {
	c, ready, err := m.look(ctx)
	if err != nil || !ready {
		return c, err
	}
	var ds []backend.Delivery
	err = m.writer.submit(ctx, func(t *tx) (err error) {
		ds, err = m.leaseDue(t, min(limit, mostClaimed), lease)
		return err
	})
	if err != nil {
		return handle.Claim{}, err
	}
	c.Deliveries, c.Next = ds, c.Now // others may have been faster: look again
	return c, nil
}

// look reports whether a message may be due, and when to look again.
func (m *messages) look(ctx context.Context) (c handle.Claim, ready bool, err error) {
	var now, next int64
	err = m.read(ctx, func(r *conn) error {
		return r.rows("look", func(s *sqlite3.Stmt) bool {
			now, next = m.now(), math.MaxInt64
			for column := range 2 {
				if s.ColumnType(column) != sqlite3.NULL {
					next = min(next, s.ColumnInt64(column))
				}
			}
			next = max(next, s.ColumnInt64(2))
			return true
		}, m.queue)
	})
	c.Now = moment(now)
	if next < math.MaxInt64 {
		c.Next = moment(next)
	}
	return c, next <= now, err
}

func (m *messages) leaseDue(t *tx, limit int, lease time.Duration) ([]backend.Delivery, error) {
	now := m.now()
	paused, _, err := t.number("read_pause", m.queue)
	if err != nil || paused > now {
		return nil, err
	}
	if _, err := t.exec("expire_leases", m.queue, now); err != nil {
		return nil, err
	}
	var ds []backend.Delivery
	var broken error
	size, lastAt, lastPlace := 0, int64(0), int64(0)
	err = t.rows("select_due", func(s *sqlite3.Stmt) bool {
		lastAt, lastPlace = s.ColumnInt64(1), s.ColumnInt64(2)
		d := backend.Delivery{
			ID:      record.UnpackID(s.ColumnRawBlob(0)),
			Due:     moment(lastAt),
			Attempt: s.ColumnInt(3) + 1,
			Token:   backend.Token{Hi: uint64(s.ColumnInt64(4))},
			Body:    s.ColumnBlob(6, []byte{}),
		}
		d.Headers, broken = sqlqueue.ReadHeaders(s.ColumnRawBlob(5))
		ds = append(ds, d)
		size += len(d.Body)
		return broken == nil && size < mostRead
	}, m.queue, now, int64(limit))
	if broken != nil {
		return nil, broken
	}
	if err != nil || len(ds) == 0 {
		return nil, err
	}
	token, err := t.take()
	if err != nil {
		return nil, err
	}
	until := after(now, lease)
	for i := range ds {
		ds[i].Token.Lo, ds[i].Until = uint64(token), moment(until)
	}
	_, err = t.exec("lease_due", m.queue, lastAt, lastPlace, until, token)
	return ds, err
}

// held returns the arguments that find a lease.
func (m *messages) held(l backend.Lease, now int64, more ...any) []any {
	return append([]any{m.queue, packed(l.ID), int64(l.Token.Lo), int64(l.Token.Hi), now}, more...)
}

// settled returns the outcome of a statement that changes the row of a lease.
func settled(changed int64, err error) (outcome, failure error) {
	if err == nil && changed == 0 {
		return backend.ErrLeaseLost, nil
	}
	return nil, err
}

// endReplaced ends a lease whose message was replaced: the new one waits. The statements that settle
// others do not find it.
func (m *messages) endReplaced(t *tx, l backend.Lease, now int64) (outcome, err error) {
	due, found, err := t.number("end_replaced", m.held(l, now)...)
	if err == nil && !found {
		return backend.ErrLeaseLost, nil
	}
	t.wake(m.name, due)
	return nil, err
}

// Ack is as in backend.Queue.
func (m *messages) Ack(ctx context.Context, leases []backend.Lease) []error {
	ls := append([]backend.Lease(nil), leases...)
	return m.each(ctx, len(ls), func(t *tx, i int, now int64) (outcome, err error) {
		n, err := t.exec("ack", m.held(ls[i], now)...)
		if err == nil && n == 0 {
			return m.ackKept(t, ls[i], now)
		}
		if err == nil {
			_, err = t.exec("delete_content", int64(ls[i].Token.Hi))
		}
		return nil, err
	})
}

// ackKept acknowledges a message whose id UniqueFor keeps.
func (m *messages) ackKept(t *tx, l backend.Lease, now int64) (outcome, err error) {
	until, found, err := t.number("find_lease", m.held(l, now)...)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return m.endReplaced(t, l, now)
	}
	return nil, m.forget(t, &row{id: packed(l.ID), content: int64(l.Token.Hi), uniqueUntil: until}, now)
}

// Nack is as in backend.Queue.
func (m *messages) Nack(ctx context.Context, returns []backend.Return) []error {
	rs, headers := make([]backend.Return, len(returns)), make([][]byte, len(returns))
	for i, r := range returns {
		headers[i] = sqlqueue.Headers(r.Headers)
		r.Headers = nil
		rs[i] = r
	}
	return m.each(ctx, len(rs), func(t *tx, i int, now int64) (outcome, err error) {
		r, statement, due := rs[i], "release", now
		args := m.held(r.Lease, now)
		if !r.Untouched {
			due = after(now, r.Delay)
			statement, args = "nack", append(args, due)
		}
		if n, err := t.exec(statement, args...); err != nil {
			return nil, err
		} else if n == 0 {
			return m.endReplaced(t, r.Lease, now)
		}
		t.wake(m.name, due)
		if r.NewHeaders {
			_, err = t.exec("replace_headers", int64(r.Token.Hi), headers[i])
		}
		return nil, err
	})
}

// Extend is as in backend.Queue.
func (m *messages) Extend(ctx context.Context, leases []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	ls := append([]backend.Lease(nil), leases...)
	ends := make([]time.Time, len(ls))
	failed := true
	errs := m.each(ctx, len(ls), func(t *tx, i int, now int64) (outcome, err error) {
		until := after(now, lease)
		outcome, err = settled(t.exec("extend", m.held(ls[i], now, until)...))
		ends[i] = time.Time{} // of an earlier try
		if outcome == nil && err == nil {
			ends[i] = moment(until)
			t.wake(m.name, until)
		}
		return outcome, err
	})
	for _, err := range errs {
		failed = failed && err != nil
	}
	if failed && errs != nil { // the call may have failed as a whole, and go on
		return make([]time.Time, len(ls)), errs
	}
	return ends, errs
}

// Dead is as in backend.Queue.
func (m *messages) Dead(ctx context.Context, requests []backend.DeadLetterRequest) []error {
	bs := append([]backend.DeadLetterRequest(nil), requests...)
	return m.each(ctx, len(bs), func(t *tx, i int, now int64) (outcome, err error) {
		place, err := t.take()
		if err != nil {
			return nil, err
		}
		n, err := t.exec("dead", m.held(bs[i].Lease, now, place, bs[i].Reason)...)
		if err == nil && n == 0 {
			return m.endReplaced(t, bs[i].Lease, now)
		}
		return nil, err
	})
}
