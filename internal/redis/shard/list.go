package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/store"
)

// A place is behind a message of a listing by due time: all that are due before, those of the same time
// in the shards before, and in its own shard those up to a member. It is written as
// due.generation.shard.member, with the due time in ms.
type place struct {
	due int64
	position
	member string // in hexadecimal digits
}

// last is after every member: those begin with a number of 7 bytes, which is far smaller.
const last = "ff"

func placeOf(cursor string) (p place, err error) {
	parts := strings.Split(cursor, ".")
	var errs [3]error
	switch len(parts) {
	case 2: // of the queue before it had shards
		p.due, errs[0] = strconv.ParseInt(parts[0], 10, 64)
		p.member = parts[1]
	case 4:
		p.due, errs[0] = strconv.ParseInt(parts[0], 10, 64)
		p.generation, errs[1] = strconv.ParseInt(parts[1], 10, 64)
		p.shard, errs[2] = strconv.Atoi(parts[2])
		p.member = parts[3]
	}
	if errors.Join(errs[:]...) != nil || p.member == "" {
		return p, backend.Invalid("cursor", cursor, "one that Peek returned")
	}
	return p, nil
}

func (p place) String() string {
	return fmt.Sprintf("%d.%d.%d.%s", p.due, p.generation, p.shard, p.member)
}

// in returns the cursor of a shard.
func (p place) in(shard position) string {
	switch shard.compare(p.position) {
	case -1:
		return strconv.FormatInt(p.due, 10) + "." + last
	case 1:
		return strconv.FormatInt(p.due-1, 10) + "." + last
	default:
		return strconv.FormatInt(p.due, 10) + "." + p.member
	}
}

func (p place) compare(other place) int {
	return cmp.Or(cmp.Compare(p.due, other.due), p.position.compare(other.position))
}

// A listing is what a shard returns of a page.
type listing struct {
	position
	page []backend.Pending
	next string
}

// An entry is a message of a listing by all shards. What is behind it in its shard begins at next.
type entry struct {
	place
	message *backend.Pending
	next    string
}

// Peek is as in backend.Queue. It reads a part of the page from each shard. What is behind the first
// place at which a shard has more is left for the next page.
func (q *Queue) Peek(ctx context.Context, cursor string, limit int) (page []backend.Pending, next string, err error) {
	switch s, err := q.plain(ctx); {
	case err != nil:
		return nil, "", err
	case s != nil:
		return s.Peek(ctx, cursor, limit)
	}
	var from place
	if cursor != "" {
		if from, err = placeOf(cursor); err != nil {
			return nil, "", err
		}
	}
	shards, err := q.current(ctx)
	if err != nil {
		return nil, "", err
	}
	listings, err := all(shards, func(k int, s *store.Store) (l listing, err error) {
		l.position = shards[k].position
		begin := ""
		if cursor != "" {
			begin = from.in(l.position)
		}
		l.page, l.next, err = s.Peek(ctx, begin, max(1, limit/len(shards)))
		return l, err
	})
	if err != nil {
		return nil, "", err
	}
	entries, end := merge(listings)
	if len(entries) > limit { // each shard's part is one message then, behind which its part ends
		entries, end = entries[:limit], entries[limit-1].end()
	}
	for _, e := range entries {
		page = append(page, *e.message)
	}
	if end != nil {
		next = end.String()
	}
	return page, next, nil
}

// merge returns the messages of listings in order, up to the first place at which a shard has more, and
// that place; nil where none has.
func merge(listings []listing) (entries []entry, end *place) {
	for _, l := range listings {
		for i := range l.page {
			m := &l.page[i]
			entries = append(entries, entry{place{m.Due.UnixMilli(), l.position, last}, m, l.next})
		}
		if l.next != "" {
			due, member, _ := strings.Cut(l.next, ".")
			ms, _ := strconv.ParseInt(due, 10, 64)
			if more := (place{ms, l.position, member}); end == nil || more.compare(*end) < 0 {
				end = &more
			}
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return a.compare(b.place) })
	if end != nil {
		entries = slices.DeleteFunc(entries, func(e entry) bool { return e.compare(*end) > 0 })
	}
	return entries, end
}

// end returns the place behind an entry that is the only one of its shard's part.
func (e entry) end() *place {
	if due, member, _ := strings.Cut(e.next, "."); due == strconv.FormatInt(e.due, 10) {
		e.member = member
	}
	return &e.place
}

// letters is how many more than its part of a page are read from each shard.
const letters = 8

// deadPlaces are the places in the dead letters of shards, behind which a page begins. They are written
// as generation.shard:place, one after the other.
type deadPlaces map[position]string

