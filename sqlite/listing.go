package sqlite

import (
	"context"
	"math"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
	"github.com/delayq/delayq/internal/sqlqueue"
)

// Get is as in backend.Queue.
func (m *messages) Get(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
	infos := make([]backend.MessageInfo, len(ids))
	now := m.now()
	var errs []error
	err := m.read(ctx, func(c *conn) error {
		errs = backend.Each(len(ids), func(i int) error {
			outcome := backend.ErrNotFound
			err := c.rows("get", func(s *sqlite3.Stmt) bool {
				unique := s.ColumnInt64(6)
				if s.ColumnInt64(1) == done && unique <= now {
					return true
				}
				infos[i], outcome = info(s, now)
				if unique > now {
					infos[i].UniqueUntil = moment(unique)
				}
				return true
			}, m.queue, packed(ids[i]))
			if err != nil {
				return explain(err)
			}
			return outcome
		})
		return ctx.Err() // the reads after its end were interrupted
	})
	if err != nil {
		return make([]backend.MessageInfo, len(ids)), backend.FailAll(len(ids), err)
	}
	return infos, errs
}

// info reads a row of get, peek and list_dead.
func info(s *sqlite3.Stmt, now int64) (i backend.MessageInfo, err error) {
	r := row{state: s.ColumnInt64(1), at: s.ColumnInt64(2), due: s.ColumnInt64(4)}
	if r.state == leased && r.at <= now {
		r.state = waiting
	}
	i = backend.MessageInfo{ID: record.UnpackID(s.ColumnRawBlob(0)), State: r.shown(now)}
	if r.state == done {
		return i, nil
	}
	i.Due, i.Attempts = moment(r.due), s.ColumnInt(5)
	switch r.state {
	case leased:
		i.LeaseUntil = moment(r.at)
	case dead:
		i.Died, i.Reason = moment(r.at), s.ColumnText(7)
	}
	i.Headers, err = sqlqueue.ReadHeaders(s.ColumnRawBlob(8))
	i.Body = s.ColumnBlob(9, []byte{})
	return i, err
}

// Peek is as in backend.Queue.
func (m *messages) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	now := m.now()
	return m.page(ctx, "peek", cursor, limit, now, 4, m.queue, now)
}

// ListDead is as in backend.Queue.
func (m *messages) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	return m.page(ctx, "list_dead", cursor, limit, m.now(), 2, m.queue)
}

// page runs a listing from a cursor on. timeColumn has the time that it is sorted by.
func (m *messages) page(
	ctx context.Context, statement, cursor string, limit int, now int64, timeColumn int, args ...any,
) (page []backend.MessageInfo, next string, err error) {
	from, err := sqlqueue.ReadCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	args = append(args, from.Time, from.Number, int64(limit)+1)
	err = m.read(ctx, func(c *conn) error {
		var broken error
		var last sqlqueue.Place
		size := 0
		err := c.rows(statement, func(s *sqlite3.Stmt) bool {
			if len(page) == limit || size > mostRead {
				next = last.Cursor()
				return false
			}
			i, err := info(s, now)
			if err != nil {
				broken = err
				return false
			}
			page = append(page, i)
			size += len(i.Body)
			last = sqlqueue.Place{Time: s.ColumnInt64(timeColumn), Number: s.ColumnInt64(3)}
			return true
		}, args...)
		if broken != nil {
			return broken
		}
		return err
	})
	if err != nil {
		return nil, "", err
	}
	return page, next, nil
}

// ListDeadIDs is as in backend.Queue.
func (m *messages) ListDeadIDs(ctx context.Context, cursor string, limit int) (ids []string, next string, err error) {
	from, err := sqlqueue.ReadCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	err = m.read(ctx, func(c *conn) error {
		var last sqlqueue.Place
		return c.rows("list_dead_ids", func(s *sqlite3.Stmt) bool {
			if len(ids) == limit {
				next = last.Cursor()
				return false
			}
			ids = append(ids, record.UnpackID(s.ColumnRawBlob(0)))
			last = sqlqueue.Place{Time: s.ColumnInt64(1), Number: s.ColumnInt64(2)}
			return true
		}, m.queue, from.Time, from.Number, int64(limit)+1)
	})
	if err != nil {
		return nil, "", err
	}
	return ids, next, nil
}

// Stats is as in backend.Queue. It counts entries of an index, all in one snapshot.
func (m *messages) Stats(ctx context.Context) (backend.Stats, error) {
	var st backend.Stats
	err := m.read(ctx, func(c *conn) (err error) {
		if err := c.Exec("BEGIN"); err != nil {
			return err
		}
		st, err = m.count(c, m.now())
		return err
	})
	if err != nil {
		return backend.Stats{}, err
	}
	return st, nil
}

func (m *messages) count(c *conn, now int64) (st backend.Stats, err error) {
	between := func(state, from, to int64) (n int64) {
		if err == nil {
			n, err = c.number("count_between", m.queue, state, from, to)
		}
		return n
	}
	st.Dead = between(dead, math.MinInt64, math.MaxInt64)
	st.InFlight = between(leased, now, math.MaxInt64)
	st.Ready = between(waiting, math.MinInt64, now)
	from := now
	for i := range st.Due {
		to := int64(math.MaxInt64)
		if bounds := backend.DueBounds(); i < len(bounds) {
			to = after(now, bounds[i])
		}
		st.Due[i] = between(waiting, from, to)
		st.Scheduled += st.Due[i]
		from = to
	}
	if err == nil {
		st.Activity, err = m.activity(c)
	}
	if err != nil {
		return st, err
	}
	return st, m.countEnded(c, now, &st)
}

// countEnded adds the messages whose leases have ended, the head and the pause.
func (m *messages) countEnded(c *conn, now int64, st *backend.Stats) error {
	head := int64(math.MaxInt64)
	err := c.rows("ended_leases", func(s *sqlite3.Stmt) bool {
		n, due := s.ColumnInt64(0), s.ColumnInt64(1)
		if due <= now {
			st.Ready += n
		} else {
			st.Scheduled += n
			st.Due[backend.DueInterval(time.Duration(due-now))] += n
		}
		head = min(head, due)
		return true
	}, m.queue, now)
	if err != nil {
		return err
	}
	err = c.rows("look", func(s *sqlite3.Stmt) bool {
		if s.ColumnType(0) != sqlite3.NULL {
			head = min(head, s.ColumnInt64(0))
		}
		paused := s.ColumnInt64(2)
		if st.Paused = paused > now; st.Paused && paused < math.MaxInt64 {
			st.PausedUntil = moment(paused)
		}
		return true
	}, m.queue)
	if head < math.MaxInt64 {
		st.HeadDue, st.OldestReady = moment(head), max(time.Duration(now-head), 0)
	}
	return err
}
