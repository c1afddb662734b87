package sqlite

import (
	"bytes"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/ncruces/go-sqlite3"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/handle"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/sqlqueue"
)

// The states of a row.
const (
	waiting = iota
	leased
	dead
	done // its message is gone, and UniqueFor keeps the id
)

// messages are one queue's messages in a file.
type messages struct {
	*file
	name  string
	queue int64 // its number
	clock clockwork.Clock
	user  *userTx // the caller's transaction; nil outside of one
}

var _ handle.Messages = (*messages)(nil)

func (m *messages) now() int64 { return m.clock.Now().UnixNano() }

func moment(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// after adds without running over the end of time.
func after(now int64, d time.Duration) int64 {
	if t := now + int64(d); d <= 0 || t > now {
		return t
	}
	return math.MaxInt64
}

func dueTime(due time.Time, delay time.Duration, now int64) int64 {
	if !due.IsZero() {
		return due.UnixNano()
	}
	return after(now, delay)
}

// mostWindows is how many windows that have ended a transaction drops.
const mostWindows = 2000

// forgetWindows drops ids whose windows have ended, once in a transaction.
func (m *messages) forgetWindows(t *tx, now int64) error {
	if m.user != nil || slices.Contains(t.tidied, m.queue) {
		return nil
	}
	t.tidied = append(t.tidied, m.queue)
	var ended [][]byte
	err := t.rows("ended_windows", func(s *sqlite3.Stmt) bool {
		ended = append(ended, s.ColumnBlob(0, nil))
		return true
	}, m.queue, now, int64(mostWindows))
	for _, id := range ended {
		if err == nil {
			_, err = t.exec("delete_message", m.queue, id)
		}
	}
	return err
}

// each runs do for n items in one transaction. do returns an item's outcome, and apart from it the
// error of a statement, which undoes the call.
func (m *messages) each(ctx context.Context, n int, do func(t *tx, i int, now int64) (outcome, err error)) []error {
	var errs []error
	err := m.submit(ctx, func(t *tx) error {
		now := m.now()
		if err := m.forgetWindows(t, now); err != nil {
			return err
		}
		errs = nil // of an earlier try
		for i := range n {
			outcome, err := do(t, i, now)
			if err != nil {
				return err
			}
			if outcome != nil && errs == nil {
				errs = make([]error, n)
			}
			if outcome != nil {
				errs[i] = outcome
			}
		}
		return nil
	})
	if err != nil {
		return backend.FailAll(n, err)
	}
	return errs
}

// A row is what a statement finds of an id.
type row struct {
	id          []byte // packed
	state       int64
	at          int64
	content     int64
	uniqueUntil int64
	due         int64
	attempts    int64
}

// replaced reports whether a message in flight was replaced since its hand-out, which counted an
// attempt.
func (r *row) replaced() bool { return r.state == leased && r.attempts == 0 }

// find returns the row of an id, or nil where there is none. A row whose lease has ended waits.
func (m *messages) find(t *tx, id []byte, now int64) (r *row, err error) {
	err = t.get("find_message", func(s columns) bool {
		r = &row{id, s.ColumnInt64(0), s.ColumnInt64(1), s.ColumnInt64(2), s.ColumnInt64(3), s.ColumnInt64(4), s.ColumnInt64(5)}
		return true
	}, m.queue, id)
	if r != nil && r.state == leased && r.at <= now {
		r.state, r.at = waiting, r.due
	}
	return r, err
}

// shown returns the state of a row as users see it.
func (r *row) shown(now int64) backend.State {
	switch {
	case r.state == leased:
		return backend.StateInFlight
	case r.state == dead:
		return backend.StateDead
	case r.state == done:
		return backend.StateDone
	case r.due <= now:
		return backend.StateReady
	default:
		return backend.StateScheduled
	}
}

// forget deletes a message. Its id stays while UniqueFor keeps it.
func (m *messages) forget(t *tx, r *row, now int64) error {
	statement := "delete_message"
	if r.uniqueUntil > now {
		statement = "keep_window"
	}
	if _, err := t.exec(statement, m.queue, r.id); err != nil {
		return err
	}
	_, err := t.exec("delete_content", r.content)
	return err
}

func packed(id string) []byte { return record.PackID(nil, id) }

// A pushed message is a copy of the caller's.
type pushed struct {
	backend.Message
	id      []byte // packed
	headers []byte // encoded, unless MaxWait changes them
}

func (m *messages) Schedule(ctx context.Context, ms []backend.Message) []error {
	ps := make([]pushed, len(ms))
	for i := range ms {
		p := pushed{Message: ms[i], id: packed(ms[i].ID)}
		p.Body = append(make([]byte, 0, len(p.Body)), p.Body...)
		if p.MaxWait > 0 {
			p.Headers = maps.Clone(p.Headers)
		} else {
			p.headers, p.Headers = sqlqueue.Headers(p.Headers), nil
		}
		ps[i] = p
	}
	return m.each(ctx, len(ps), func(t *tx, i int, now int64) (outcome, err error) { return m.add(t, &ps[i], now) })
}

// add stores a message.
func (m *messages) add(t *tx, p *pushed, now int64) (outcome, err error) {
	number, err := t.take()
	if err != nil {
		return nil, err
	}
	for {
		first := *p
		if p.MaxWait > 0 {
			first.Message = p.Bounded(nil, moment(now))
			first.headers = sqlqueue.Headers(first.Headers)
		}
		due, unique := dueTime(first.Due, first.Delay, now), int64(0)
		if p.UniqueFor > 0 {
			unique = after(now, p.UniqueFor)
		}
		n, err := t.exec("insert_message", m.queue, p.id, due, number, unique)
		if err != nil {
			return nil, err
		}
		if n == 1 {
			t.wake(m.name, due)
			_, err = t.exec("insert_content", number, first.headers, p.Body)
			return nil, err
		}
		r, err := m.find(t, p.id, now)
		switch {
		case err != nil:
			return nil, err
		case r.state == done && r.at <= now: // a window that has ended
			if _, err := t.exec("delete_message", m.queue, p.id); err != nil {
				return nil, err
			}
			continue
		case p.Replace && r.state == waiting, p.AfterInFlight && r.state == leased:
			return nil, m.replace(t, r, p, number, now)
		case p.Replace && r.state == leased:
			return backend.ErrInFlight, nil
		}
		return backend.Duplicate(r.shown(now)), nil
	}
}

// replace gives a message that waits or is in flight the content, the due time and the place of a new
// one.
func (m *messages) replace(t *tx, r *row, p *pushed, number, now int64) error {
	next := *p
	if p.MaxWait > 0 {
		var column []byte
		err := t.get("read_headers", func(s columns) bool {
			column = s.ColumnBlob(0, nil)
			return true
		}, r.content)
		if err != nil {
			return err
		}
		headers, err := sqlqueue.ReadHeaders(column)
		if err != nil {
			return err
		}
		if r.state == leased && !r.replaced() {
			headers = nil
		}
		next.Message = p.Bounded(headers, moment(now))
		next.headers = sqlqueue.Headers(next.Headers)
	}
	due := dueTime(next.Due, next.Delay, now)
	statement := "replace_leased"
	if r.state == waiting {
		statement = "replace_message"
		t.wake(m.name, due)
	}
	if _, err := t.exec(statement, m.queue, r.id, due, number); err != nil {
		return err
	}
	_, err := t.exec("replace_content", r.content, next.headers, p.Body)
	return err
}

// Cancel is as in backend.Queue.
func (m *messages) Cancel(ctx context.Context, ids []string) []error {
	return m.eachWaiting(ctx, ids, func(t *tx, _ int, r *row, now int64) error { return m.forget(t, r, now) })
}

// Reschedule is as in backend.Queue.
func (m *messages) Reschedule(ctx context.Context, moves []backend.Move) []error {
	ids, dues := make([]string, len(moves)), make([]backend.Move, len(moves))
	for i, move := range moves {
		ids[i], dues[i] = move.ID, move
	}
	return m.eachWaiting(ctx, ids, func(t *tx, i int, r *row, now int64) error {
		due := dueTime(dues[i].Due, dues[i].Delay, now)
		t.wake(m.name, due)
		_, err := t.exec("move", m.queue, r.id, due)
		return err
	})
}

// eachWaiting runs do for each id whose message waits.
func (m *messages) eachWaiting(ctx context.Context, ids []string, do func(t *tx, i int, r *row, now int64) error) []error {
	keys := packAll(ids)
	return m.each(ctx, len(keys), func(t *tx, i int, now int64) (outcome, err error) {
		r, err := m.find(t, keys[i], now)
		switch {
		case err != nil:
			return nil, err
		case r == nil || r.state == dead || r.state == done:
			return backend.ErrNotFound, nil
		case r.state == leased:
			return backend.ErrInFlight, nil
		}
		return nil, do(t, i, r, now)
	})
}

func packAll(ids []string) [][]byte {
	keys := make([][]byte, len(ids))
	for i, id := range ids {
		keys[i] = packed(id)
	}
	return keys
}

// eachDead runs do for each id whose message is dead.
func (m *messages) eachDead(ctx context.Context, ids []string, do func(t *tx, r *row, now int64) error) []error {
	keys := packAll(ids)
	return m.each(ctx, len(keys), func(t *tx, i int, now int64) (outcome, err error) {
		r, err := m.find(t, keys[i], now)
		switch {
		case err != nil:
			return nil, err
		case r == nil || r.state != dead:
			return backend.ErrNotFound, nil
		}
		return nil, do(t, r, now)
	})
}

// Redrive is as in backend.Queue.
func (m *messages) Redrive(ctx context.Context, ids []string) []error {
	return m.eachDead(ctx, ids, func(t *tx, r *row, now int64) error {
		place, err := t.take()
		if err != nil {
			return err
		}
		t.wake(m.name, now)
		_, err = t.exec("redrive", m.queue, r.id, now, place)
		return err
	})
}

// DeleteDead is as in backend.Queue.
func (m *messages) DeleteDead(ctx context.Context, ids []string) []error {
	return m.eachDead(ctx, ids, func(t *tx, r *row, now int64) error { return m.forget(t, r, now) })
}

// mostTrimmed is how many letters one TrimDead deletes.
const mostTrimmed = 1000

// TrimDead is as in backend.Queue.
func (m *messages) TrimDead(ctx context.Context, r backend.Retention) (removed int, more bool, err error) {
	trimmed := 0
	err = m.writer.submit(ctx, func(t *tx) error {
		now := m.now()
		beyond := int64(0)
		if r.MaxCount > 0 {
			n, _, err := t.number("count_dead", m.queue, int64(r.MaxCount)+mostTrimmed)
			if err != nil {
				return err
			}
			beyond = n - int64(r.MaxCount)
		}
		var gone []row
		err := t.rows("oldest_dead", func(s *sqlite3.Stmt) bool {
			old := r.MaxAge > 0 && now-s.ColumnInt64(3) >= int64(r.MaxAge)
			if int64(len(gone)) >= beyond && !old {
				return false
			}
			gone = append(gone, row{id: s.ColumnBlob(0, nil), uniqueUntil: s.ColumnInt64(1), content: s.ColumnInt64(2)})
			return true
		}, m.queue, int64(mostTrimmed))
		for i := range gone {
			if err == nil {
				err = m.forget(t, &gone[i], now)
			}
		}
		trimmed = len(gone)
		return err
	})
	if err != nil {
		return 0, false, err
	}
	return trimmed, trimmed == mostTrimmed, nil
}

// mostPurged is how many rows one transaction of Purge deletes.
const mostPurged = 2000

// Purge is as in backend.Queue. It goes through the ids in several transactions, so that others do
// not wait for all of it, and leaves what was pushed after its first one.
func (m *messages) Purge(ctx context.Context) (int64, error) {
	removed, before, last := int64(0), int64(0), []byte{}
	for {
		var n, count int64
		var end []byte
		err := m.writer.submit(ctx, func(t *tx) (err error) {
			boundary := before
			if boundary == 0 {
				if boundary, err = t.take(); err != nil {
					return err
				}
			}
			n, count, end, err = m.purgeSome(t, boundary, last)
			before = boundary
			return err
		})
		if err != nil {
			return removed, err
		}
		removed += count
		last = end
		if n < mostPurged {
			return removed, nil
		}
	}
}

// purgeSome deletes rows after an id whose content is older than a number, and returns how many
// rows these were, how many of them messages, and the last id.
func (m *messages) purgeSome(t *tx, before int64, last []byte) (n, count int64, end []byte, err error) {
	var gone []row
	err = t.rows("select_all", func(s *sqlite3.Stmt) bool {
		gone = append(gone, row{id: s.ColumnBlob(0, nil), state: s.ColumnInt64(1), content: s.ColumnInt64(2)})
		return true
	}, m.queue, before, last, int64(mostPurged))
	for i := range gone {
		if err != nil {
			return 0, 0, nil, err
		}
		if gone[i].state != done {
			count++
		}
		end = gone[i].id
		err = m.forget(t, &gone[i], 0)
	}
	return int64(len(gone)), count, bytes.Clone(end), err
}

// PauseAll is as in backend.Queue.
func (m *messages) PauseAll(ctx context.Context, p backend.Pause) error {
	return m.pauseUntil(ctx, func(now int64) int64 {
		if p == (backend.Pause{}) {
			return math.MaxInt64
		}
		return dueTime(p.Until, p.For, now)
	})
}

// ResumeAll is as in backend.Queue.
func (m *messages) ResumeAll(ctx context.Context) error {
	return m.pauseUntil(ctx, func(int64) int64 { return 0 })
}

func (m *messages) pauseUntil(ctx context.Context, end func(now int64) int64) error {
	return m.writer.submit(ctx, func(t *tx) error {
		now := m.now()
		t.wake(m.name, now)
		_, err := t.exec("write_pause", m.queue, end(now))
		return err
	})
}
