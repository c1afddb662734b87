package shard

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/store"
)

// A place is behind a message of a listing by due time: all that are due before, those of the same time
// in the shards before, and in its own shard those up to a member. It is written as
// due.shard.member, with the due time in ms.
type place struct {
	due    int64
	shard  int
	member string // in hexadecimal digits
}

// last is after every member: those begin with a number of 7 bytes, which is far smaller.
const last = "ff"

func placeOf(cursor string, shards int) (p place, err error) {
	due, rest, _ := strings.Cut(cursor, ".")
	shard, member, _ := strings.Cut(rest, ".")
	var err2 error
	p.due, err = strconv.ParseInt(due, 10, 64)
	p.shard, err2 = strconv.Atoi(shard)
	if p.member = member; err != nil || err2 != nil || member == "" || p.shard < 0 || p.shard >= shards {
		return p, backend.Invalid("cursor", cursor, "one that Peek returned")
	}
	return p, nil
}

func (p place) String() string {
	return strconv.FormatInt(p.due, 10) + "." + strconv.Itoa(p.shard) + "." + p.member
}

// in returns the cursor of a shard.
func (p place) in(shard int) string {
	switch {
	case shard < p.shard:
		return strconv.FormatInt(p.due, 10) + "." + last
	case shard > p.shard:
		return strconv.FormatInt(p.due-1, 10) + "." + last
	default:
		return strconv.FormatInt(p.due, 10) + "." + p.member
	}
}

func (p place) before(other place) bool {
	return cmp.Or(cmp.Compare(p.due, other.due), cmp.Compare(p.shard, other.shard), cmp.Compare(p.member, other.member)) < 0
}

// Peek is as in backend.Queue. It reads a part of the page from each shard. What is behind the first
// place at which a shard has more is left for the next page.
func (q *Queue) Peek(ctx context.Context, cursor string, limit int) (page []backend.Pending, next string, err error) {
	var from place
	if cursor != "" {
		if from, err = placeOf(cursor, len(q.shards)); err != nil {
			return nil, "", err
		}
	}
	type part struct {
		page []backend.Pending
		next string
	}
	parts, err := all(q, func(k int, s *store.Store) (p part, err error) {
		begin := ""
		if cursor != "" {
			begin = from.in(k)
		}
		p.page, p.next, err = s.Peek(ctx, begin, max(1, limit/len(q.shards)))
		return p, err
	})
	if err != nil {
		return nil, "", err
	}
	type entry struct {
		place
		m *backend.Pending
	}
	var entries []entry
	var end *place
	for k := range parts {
		for i := range parts[k].page {
			m := &parts[k].page[i]
			entries = append(entries, entry{place{m.Due.UnixMilli(), k, last}, m})
		}
		if parts[k].next != "" {
			due, member, _ := strings.Cut(parts[k].next, ".")
			ms, _ := strconv.ParseInt(due, 10, 64)
			if more := (place{ms, k, member}); end == nil || more.before(*end) {
				end = &more
			}
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.shard, b.shard)) })
	for i, e := range entries {
		if end != nil && cmp.Or(cmp.Compare(e.due, end.due), cmp.Compare(e.shard, end.shard)) > 0 {
			break
		}
		if i == limit { // each shard's part is one message then, behind which its part ends
			end = &entries[i-1].place
			if due, member, _ := strings.Cut(parts[end.shard].next, "."); due == strconv.FormatInt(end.due, 10) {
				end.member = member
			}
			break
		}
		page = append(page, *e.m)
	}
	if end != nil {
		next = end.String()
	}
	return page, next, nil
}

// letters is how many more than its part of a page are read from each shard.
const letters = 8

// ListDead is as in backend.Queue. A cursor has the place in each shard. A page ends where the next
// letter of a shard is not known.
func (q *Queue) ListDead(ctx context.Context, cursor string, limit int) (page []backend.DeadLetter, next string, err error) {
	from := make([]string, len(q.shards))
	if cursor != "" {
		if from = strings.Split(cursor, "."); len(from) != len(q.shards) {
			return nil, "", backend.Invalid("cursor", cursor, "one that a listing returned")
		}
	}
	type part struct {
		letters []store.PlacedLetter
		more    bool
	}
	parts, err := all(q, func(k int, s *store.Store) (p part, err error) {
		var next string
		p.letters, next, err = s.ListPlaced(ctx, from[k], min(limit, limit/len(q.shards)+letters))
		p.more = next != ""
		return p, err
	})
	if err != nil {
		return nil, "", err
	}
	more := false
	for range limit {
		k := -1 // the shard with the oldest death
		for i := range parts {
			if len(parts[i].letters) > 0 && (k < 0 || parts[i].letters[0].Died.Before(parts[k].letters[0].Died)) {
				k = i
			}
		}
		if k < 0 {
			break
		}
		l := parts[k].letters[0]
		page, from[k], parts[k].letters = append(page, l.DeadLetter), l.Place, parts[k].letters[1:]
		if len(parts[k].letters) == 0 && parts[k].more { // what comes next there is not known
			more = true
			break
		}
	}
	for _, p := range parts {
		more = more || p.more || len(p.letters) > 0
	}
	if more {
		next = strings.Join(from, ".")
	}
	return page, next, nil
}

// ListDeadIDs is as in backend.Queue.
func (q *Queue) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	return backend.DeadIDs(q.ListDead(ctx, cursor, limit))
}

// trimAtOnce is how many dead letters a call deletes at most that are too many.
const trimAtOnce = 500

// TrimDead is as in backend.Queue. Each shard deletes what is too old. What is too many are the oldest
// of all.
func (q *Queue) TrimDead(ctx context.Context, r backend.Retention) (removed int, more bool, err error) {
	if r.MaxAge > 0 {
		removed, more, err = q.trimOld(ctx, r.MaxAge)
	}
	if err != nil || r.MaxCount == 0 {
		return removed, more, err
	}
	st, err := q.Stats(ctx)
	surplus := int(st.Dead) - r.MaxCount
	if err != nil || surplus <= 0 {
		return removed, more, err
	}
	ids, _, err := q.ListDeadIDs(ctx, "", min(surplus, trimAtOnce))
	if err != nil {
		return removed, more, err
	}
	deleted := len(ids)
	for _, err := range q.DeleteDead(ctx, ids) {
		if err != nil { // another call has deleted it, or it is found at the next
			deleted--
		}
	}
	return removed + deleted, more || deleted > 0 && deleted < surplus, nil
}

func (q *Queue) trimOld(ctx context.Context, age time.Duration) (removed int, more bool, err error) {
	type trimmed struct {
		removed int
		more    bool
	}
	parts, err := all(q, func(_ int, s *store.Store) (p trimmed, err error) {
		p.removed, p.more, err = s.TrimDead(ctx, backend.Retention{MaxAge: age})
		return p, err
	})
	for _, p := range parts {
		removed, more = removed+p.removed, more || p.more
	}
	return removed, more, err
}
