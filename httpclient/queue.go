package httpclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/wire"
)

// queue is a handle.
type queue struct {
	backend.Unsupported // InTx: no transaction reaches through HTTP

	b    *Backend
	name string
	path string
	log  *slog.Logger

	closing context.Context // ends when Close begins
	close   context.CancelFunc
	mu      sync.Mutex     // between the start of a receive and Close
	polls   sync.WaitGroup // receives, until the server has ended them
	once    sync.Once
}

var _ backend.Queue = (*queue)(nil)

func newQueue(b *Backend, name string, log *slog.Logger) *queue {
	// A name of dots is a step in a path, unless it is escaped.
	q := &queue{b: b, name: name, path: "/v1/queues/" + strings.ReplaceAll(url.PathEscape(name), ".", "%2E") + "/", log: log}
	q.closing, q.close = context.WithCancel(context.Background())
	return q
}

func (q *queue) open(ctx context.Context) error {
	if q.closing.Err() != nil {
		return backend.ErrClosed
	}
	return ctx.Err()
}

func (q *queue) post(ctx context.Context, verb string, value, into any) error {
	if err := q.open(ctx); err != nil {
		return err
	}
	return q.b.post(ctx, q.path+verb, value, into)
}

func (q *queue) get(ctx context.Context, verb string, into any) error {
	if err := q.open(ctx); err != nil {
		return err
	}
	return q.b.get(ctx, q.path+verb, into)
}

// many makes calls on n messages, each on as many as the server allows. ask returns the request for
// some of them, and took is given each result of a success; it may be nil.
func (q *queue) many(ctx context.Context, verb string, n int, ask func(from, to int) any, took func(i int, r *wire.Result) error) []error {
	if err := q.open(ctx); err != nil {
		return backend.FailAll(n, err)
	}
	outcomes := make([]error, n)
	failed := false
	for from := 0; from < n; from += q.b.store.Batch {
		to := min(from+q.b.store.Batch, n)
		var reply wire.Results
		err := q.post(ctx, verb, ask(from, to), &reply)
		failed = q.outcomes(outcomes[from:to], reply, err, func(i int, r *wire.Result) error {
			if took == nil {
				return nil
			}
			return took(from+i, r)
		}) || failed
	}
	if !failed {
		return nil
	}
	return outcomes
}

// outcomes sets the outcomes of a call, and reports whether one is an error.
func (q *queue) outcomes(outcomes []error, reply wire.Results, err error, took func(i int, r *wire.Result) error) (failed bool) {
	if err == nil && len(reply.Results) != len(outcomes) {
		err = fmt.Errorf("%w: the reply has %d results for %d messages", backend.ErrOutcomeUnknown, len(reply.Results), len(outcomes))
	}
	for i := range outcomes {
		if outcomes[i] = err; err == nil {
			r := &reply.Results[i]
			if outcomes[i] = r.Error.Err(); r.Error == nil {
				outcomes[i] = took(i, r)
			}
		}
		failed = failed || outcomes[i] != nil
	}
	return failed
}

// Ack is as in backend.Queue.
func (q *queue) Ack(ctx context.Context, ls []backend.Lease) []error {
	return q.many(ctx, "ack", len(ls), func(from, to int) any { return wire.Leases{Leases: leases(ls[from:to])} }, nil)
}

func leases(ls []backend.Lease) []string {
	texts := make([]string, len(ls))
	for i, l := range ls {
		texts[i] = wire.Lease(l)
	}
	return texts
}

// Nack is as in backend.Queue.
func (q *queue) Nack(ctx context.Context, rs []backend.Return) []error {
	return q.many(ctx, "nack", len(rs), func(from, to int) any {
		returns := make([]wire.Return, to-from)
		for i, r := range rs[from:to] {
			returns[i] = wire.ReturnOf(r)
		}
		return wire.Nack{Messages: returns}
	}, nil)
}

// Extend is as in backend.Queue.
func (q *queue) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	ends := make([]time.Time, len(ls))
	errs := q.many(ctx, "extend", len(ls), func(from, to int) any {
		return wire.Extend{Leases: leases(ls[from:to]), LeaseFor: wire.Duration(lease)}
	}, func(i int, r *wire.Result) error {
		ends[i] = wire.At(r.LeaseUntil)
		return nil
	})
	return ends, errs
}

// Dead is as in backend.Queue.
func (q *queue) Dead(ctx context.Context, bs []backend.DeadLetterRequest) []error {
	return q.many(ctx, "dead", len(bs), func(from, to int) any {
		requests := make([]wire.DeadLetterRequest, to-from)
		for i, b := range bs[from:to] {
			requests[i].Lease = wire.Lease(b.Lease)
			requests[i].Reason, requests[i].ReasonBase64 = wire.TextOrBytes(b.Reason)
		}
		return wire.Dead{Messages: requests}
	}, nil)
}

func (q *queue) onIDs(ctx context.Context, verb string, ids []string) []error {
	return q.many(ctx, verb, len(ids), func(from, to int) any { return wire.IDs{IDs: ids[from:to]} }, nil)
}

