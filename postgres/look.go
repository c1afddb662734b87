package postgres

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/sqlqueue"
)

func (m *messages) Get(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
	infos := make([]backend.MessageInfo, len(ids))
	errs := chunked(len(ids), func(i int) string { return ids[i] }, func(int) int { return chunkBytes / getAtOnce }, func(lo, hi int) []error {
		found, err := call(ctx, m.b, m.b.cfg.call("get", "text", "bigint", "text[]"), []any{m.queue, m.now().param(), append([]string{}, ids[lo:hi]...)}, readInfo)
		if err != nil {
			return backend.FailAll(hi-lo, err)
		}
		errs := backend.FailAll(hi-lo, backend.ErrNotFound)
		for _, f := range found {
			i := f.ord - 1
			f.ID = ids[lo+i]
			infos[lo+i], errs[i] = f.MessageInfo, nil
		}
		return errs
	})
	return infos, errs
}

// getAtOnce is how many messages one statement gets, since bodies may be large.
const getAtOnce = 100

// found is a row that shows a message.
type found struct {
	backend.MessageInfo
	ord  int
	size int // of what the row has, as the function that cuts pages counts it
	sqlqueue.Place
}

// fill sets the fields that the state has. at is the row's.
func (f *found) fill(state int, due, at int64, first *int64, headers, body, reason []byte) (err error) {
	f.State = backend.State(state)
	if f.State == backend.StateDone {
		f.Attempts = 0
		return nil
	}
	f.Due, f.Body = moment(due), orEmpty(body)
	switch f.State {
	case backend.StateInFlight:
		f.LeaseUntil = moment(at)
	case backend.StateDead:
		f.Died, f.Reason = moment(at), string(reason)
	default:
	}
	f.Headers, err = readHeaders(headers, first)
	return err
}

func readInfo(all *[]found, scan scan) error {
	var f found
	var state int
	var due, at, seq int64
	var unique, first *int64
	var headers, body, reason []byte
	if err := scan(&f.ord, &state, &due, &at, &seq, &f.Attempts, &unique, &first, &headers, &body, &reason); err != nil {
		return err
	}
	if unique != nil {
		f.UniqueUntil = moment(*unique)
	}
	err := f.fill(state, due, at, first, headers, body, reason)
	*all = append(*all, f)
	return err
}

func readPage(all *[]found, scan scan) error {
	var f found
	var state int
	var due int64
	var first *int64
	var headers, body, reason []byte
	if err := scan(&f.ID, &state, &due, &f.Time, &f.Number, &f.Attempts, &first, &headers, &body, &reason); err != nil {
		return err
	}
	f.size = len(headers) + len(body) + len(reason)
	err := f.fill(state, due, f.Time, first, headers, body, reason)
	*all = append(*all, f)
	return err
}

// mostOfPage is how many messages a page has.
const mostOfPage = 1000

// page reads messages that wait, or dead letters. It asks for one more than the page has.
func (m *messages) page(ctx context.Context, dead bool, cursor string, limit int, contents bool) ([]backend.MessageInfo, string, error) {
	from, err := sqlqueue.ReadCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	limit = min(limit, mostOfPage)
	rows, err := call(ctx, m.b, m.b.cfg.call("peek", "text", "bigint", "boolean", "bigint", "bigint", "int", "boolean"),
		[]any{m.queue, m.now().param(), dead, from.Time, from.Number, limit + 1, contents}, readPage)
	if err != nil || len(rows) == 0 {
		return nil, "", err
	}
	var page []backend.MessageInfo
	for _, f := range rows[:min(limit, len(rows))] {
		page = append(page, f.MessageInfo)
	}
	if len(rows) > limit {
		return page, rows[limit-1].Cursor(), nil
	}
	return page, m.rest(rows, limit), nil
}

// rest is the cursor behind a page that is shorter than asked for: it may have been cut by its size.
func (*messages) rest(rows []found, limit int) string {
	size := 0
	for _, f := range rows {
		size += f.size
	}
	if size < pageBytes/2 || len(rows) > limit {
		return ""
	}
	return rows[len(rows)-1].Cursor()
}

// pageBytes is what the function cuts a page at. The rows up to there may have less by the headers and the
// reason of the next one.
const pageBytes = 8 << 20

func (m *messages) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	return m.page(ctx, false, cursor, limit, true)
}

func (m *messages) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	return m.page(ctx, true, cursor, limit, true)
}

func (m *messages) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	return backend.DeadIDs(m.page(ctx, true, cursor, limit, false))
}

// counted is a row of stats.
type counted struct {
	kind  string
	n     int64
	first *int64
	now   int64
}

func (m *messages) Stats(ctx context.Context) (backend.Stats, error) {
	bounds := make([]int64, 0, len(backend.DueHistogram{}))
	for _, d := range backend.DueBounds() {
		bounds = append(bounds, d.Microseconds())
	}
	bounds = append(bounds, math.MaxInt64/2)
	rows, err := call(ctx, m.b, m.b.cfg.call("stats", "text", "bigint", "bigint[]"), []any{m.queue, m.now().param(), bounds},
		func(all *[]counted, s scan) error {
			var c counted
			err := s(&c.kind, &c.n, &c.first, &c.now)
			*all = append(*all, c)
			return err
		})
	var st backend.Stats
	for _, c := range rows {
		c.addTo(&st)
	}
	return st, err
}

func (c *counted) addTo(st *backend.Stats) {
	switch c.kind {
	case "in flight":
		st.InFlight += c.n
		return
	case "dead":
		st.Dead += c.n
		return
	case "pushed":
		st.Activity.Pushed = c.n
		return
	case "acked":
		st.Activity.Acked = c.n
		return
	case "late":
		if *c.first <= int64(len(st.Activity.Lateness)) {
			st.Activity.Lateness[*c.first-1] = c.n
		}
		return
	case "paused":
		if st.Paused = true; *c.first < math.MaxInt64 {
			st.PausedUntil = moment(*c.first)
		}
		return
	case "ready":
		if st.Ready += c.n; c.first != nil {
			st.OldestReady = max(st.OldestReady, time.Duration(c.now-*c.first)*time.Microsecond)
		}
	default:
		i, _ := strconv.Atoi(c.kind)
		st.Scheduled += c.n
		st.Due[i-1] += c.n
	}
	if c.first != nil && (st.HeadDue.IsZero() || moment(*c.first).Before(st.HeadDue)) {
		st.HeadDue = moment(*c.first)
	}
}
