package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
)

var (
	errFull   = backend.ErrFull
	errClosed = backend.ErrClosed

	// errUnknown is for a reply that was lost where the second try cannot tell whether there was a first.
	errUnknown = errors.New("outcome unknown: the reply was lost")
)

// Resolution is that of due times and leases: scores are whole milliseconds.
const Resolution = time.Millisecond

// Store is one queue's messages. It is safe for concurrent use; every method is one script or, for
// large batches, a few.
type Store struct {
	client redis.UniversalClient
	keys   keys
	clock  clockwork.Clock // nil for the server's own

	triggers bool // a key for each message that expires when it is due
}

// New returns the store of a queue. A clock replaces the server's own.
func New(c Config, queue string, clock clockwork.Clock) *Store {
	return &Store{client: c.Client, keys: newKeys(c.Prefix, queue), clock: clock, triggers: c.Triggers}
}

// keys are a queue's, all in one slot of a Cluster.
type keys struct {
	prefix  string
	channel string
	list    []string
}

func newKeys(prefix, queue string) keys {
	p := prefix + ":{" + queue + "}:"
	k := keys{prefix: p, channel: p + wakeChannel}
	for _, name := range []string{"due", "messages", "leases", "held", "gens", "dead", "graves", "seq", "ready"} {
		k.list = append(k.list, p+name)
	}
	return k
}

func (k *keys) due() string      { return k.list[0] }
func (k *keys) messages() string { return k.list[1] }
func (k *keys) leases() string   { return k.list[2] }
func (k *keys) held() string     { return k.list[3] }
func (k *keys) gens() string     { return k.list[4] }

// triggerKey and wakeChannel follow a queue's prefix.
const (
	triggerKey  = "trigger:"
	wakeChannel = "wake"
)

// Channel is where a message that becomes the head is announced, with its due time in ms.
func (s *Store) Channel() string { return s.keys.channel }

// Chunks keep a script short, and its arguments within what a server takes at once.
const (
	chunkMessages = 500
	chunkBytes    = 4 << 20
)

// chunked calls do for runs of items, and joins their outcomes.
func chunked[T any](items []T, size func(T) int, do func([]T) []error) []error {
	var all []error
	for start := 0; start < len(items); {
		end, bytes := start, 0
		for end < len(items) && end-start < chunkMessages && (end == start || bytes+size(items[end]) <= chunkBytes) {
			bytes += size(items[end])
			end++
		}
		if errs := do(items[start:end]); errs != nil {
			if all == nil {
				all = make([]error, len(items))
			}
			copy(all[start:], errs)
		}
		start = end
	}
	return all
}

func small[T any](T) int { return 0 }

// each runs a script on some items, whose arguments come after all, and makes an error of each outcome.
func each[T any](ctx context.Context, s *Store, sc *script, items []T, all []any, args func([]any, T) []any, outcome func(any) error) []error {
	for _, it := range items {
		all = args(all, it)
	}
	reply, err := s.run(ctx, sc, all...)
	if err != nil {
		return backend.FailAll(len(items), err)
	}
	replies, ok := reply.([]any)
	if !ok || len(replies) != len(items) {
		return backend.FailAll(len(items), fmt.Errorf("script %s: unexpected reply %v", sc.name, reply))
	}
	return outcomes(replies, outcome)
}

func outcomes(replies []any, outcome func(any) error) []error {
	var errs []error
	for i, r := range replies {
		if err := outcome(r); err != nil {
			if errs == nil {
				errs = make([]error, len(replies))
			}
			errs[i] = err
		}
	}
	return errs
}

// oneOr is nil for 1, and for 2 that nobody can tell.
func oneOr(err error) func(any) error {
	return func(reply any) error {
		switch reply {
		case int64(1):
			return nil
		case int64(2):
			return errUnknown
		default:
			return err
		}
	}
}

// waited is what take_waiting in the prelude says.
func waited(reply any) error {
	switch reply {
	case "OK":
		return nil
	case "HELD":
		return backend.ErrInFlight
	case "UNKNOWN":
		return errUnknown
	default:
		return backend.ErrNotFound
	}
}

// Schedule is as in backend.Queue.
func (s *Store) Schedule(ctx context.Context, ms []backend.Message) []error {
	size := func(m backend.Message) int { return len(m.Body) }
	return chunked(ms, size, func(part []backend.Message) []error {
		return each(ctx, s, scheduleScript, part, nil, func(args []any, m backend.Message) []any {
			return append(args, packed(m.ID), record.AppendContent(nil, m.Headers, m.Body), dueArg(m.Due), delayArg(m.Delay))
		}, oneOr(backend.ErrDuplicate))
	})
}

func packed(id string) []byte { return record.PackID(nil, id) }

// dueArg rounds a due time up to milliseconds; nothing when there is none.
func dueArg(due time.Time) string {
	if due.IsZero() {
		return ""
	}
	ms := due.UnixMilli()
	if due.After(time.UnixMilli(ms)) {
		ms++
	}
	return strconv.FormatInt(ms, 10)
}

// delayArg rounds a delay up to microseconds.
func delayArg(d time.Duration) int64 {
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}

