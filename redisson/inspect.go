package redisson

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/redis/call"
	"github.com/delayq/delayq/internal/redis/script"
)

// Pending is a member that waits in the sorted set of due times, pushed by Go or by Java.
type Pending struct {
	ID       string // for Cancel and Reschedule; empty when unreadable
	Due      time.Time
	Attempts int // hand-outs by this package so far
	Format   MemberFormat
	Member   []byte // as it is
	Body     []byte // nil when the codec does not read the payload
	Err      error  // an [UnreadableError], of the member or its payload
}

// Pending returns up to limit members, 1 to 1000, by due time, from the cursor on: "" starts, and a
// returned cursor of "" says that there are no more. A page may be shorter than limit, or empty,
// and have more behind it. Members that come or go meanwhile shift the others. It blocks for a
// round trip.
func (b *Backend) Pending(ctx context.Context, queue, cursor string, limit int) (page []Pending, next string, err error) {
	s, from, err := b.listing(queue, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	reply, err := s.Run(ctx, pendingScript, from, limit)
	if err != nil {
		return nil, "", err
	}
	r, ok := reply.([]any)
	if !ok || len(r) != 2 {
		return nil, "", script.Unexpected(pendingScript, reply)
	}
	members, _ := r[1].([]any)
	for i := 0; i+pendingFields <= len(members); i += pendingFields {
		page = append(page, s.pending(members[i:i+pendingFields]))
	}
	if from, _ := r[0].(int64); from >= 0 {
		next = strconv.FormatInt(from, 10)
	}
	return page, next, nil
}

const pendingFields = 5

func (s *store) pending(r []any) Pending {
	key, _ := r[0].(string)
	member, _ := r[4].(string)
	p := Pending{
		Due:      time.UnixMilli(script.Int(r[1])).UTC(),
		Attempts: int(script.Int(r[3])),
		Member:   []byte(member),
	}
	m, err := ParseMember(p.Member)
	if err == nil {
		p.Format = m.Format
		_, p.Body, err = s.open(m.Payload)
	}
	if key != "" {
		p.ID = s.id(key, script.Int(r[2]))
	}
	p.Err = err
	return p
}

// Keys are the names under which a queue is kept.
type Keys struct {
	Destination string   // Redisson's list of due messages
	Timeouts    string   // Redisson's sorted set of scheduled messages
	Index       string   // Redisson's list of scheduled messages, in the order of offers
	Channel     string   // where Redisson announces a new head
	Own         []string // this package's own keys
}

// Report is the state of a queue's keys.
type Report struct {
	Keys Keys

	Waiting     int64 // members in the sorted set, those that represent leases included
	Indexed     int64 // entries of the index list
	Handed      int64 // payloads in the destination list
	Leased      int64 // leases of this package
	Dead        int64 // dead letters of this package
	Quarantined int64

	// Subscribers counts the processes that listen for new heads: each Java process with an
	// RDelayedQueue, and each backend of this package with an open queue. On a Cluster it is the
	// number that the node that was asked knows.
	Subscribers int64

	// Formats counts the layouts of the first 1000 members, and Unreadable the unreadable ones
	// among them.
	Formats    map[MemberFormat]int
	Unreadable int
}

// Inspect reads a queue's keys and changes nothing. It blocks for a few round trips.
func (b *Backend) Inspect(ctx context.Context, queue string) (Report, error) {
	s, err := b.direct(queue)
	if err != nil {
		return Report{}, err
	}
	r := Report{Formats: make(map[MemberFormat]int), Keys: Keys{
		Destination: s.names.destination, Timeouts: s.names.timeouts, Index: s.names.index, Channel: s.names.channel, Own: s.Keys[len(s.names.keys()):],
	}}
	pipe := s.Client.Pipeline()
	counts := map[*int64]*redis.IntCmd{
		&r.Waiting: pipe.ZCard(ctx, s.names.timeouts), &r.Indexed: pipe.LLen(ctx, s.names.index), &r.Handed: pipe.LLen(ctx, s.names.destination),
		&r.Leased: pipe.ZCard(ctx, s.Keys[3]), &r.Dead: pipe.ZCard(ctx, s.Keys[6]), &r.Quarantined: pipe.ZCard(ctx, s.quarantineKey()),
	}
	head := pipe.ZRange(ctx, s.names.timeouts, 0, maxPage-1)
	_, err = call.Do(ctx, s.Calls, func(ctx context.Context) (any, error) { return pipe.Exec(ctx) })
	if err != nil {
		return r, fmt.Errorf("inspecting the queue: %w", script.Translate(err))
	}
	for to, cmd := range counts {
		*to = cmd.Val()
	}
	r.sort(head.Val())
	listening, err := call.Do(ctx, s.Calls, func(ctx context.Context) (map[string]int64, error) {
		return s.Client.PubSubNumSub(ctx, s.names.channel).Result()
	})
	if err != nil {
		return r, fmt.Errorf("counting subscribers: %w", script.Translate(err))
	}
	r.Subscribers = listening[s.names.channel]
	return r, nil
}

func (r *Report) sort(members []string) {
	for _, m := range members {
		if parsed, err := ParseMember([]byte(m)); err == nil {
			r.Formats[parsed.Format]++
		} else {
			r.Unreadable++
		}
	}
}
