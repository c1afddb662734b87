package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/sqlqueue"
)

// messages are one queue's, as one handle sees them. Each method of a batch calls a function in the
// database, which is one transaction.
type messages struct {
	b     *Backend
	queue string
	clock clockwork.Clock // nil for the server's
	scan  scanner
	tx    *transaction // of the caller; nil outside of one
}

// call writes a statement that calls a function of the schema with parameters of these types.
func (c *config) call(function string, types ...string) string {
	var b strings.Builder
	b.WriteString("SELECT * FROM " + c.name(function) + "(")
	for i, t := range types {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("$" + strconv.Itoa(i+1) + "::" + t)
	}
	return b.String() + ")"
}

// A reading is what a clock shows: an injected one, or nothing where the server reads its own.
type reading struct{ at *time.Time }

func (m *messages) now() reading {
	if m.clock == nil {
		return reading{}
	}
	now := m.clock.Now()
	return reading{&now}
}

// param is the function's parameter: whole microseconds, rounded down, or NULL.
func (r reading) param() *int64 {
	if r.at == nil {
		return nil
	}
	us := floor(r.at.UnixNano())
	return &us
}

// after returns the microseconds from param to the end of a time from now, rounded up.
func (r reading) after(d time.Duration) int64 {
	if r.at == nil {
		return ceil(int64(d))
	}
	return ceil(sqlqueue.After(*r.at, d).UnixNano()) - floor(r.at.UnixNano())
}

func floor(ns int64) int64 {
	us := ns / 1000
	if ns%1000 < 0 {
		us--
	}
	return us
}

func ceil(ns int64) int64 {
	us := ns / 1000
	if ns%1000 > 0 {
		us++
	}
	return us
}

func moment(us int64) time.Time { return time.UnixMicro(us).UTC() }

// readHeaders decodes the columns headers and first_push.
func readHeaders(column []byte, first *int64) (map[string]string, error) {
	h, err := sqlqueue.ReadHeaders(column)
	if err == nil && first != nil {
		h = backend.WithFirstPush(h, moment(*first))
	}
	return h, err
}

// cutFirstPush takes the time of the first push out of headers: 0 for none.
func cutFirstPush(h map[string]string) (rest map[string]string, first int64) {
	at := backend.FirstPush(h)
	if at.IsZero() {
		return h, 0
	}
	rest = make(map[string]string, len(h))
	for k, v := range h {
		if k != backend.FirstPushHeader {
			rest[k] = v
		}
	}
	return rest, ceil(at.UnixNano())
}

// A chunk is a part of a call's arguments, from lo to hi.
const (
	chunkMessages = 1000
	chunkBytes    = 4 << 20
)

// chunked calls do for parts of n messages, each without an id twice and of bounded size, and
// returns the outcomes of all. size may be nil.
func chunked(n int, id func(i int) string, size func(i int) int, do func(lo, hi int) []error) []error {
	errs := make([]error, n)
	failed := false
	for lo := 0; lo < n; {
		seen := make(map[string]struct{}, min(n-lo, chunkMessages))
		hi, total := lo, 0
		for ; hi < n && hi-lo < chunkMessages; hi++ {
			if size != nil {
				if total += size(hi); total > chunkBytes && hi > lo {
					break
				}
			}
			if _, twice := seen[id(hi)]; twice {
				break
			}
			seen[id(hi)] = struct{}{}
		}
		for i, err := range do(lo, hi) {
			errs[lo+i] = err
			failed = failed || err != nil
		}
		lo = hi
	}
	if !failed {
		return nil
	}
	return errs
}

// changed is the reply of a function that changes messages.
type changed struct {
	outcomes *string // number:code, …; nil where all succeeded
	now      int64
	soonest  *int64 // when the first of the changed messages is due
}

func readChanged(c *changed, scan scan) error { return scan(&c.outcomes, &c.now, &c.soonest) }

// change calls a function on n messages. place has the index of the message for each of the
// function's numbers; nil for the same order. Errors are the outcomes.
func (m *messages) change(ctx context.Context, n int, place []int, statement string, args []any) (changed, []error) {
	if m.tx != nil {
		c, err := m.tx.change(ctx, m, statement, args)
		if err != nil {
			return c, backend.FailAll(n, err)
		}
		return c, c.errors(n, place)
	}
	c, err := call(ctx, m.b, statement, args, readChanged)
	if err != nil {
		return c, backend.FailAll(n, err)
	}
	if c.soonest != nil {
		m.announce(*c.soonest, c.now)
	}
	return c, c.errors(n, place)
}

// announce tells others of messages that are due soon.
func (m *messages) announce(soonest, now int64) {
	m.b.wake(m.queue, moment(soonest))
	if soonest <= now+maxPoll.Microseconds() {
		m.b.news.tell(m.queue, soonest)
	}
}