// Ack is as in backend.Queue.
func (s *Store) Ack(ctx context.Context, ls []backend.Lease) []error {
	return chunked(ls, small, func(part []backend.Lease) []error {
		return each(ctx, s, ackScript, part, nil, func(args []any, l backend.Lease) []any {
			return append(args, memberOf(l))
		}, oneOr(backend.ErrLeaseLost))
	})
}

// Nack is as in backend.Queue.
func (s *Store) Nack(ctx context.Context, rs []backend.Return) []error {
	return chunked(rs, small, func(part []backend.Return) []error {
		return each(ctx, s, nackScript, part, nil, func(args []any, r backend.Return) []any {
			return append(args, memberOf(r.Lease), delayArg(r.Delay), flag(r.Untouched))
		}, oneOr(backend.ErrLeaseLost))
	})
}

// Dead is as in backend.Queue.
func (s *Store) Dead(ctx context.Context, bs []backend.Burial) []error {
	return chunked(bs, func(b backend.Burial) int { return len(b.Reason) }, func(part []backend.Burial) []error {
		return each(ctx, s, buryScript, part, nil, func(args []any, b backend.Burial) []any {
			return append(args, memberOf(b.Lease), b.Reason)
		}, oneOr(backend.ErrLeaseLost))
	})
}

// Extend is as in backend.Queue.
func (s *Store) Extend(ctx context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	ends := make([]time.Time, 0, len(ls))
	errs := chunked(ls, small, func(part []backend.Lease) []error {
		after := len(ends) + len(part)
		errs := each(ctx, s, extendScript, part, []any{delayArg(lease)}, func(args []any, l backend.Lease) []any {
			return append(args, memberOf(l))
		}, func(reply any) error {
			ends = append(ends, parseMS(reply))
			if ends[len(ends)-1].IsZero() {
				return backend.ErrLeaseLost
			}
			return nil
		})
		ends = ends[:after] // also when there was no reply
		return errs
	})
	return ends, errs
}

// Cancel is as in backend.Canceler.
func (s *Store) Cancel(ctx context.Context, ids []string) []error {
	return s.byID(ctx, cancelScript, ids, waited)
}

// Reschedule is as in backend.Rescheduler.
func (s *Store) Reschedule(ctx context.Context, ms []backend.Move) []error {
	return chunked(ms, small, func(part []backend.Move) []error {
		return each(ctx, s, rescheduleScript, part, nil, func(args []any, m backend.Move) []any {
			return append(args, packed(m.ID), dueArg(m.Due), delayArg(m.Delay))
		}, waited)
	})
}

// Redrive is as in backend.DeadLetters.
func (s *Store) Redrive(ctx context.Context, ids []string) []error {
	return s.byID(ctx, redriveScript, ids, oneOr(backend.ErrNotFound))
}

// DeleteDead is as in backend.DeadLetters.
func (s *Store) DeleteDead(ctx context.Context, ids []string) []error {
	return s.byID(ctx, deleteDeadScript, ids, oneOr(backend.ErrNotFound))
}

func (s *Store) byID(ctx context.Context, sc *script, ids []string, outcome func(any) error) []error {
	return chunked(ids, small, func(part []string) []error {
		return each(ctx, s, sc, part, nil, func(args []any, id string) []any { return append(args, packed(id)) }, outcome)
	})
}

// Stats is as in backend.Inspector.
func (s *Store) Stats(ctx context.Context) (backend.Stats, error) {
	reply, err := s.run(ctx, statsScript)
	if err != nil {
		return backend.Stats{}, err
	}
	r, ok := reply.([]any)
	if !ok || len(r) != 5 {
		return backend.Stats{}, fmt.Errorf("script stats: unexpected reply %v", reply)
	}
	n := func(i int) int64 { v, _ := r[i].(int64); return v }
	return backend.Stats{Scheduled: n(0), Ready: n(1), InFlight: n(2), Dead: n(3), HeadDue: parseMS(r[4])}, nil
}

// parseMS reads milliseconds since 1970; the zero time for what is not after 1970.
func parseMS(reply any) time.Time {
	text, _ := reply.(string)
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// The token of a lease is what its member has beside the id.
const (
	seqLen = 7
	genLen = 4
)

func memberOf(l backend.Lease) []byte {
	var buf [8]byte
	binary.BigEndian.PutUint64(buf[:], l.Token.Hi)
	m := append(make([]byte, 0, seqLen+genLen+len(l.ID)+1), buf[1:]...)
	m = binary.BigEndian.AppendUint32(m, uint32(min(l.Token.Lo, math.MaxUint32)))
	return record.PackID(m, l.ID)
}

func leaseOf(member string) (backend.Lease, error) {
	if len(member) < seqLen+genLen+2 {
		return backend.Lease{}, record.ErrCorrupt
	}
	var buf [8]byte
	copy(buf[1:], member[:seqLen])
	return backend.Lease{
		ID: record.UnpackID([]byte(member[seqLen+genLen:])),
		Token: backend.Token{
			Hi: binary.BigEndian.Uint64(buf[:]),
			Lo: uint64(binary.BigEndian.Uint32([]byte(member[seqLen:]))),
		},
	}, nil
}

// ValidPrefix checks what keys are to begin with.
func ValidPrefix(p string) error {
	if p == "" || len(p) > 64 || strings.ContainsAny(p, "{}\x00") {
		return backend.Invalid("key prefix", p, "1 to 64 bytes without braces")
	}
	return nil
}