// Cancel is as in backend.Queue.
func (q *queue) Cancel(ctx context.Context, ids []string) []error {
	return q.onIDs(ctx, "cancel", ids)
}

// Redrive is as in backend.Queue.
func (q *queue) Redrive(ctx context.Context, ids []string) []error {
	return q.onIDs(ctx, "dead/redrive", ids)
}

// DeleteDead is as in backend.Queue.
func (q *queue) DeleteDead(ctx context.Context, ids []string) []error {
	return q.onIDs(ctx, "dead/delete", ids)
}

// Reschedule is as in backend.Queue.
func (q *queue) Reschedule(ctx context.Context, ms []backend.Move) []error {
	return q.many(ctx, "reschedule", len(ms), func(from, to int) any {
		moves := make([]wire.Move, to-from)
		for i, m := range ms[from:to] {
			moves[i] = wire.Move{ID: m.ID, Due: wire.Time(m.Due), After: wire.Duration(m.Delay)}
		}
		return wire.Reschedule{Messages: moves}
	}, nil)
}

// Get is as in backend.Queue. It asks again for what did not fit into a reply, which has one message at
// least.
func (q *queue) Get(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
	infos, errs := make([]backend.MessageInfo, len(ids)), make([]error, len(ids))
	for from := 0; from < len(ids); {
		some := ids[from:min(from+q.b.store.Batch, len(ids))]
		got, failed := q.getSome(ctx, some)
		full := slices.IndexFunc(failed, func(err error) bool { return errors.Is(err, wire.ErrReplyFull) })
		if full > 0 {
			got, failed = got[:full], failed[:full]
		}
		copy(infos[from:], got)
		copy(errs[from:], failed)
		from += len(got)
	}
	return infos, errs
}

func (q *queue) getSome(ctx context.Context, ids []string) ([]backend.MessageInfo, []error) {
	infos := make([]backend.MessageInfo, len(ids))
	errs := q.many(ctx, "get", len(ids), func(from, to int) any { return wire.IDs{IDs: ids[from:to]} }, func(i int, r *wire.Result) (err error) {
		if r.Message != nil {
			infos[i], err = r.Message.Read()
		}
		return err
	})
	return infos, errs
}

// Stats is as in backend.Queue.
func (q *queue) Stats(ctx context.Context) (backend.Stats, error) {
	var reply wire.Stats
	if err := q.get(ctx, "stats", &reply); err != nil {
		return backend.Stats{}, err
	}
	return reply.Read(), nil
}

// Peek is as in backend.Queue.
func (q *queue) Peek(ctx context.Context, cursor string, limit int) ([]backend.Pending, string, error) {
	return q.page(ctx, "messages", cursor, limit)
}

// ListDead is as in backend.Queue.
func (q *queue) ListDead(ctx context.Context, cursor string, limit int) ([]backend.DeadLetter, string, error) {
	return q.page(ctx, "dead", cursor, limit)
}

func (q *queue) page(ctx context.Context, verb, cursor string, limit int) ([]backend.MessageInfo, string, error) {
	var reply wire.Page
	if err := q.get(ctx, verb+q.pageQuery(cursor, limit), &reply); err != nil {
		return nil, "", err
	}
	page := make([]backend.MessageInfo, len(reply.Messages))
	for i := range page {
		var err error
		if page[i], err = reply.Messages[i].Read(); err != nil {
			return nil, "", err
		}
	}
	return page, reply.Next, nil
}

func (q *queue) pageQuery(cursor string, limit int) string {
	v := url.Values{"limit": {strconv.Itoa(min(limit, q.b.store.Batch))}}
	if cursor != "" {
		v.Set("cursor", cursor)
	}
	return "?" + v.Encode()
}

// ListDeadIDs is as in backend.Queue.
func (q *queue) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	var reply wire.PageOfIDs
	err := q.get(ctx, "dead/ids"+q.pageQuery(cursor, limit), &reply)
	return reply.IDs, reply.Next, err
}

// TrimDead is as in backend.Queue.
func (q *queue) TrimDead(ctx context.Context, r backend.Retention) (int, bool, error) {
	if r == (backend.Retention{}) { // the server rejects a trim without a bound
		return 0, false, q.open(ctx)
	}
	var reply wire.Removed
	err := q.post(ctx, "dead/trim", wire.Trim{MaxAge: wire.Duration(r.MaxAge), MaxCount: r.MaxCount}, &reply)
	return int(reply.Removed), reply.More, err
}

// Purge is as in backend.Queue.
func (q *queue) Purge(ctx context.Context) (int64, error) {
	var reply wire.Removed
	err := q.post(ctx, "purge", wire.Done{}, &reply)
	return reply.Removed, err
}

// PauseAll is as in backend.Queue.
func (q *queue) PauseAll(ctx context.Context, p backend.Pause) error {
	asked := wire.Pause{Until: wire.Time(p.Until)}
	if p.For != 0 {
		asked.For = (*wire.Duration)(&p.For)
	}
	return q.post(ctx, "pause", asked, &wire.Done{})
}

// ResumeAll is as in backend.Queue.
func (q *queue) ResumeAll(ctx context.Context) error {
	return q.post(ctx, "resume", wire.Done{}, &wire.Done{})
}