func (c *changed) errors(n int, place []int) []error {
	if c.outcomes == nil || *c.outcomes == "" {
		return nil
	}
	errs := make([]error, n)
	for _, one := range strings.Split(*c.outcomes, ",") {
		number, code, _ := strings.Cut(one, ":")
		i, err := strconv.Atoi(number)
		k, err2 := strconv.Atoi(code)
		if err != nil || err2 != nil || i < 1 || i > n {
			return backend.FailAll(n, fmt.Errorf("the database replied with an outcome %q", one))
		}
		if i--; place != nil {
			i = place[i]
		}
		errs[i] = outcomeOf(k)
	}
	return errs
}

// outcomeOf is the error of a code: see the files.
func outcomeOf(code int) error {
	switch code {
	case 1:
		return backend.ErrInFlight
	case 2:
		return backend.ErrNotFound
	case 3:
		return backend.ErrLeaseLost
	case 4:
		return errLocked
	case 10:
		return backend.Duplicate(backend.StateScheduled)
	case 11:
		return backend.Duplicate(backend.StateInFlight)
	case 12:
		return backend.Duplicate(backend.StateDead)
	default:
		return backend.Duplicate(backend.StateDone)
	}
}

// byID returns the indexes of n ids in the ids' order: all calls lock rows in that order.
func byID(n int, id func(i int) string) []int {
	place := make([]int, n)
	for i := range place {
		place[i] = i
	}
	slices.SortFunc(place, func(a, b int) int { return strings.Compare(id(a), id(b)) })
	return place
}

// column returns the values of messages in an order.
func column[T any](place []int, value func(i int) T) []T {
	all := make([]T, len(place))
	for k, i := range place {
		all[k] = value(i)
	}
	return all
}

// dueParam is a due time, or -1 where a delay counts.
func dueParam(due time.Time) int64 {
	if due.IsZero() {
		return -1
	}
	return ceil(due.UnixNano())
}

func (m *messages) Schedule(ctx context.Context, ms []backend.Message) []error {
	size := func(i int) int { return len(ms[i].Body) }
	return chunked(len(ms), func(i int) string { return ms[i].ID }, size, func(lo, hi int) []error {
		return m.schedule(ctx, ms[lo:hi])
	})
}

func (m *messages) schedule(ctx context.Context, ms []backend.Message) []error {
	n, now := len(ms), m.now()
	ids, dues, delays, uniques := make([]string, n), make([]int64, n), make([]int64, n), make([]int64, n)
	headers, bodies := make([][]byte, n), make([][]byte, n)
	replaces, waits, inFlight := make([]bool, n), make([]int64, n), make([]bool, n)
	for i := range ms {
		g := &ms[i]
		ids[i], dues[i] = g.ID, dueParam(g.Due)
		if dues[i] < 0 {
			delays[i] = now.after(g.Delay)
		}
		if g.UniqueFor > 0 {
			uniques[i] = now.after(g.UniqueFor)
		}
		headers[i], bodies[i] = orEmpty(sqlqueue.Headers(g.Headers)), copyOf(g.Body)
		replaces[i], inFlight[i] = g.Replace, g.AfterInFlight
		if g.MaxWait > 0 {
			waits[i] = now.after(g.MaxWait)
		}
	}
	args := []any{m.queue, now.param(), ids, dues, delays, uniques, headers, bodies}
	types := []string{"text", "bigint", "text[]", "bigint[]", "bigint[]", "bigint[]", "bytea[]", "bytea[]"}
	function := "push"
	if slices.Contains(replaces, true) {
		function, types, args = "replace", append(types, "boolean[]", "bigint[]", "boolean[]"), append(args, replaces, waits, inFlight)
	}
	_, errs := m.change(ctx, n, nil, m.b.cfg.call(function, types...), args)
	return errs
}

