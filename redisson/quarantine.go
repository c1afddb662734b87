package redisson

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/call"
	"github.com/delayq/delayq/internal/redis/script"
)

// Quarantined is an unreadable entry of a queue's keys, put aside because it stops Redisson: its
// transfer fails on such a member every time, after it has handed out the messages before it once
// more.
type Quarantined struct {
	ID     string    // names it for Restore and Delete: a digest of where it was and its bytes
	Place  Place     // where it was
	Due    time.Time // its score, or when it was found where there was none
	Bytes  []byte    // as they were
	Reason string    // why it is unreadable
}

// Place is where something unreadable was found.
type Place string

// The places.
const (
	InTimeouts Place = "timeouts" // the sorted set of members
	// the list that takers pop, where an [Envelope] was expected
	InDestination Place = "destination"
)

// Quarantine returns the unreadable entries of a queue that were put aside. Its methods block for a
// round trip, are safe for concurrent use, and return the queue's errors.
func (b *Backend) Quarantine(queue string) *Quarantine { return &Quarantine{b: b, queue: queue} }

// Quarantine is a queue's unreadable entries that were put aside.
type Quarantine struct {
	b     *Backend
	queue string
}

// maxPage is the longest page of a listing.
const maxPage = 1000

// List returns up to limit things, 1 to 1000, by due time, from the cursor on: "" starts, and a
// returned cursor of "" says that there are no more.
func (q *Quarantine) List(ctx context.Context, cursor string, limit int) (page []Quarantined, next string, err error) {
	s, from, err := q.b.listing(q.queue, cursor, limit)
	if err != nil {
		return nil, "", err
	}
	zs, err := call.Do(ctx, s.Calls, func(ctx context.Context) ([]redis.Z, error) {
		return s.Client.ZRangeWithScores(ctx, s.quarantineKey(), from, from+int64(limit)).Result()
	})
	if err != nil {
		return nil, "", fmt.Errorf("listing the quarantine: %w", script.Translate(err))
	}
	for i, z := range zs {
		if i == limit {
			return page, strconv.FormatInt(from+int64(limit), 10), nil
		}
		page = append(page, s.quarantined(z))
	}
	return page, "", nil
}

// listing checks the arguments of a listing.
func (b *Backend) listing(queue, cursor string, limit int) (s *store, from int64, err error) {
	if limit < 1 || limit > maxPage {
		return nil, 0, backend.Invalid("limit", limit, "1 to 1000")
	}
	if cursor != "" {
		if from, err = strconv.ParseInt(cursor, 10, 64); err != nil || from < 0 {
			return nil, 0, backend.Invalid("cursor", cursor, "one that a listing returned")
		}
	}
	s, err = b.direct(queue)
	return s, from, err
}

// direct is a queue's store without a handle.
func (b *Backend) direct(queue string) (*store, error) {
	if b.setup.err != nil {
		return nil, b.setup.err
	}
	if queue == "" || len(queue) > backend.MaxName {
		return nil, backend.Invalid("queue name", queue, "1 to 200 bytes")
	}
	return b.store(queue, backend.Options{})
}

func (s *store) quarantineKey() string { return s.Keys[len(s.Keys)-1] }

func (s *store) quarantined(z redis.Z) Quarantined {
	entry, _ := z.Member.(string)
	q := Quarantined{ID: entryID(entry), Place: InTimeouts, Due: time.UnixMilli(int64(z.Score)).UTC(), Bytes: []byte(entry[min(1, len(entry)):])}
	_, err := ParseMember(q.Bytes)
	if len(entry) > 0 && entry[0] == 'D' {
		q.Place = InDestination
		_, _, err = unseal(q.Bytes)
	}
	if err != nil {
		q.Reason = described(err)
	} else if s.envelopes() {
		q.Reason = "its payload is no envelope"
	}
	return q
}

const shownDigest = 12

func entryID(entry string) string {
	sum := sha256.Sum256([]byte(entry))
	return hex.EncodeToString(sum[:shownDigest])
}

// Restore puts entries back where they were, when a reader for them is there, or for Redisson
// itself to take. An overdue entry is due at once. One that this package still cannot read returns
// to the quarantine when it is due. The outcomes are in the order of ids; the outcome of an unknown
// id is [backend.ErrNotFound].
func (q *Quarantine) Restore(ctx context.Context, ids []string) []error {
	return q.move(ctx, ids, false)
}

// Delete deletes entries for good. Outcomes are as with Restore.
func (q *Quarantine) Delete(ctx context.Context, ids []string) []error { return q.move(ctx, ids, true) }

func (q *Quarantine) move(ctx context.Context, ids []string, drop bool) []error {
	s, err := q.b.direct(q.queue)
	if err != nil {
		return backend.FailAll(len(ids), err)
	}
	entries, err := call.Do(ctx, s.Calls, func(ctx context.Context) ([]string, error) {
		return s.Client.ZRange(ctx, s.quarantineKey(), 0, -1).Result()
	})
	if err != nil {
		return backend.FailAll(len(ids), fmt.Errorf("reading the quarantine: %w", script.Translate(err)))
	}
	byID := make(map[string]string, len(entries))
	for _, e := range entries {
		byID[entryID(e)] = e
	}
	var there []string
	errs := make([]error, len(ids))
	for i, id := range ids {
		if e, ok := byID[id]; ok {
			there = append(there, e)
		} else {
			errs[i] = backend.ErrNotFound
		}
	}
	return merge(errs, script.Chunked(there, func(e string) int { return len(e) }, func(part []string) []error {
		return script.Each(ctx, &s.Runner, restoreScript, part, []any{script.Flag(drop)}, func(args []any, e string) []any {
			return append(args, e)
		}, script.OneOr(backend.ErrNotFound))
	}))
}