func deadPlacesOf(cursor string) (deadPlaces, error) {
	from := make(deadPlaces)
	if cursor == "" {
		return from, nil
	}
	if place, err := strconv.ParseUint(cursor, 10, 64); err == nil { // of the queue before it had shards
		from[position{}] = strconv.FormatUint(place, 10)
		return from, nil
	}
	for part := range strings.SplitSeq(cursor, ",") {
		var p position
		var place uint64
		if n, err := fmt.Sscanf(part, "%d.%d:%d", &p.generation, &p.shard, &place); n != 3 || err != nil {
			return nil, backend.Invalid("cursor", cursor, "one that a listing returned")
		}
		from[p] = strconv.FormatUint(place, 10)
	}
	return from, nil
}

func (d deadPlaces) String() string {
	parts := make([]string, 0, len(d))
	for p, place := range d {
		parts = append(parts, fmt.Sprintf("%d.%d:%s", p.generation, p.shard, place))
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}

// ListDead is as in backend.Queue. A page ends where the next letter of a shard is not known.
func (q *Queue) ListDead(ctx context.Context, cursor string, limit int) (page []backend.DeadLetter, next string, err error) {
	switch s, err := q.plain(ctx); {
	case err != nil:
		return nil, "", err
	case s != nil:
		return s.ListDead(ctx, cursor, limit)
	}
	from, err := deadPlacesOf(cursor)
	if err != nil {
		return nil, "", err
	}
	shards, err := q.current(ctx)
	if err != nil {
		return nil, "", err
	}
	type part struct {
		letters []store.PlacedLetter
		more    bool
	}
	parts, err := all(shards, func(k int, s *store.Store) (p part, err error) {
		var next string
		p.letters, next, err = s.ListPlaced(ctx, from[shards[k].position], min(limit, limit/len(shards)+letters))
		p.more = next != ""
		return p, err
	})
	if err != nil {
		return nil, "", err
	}
	for unknown := false; len(page) < limit && !unknown; {
		k := -1 // the shard with the oldest death
		for i, p := range parts {
			if len(p.letters) > 0 && (k < 0 || p.letters[0].Died.Before(parts[k].letters[0].Died)) {
				k = i
			}
		}
		if k < 0 {
			break
		}
		p := &parts[k]
		page = append(page, p.letters[0].DeadLetter)
		from[shards[k].position] = p.letters[0].Place
		p.letters = p.letters[1:]
		unknown = len(p.letters) == 0 && p.more
	}
	if slices.ContainsFunc(parts, func(p part) bool { return p.more || len(p.letters) > 0 }) {
		next = from.String()
	}
	return page, next, nil
}

// ListDeadIDs is as in backend.Queue.
func (q *Queue) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	switch s, err := q.plain(ctx); {
	case err != nil:
		return nil, "", err
	case s != nil:
		return s.ListDeadIDs(ctx, cursor, limit)
	}
	return backend.DeadIDs(q.ListDead(ctx, cursor, limit))
}

// trimAtOnce is how many dead letters a call deletes at most that are too many.
const trimAtOnce = 500

// TrimDead is as in backend.Queue. Each shard deletes what is too old. What is too many are the oldest
// of all.
func (q *Queue) TrimDead(ctx context.Context, r backend.Retention) (removed int, more bool, err error) {
	switch s, err := q.plain(ctx); {
	case err != nil:
		return 0, false, err
	case s != nil:
		return s.TrimDead(ctx, r)
	}
	if r.MaxAge > 0 {
		removed, more, err = q.trimOld(ctx, r.MaxAge)
	}
	if err != nil || r.MaxCount == 0 {
		return removed, more, err
	}
	st, err := q.Stats(ctx)
	if err != nil || int(st.Dead) <= r.MaxCount {
		return removed, more, err
	}
	ids, _, err := q.ListDeadIDs(ctx, "", trimAtOnce)
	if err != nil {
		return removed, more, err
	}
	// Another program may delete the same letters: those are counted after they were listed.
	st, err = q.Stats(ctx)
	surplus := int(st.Dead) - r.MaxCount
	if err != nil || surplus <= 0 {
		return removed, more, err
	}
	ids = ids[:min(surplus, len(ids))]
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
	shards, err := q.current(ctx)
	if err != nil {
		return 0, false, err
	}
	parts, err := all(shards, func(_ int, s *store.Store) (p trimmed, err error) {
		p.removed, p.more, err = s.TrimDead(ctx, backend.Retention{MaxAge: age})
		return p, err
	})
	for _, p := range parts {
		removed, more = removed+p.removed, more || p.more
	}
	return removed, more, err
}