func orEmpty(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// copyOf copies bytes: a call may go on when its caller has left. Nil becomes empty.
func copyOf(b []byte) []byte { return orEmpty(bytes.Clone(b)) }

// settle calls a function on leases, with more parameters of these types.
func (m *messages) settle(ctx context.Context, n int, lease func(i int) backend.Lease, function string, now reading, types []string, more func(place []int) []any) []error {
	return chunked(n, func(i int) string { return lease(i).ID }, nil, func(lo, hi int) []error {
		place := byID(hi-lo, func(i int) string { return lease(lo + i).ID })
		ids := column(place, func(i int) string { return lease(lo + i).ID })
		tokens := column(place, func(i int) int64 {
			t := lease(lo + i).Token
			if t.Hi != 0 || t.Lo > math.MaxInt64 {
				return 0 // none of this backend
			}
			return int64(t.Lo)
		})
		args := []any{m.queue, now.param(), ids, tokens}
		if more != nil {
			args = append(args, more(column(place, func(i int) int { return lo + i }))...)
		}
		_, errs := m.change(ctx, hi-lo, place, m.b.cfg.call(function, append([]string{"text", "bigint", "text[]", "bigint[]"}, types...)...), args)
		return errs
	})
}

func (m *messages) Ack(ctx context.Context, ls []backend.Lease) []error {
	return m.settle(ctx, len(ls), func(i int) backend.Lease { return ls[i] }, "ack", m.now(), nil, nil)
}

func (m *messages) Nack(ctx context.Context, rs []backend.Return) []error {
	now := m.now()
	return m.settle(ctx, len(rs), func(i int) backend.Lease { return rs[i].Lease }, "nack", now,
		[]string{"bigint[]", "boolean[]", "boolean[]", "bytea[]", "bigint[]"},
		func(place []int) []any {
			headers, firsts := make([][]byte, len(place)), make([]int64, len(place))
			for k, i := range place {
				rest, first := cutFirstPush(rs[i].Headers)
				headers[k], firsts[k] = orEmpty(sqlqueue.Headers(rest)), first
			}
			return []any{
				column(place, func(i int) int64 { return now.after(rs[i].Delay) }),
				column(place, func(i int) bool { return rs[i].Untouched }),
				column(place, func(i int) bool { return rs[i].NewHeaders }),
				headers, firsts,
			}
		})
}

// Most locks last for one call of another client, so an extension tries again for a while. It takes
// an eighth of a lease at most: others wait for their next extension.
const (
	firstPause    = 10 * time.Millisecond
	longestPause  = 320 * time.Millisecond
	pausesInLease = 16
)

var errLocked = fmt.Errorf("%w: another transaction has locked the message", backend.ErrUnavailable)

// Extend extends what no other transaction has locked, and then tries the rest again.
func (m *messages) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	ends, errs := m.extend(ctx, ls, lease)
	for pause := firstPause; pause <= min(longestPause, lease/pausesInLease); pause *= 2 {
		locked := lockedOf(errs)
		if len(locked) == 0 || !slept(ctx, pause) {
			break
		}
		again, failed := m.extend(ctx, column(locked, func(i int) backend.Lease { return ls[i] }), lease)
		for k, i := range locked {
			if ends[i], errs[i] = again[k], nil; failed != nil {
				errs[i] = failed[k]
			}
		}
	}
	if errors.Join(errs...) == nil {
		errs = nil
	}
	return ends, errs
}

func lockedOf(errs []error) (indexes []int) {
	for i, err := range errs {
		if errors.Is(err, errLocked) {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// slept reports whether ctx lasted for a pause.
func slept(ctx context.Context, pause time.Duration) bool {
	select {
	case <-time.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}

func (m *messages) extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	ends := make([]time.Time, len(ls))
	now := m.now()
	statement := m.b.cfg.call("extend", "text", "bigint", "text[]", "bigint[]", "bigint")
	errs := chunked(len(ls), func(i int) string { return ls[i].ID }, nil, func(lo, hi int) []error {
		place := byID(hi-lo, func(i int) string { return ls[lo+i].ID })
		ids := column(place, func(i int) string { return ls[lo+i].ID })
		tokens := column(place, func(i int) int64 { return int64(ls[lo+i].Token.Lo) })
		c, errs := m.change(ctx, hi-lo, place, statement, []any{m.queue, now.param(), ids, tokens, now.after(lease)})
		for i := lo; i < hi; i++ {
			if (errs == nil || errs[i-lo] == nil) && c.soonest != nil {
				ends[i] = moment(*c.soonest)
			}
		}
		if c.soonest != nil {
			m.b.endSooner(m.queue, *c.soonest)
		}
		return errs
	})
	return ends, errs
}

func (m *messages) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return m.settle(ctx, len(bs), func(i int) backend.Lease { return bs[i].Lease }, "dead_letter", m.now(), []string{"bytea[]", "bigint[]"},
		func(place []int) []any {
			return []any{column(place, func(i int) []byte { return []byte(bs[i].Reason) }), column(place, func(i int) int64 { return int64(i) + 1 })}
		})
}

// named calls a function on ids.
func (m *messages) named(ctx context.Context, ids []string, function string) []error {
	return chunked(len(ids), func(i int) string { return ids[i] }, nil, func(lo, hi int) []error {
		place := byID(hi-lo, func(i int) string { return ids[lo+i] })
		sorted := column(place, func(i int) string { return ids[lo+i] })
		_, errs := m.change(ctx, hi-lo, place, m.b.cfg.call(function, "text", "bigint", "text[]"), []any{m.queue, m.now().param(), sorted})
		return errs
	})
}

func (m *messages) Cancel(ctx context.Context, ids []string) []error {
	return m.named(ctx, ids, "cancel")
}

func (m *messages) Redrive(ctx context.Context, ids []string) []error {
	// the order of the ids is the order of the messages
	return chunked(len(ids), func(i int) string { return ids[i] }, nil, func(lo, hi int) []error {
		_, errs := m.change(ctx, hi-lo, nil, m.b.cfg.call("redrive", "text", "bigint", "text[]"), []any{m.queue, m.now().param(), slices.Clone(ids[lo:hi])})
		return errs
	})
}

func (m *messages) DeleteDead(ctx context.Context, ids []string) []error {
	return m.named(ctx, ids, "delete_dead")
}

func (m *messages) Reschedule(ctx context.Context, ms []backend.Move) []error {
	return chunked(len(ms), func(i int) string { return ms[i].ID }, nil, func(lo, hi int) []error {
		now := m.now()
		place := byID(hi-lo, func(i int) string { return ms[lo+i].ID })
		args := []any{
			m.queue, now.param(),
			column(place, func(i int) string { return ms[lo+i].ID }),
			column(place, func(i int) int64 { return dueParam(ms[lo+i].Due) }),
			column(place, func(i int) int64 { return now.after(ms[lo+i].Delay) }),
		}
		_, errs := m.change(ctx, hi-lo, place, m.b.cfg.call("reschedule", "text", "bigint", "text[]", "bigint[]", "bigint[]"), args)
		return errs
	})
}

// mostTrimmed is how many dead letters one call deletes.
const mostTrimmed = 1000

func (m *messages) TrimDead(ctx context.Context, r backend.Retention) (removed int, more bool, err error) {
	removed, err = call(ctx, m.b, m.b.cfg.call("trim_dead", "text", "bigint", "bigint", "bigint", "int"),
		[]any{m.queue, m.now().param(), ceil(int64(r.MaxAge)), int64(r.MaxCount), mostTrimmed}, func(n *int, s scan) error { return s(n) })
	return removed, removed == mostTrimmed, err
}

const purgedAtOnce = 5000

func (m *messages) Purge(ctx context.Context) (removed int64, err error) {
	type part struct {
		last    *string
		removed int64
	}
	for after := ""; ; {
		p, err := call(ctx, m.b, m.b.cfg.call("purge", "text", "text", "int"), []any{m.queue, after, purgedAtOnce},
			func(p *part, s scan) error { return s(&p.last, &p.removed) })
		removed += p.removed
		if err != nil || p.last == nil {
			return removed, err
		}
		after = *p.last
	}
}

func (m *messages) PauseAll(ctx context.Context, p backend.Pause) error {
	now := m.now()
	var until, wait *int64
	switch {
	case !p.Until.IsZero():
		at := ceil(p.Until.UnixNano())
		until = &at
	case p.For > 0:
		d := now.after(p.For)
		wait = &d
	}
	return m.setPause(ctx, m.b.cfg.call("pause", "text", "bigint", "bigint", "bigint"), m.queue, now.param(), until, wait)
}

func (m *messages) ResumeAll(ctx context.Context) error {
	return m.setPause(ctx, m.b.cfg.call("resume", "text"), m.queue)
}

func (m *messages) setPause(ctx context.Context, statement string, args ...any) error {
	err := m.do(ctx, statement, args...)
	if err == nil {
		m.b.wake(m.queue, time.Time{})
		m.b.news.tell(m.queue, all)
	}
	return err
}

// do calls a function that returns nothing.
func (m *messages) do(ctx context.Context, statement string, args ...any) error {
	_, err := call(ctx, m.b, statement, args, func(*struct{}, scan) error { return nil })
	return err
}

// addActivity adds to the queue's activity. Then it deletes ids whose UniqueFor has ended, more than
// were pushed: claims alone would delete fewer than a fast queue leaves. It takes a few at a time,
// since a push of such an id waits meanwhile.
func (m *messages) addActivity(ctx context.Context, a backend.Activity) error {
	err := m.do(ctx, m.b.cfg.call("count", "text", "bigint", "bigint", "bigint[]"), m.queue, a.Pushed, a.Acked, a.Lateness[:])
	if err != nil {
		return err
	}
	const some = 2000
	for left := 2*a.Pushed + some; left > 0; left -= some {
		// One that fails deletes none. The next time tries again.
		n, _ := call(ctx, m.b, m.b.cfg.call("sweep", "text", "bigint", "int"), []any{m.queue, m.now().param(), some}, func(n *int64, s scan) error { return s(n) })
		if n < some {
			break
		}
	}
	return nil
}
