package memory

import (
	"sort"
	"strconv"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
)

// A deadList keeps dead letters in the order of their deaths. A removed letter leaves a hole; when
// half of the list is holes, the list is packed.
type deadList struct {
	pos     *paged[uint32] // of each slot
	letters []letter
	holes   int
	deaths  uint64
}

type letter struct {
	slot   uint32 // none for a hole
	seq    uint64 // of the death; the cursor of a listing
	due    int64
	died   int64
	reason string
}

func (l *deadList) len() int { return len(l.letters) - l.holes }

func (l *deadList) add(slot uint32, due, died int64, reason string) {
	l.deaths++
	*l.pos.at(slot) = uint32(len(l.letters))
	l.letters = append(l.letters, letter{slot, l.deaths, due, died, reason})
}

// at returns the letter of a slot. It is valid until the list changes.
func (l *deadList) at(slot uint32) *letter { return &l.letters[*l.pos.at(slot)] }

func (l *deadList) remove(slot uint32) {
	at := l.at(slot)
	at.slot, at.reason = none, ""
	l.holes++
	if l.holes > len(l.letters)/2 {
		l.pack()
	}
}

func (l *deadList) pack() {
	packed := make([]letter, 0, l.len())
	for _, d := range l.letters {
		if d.slot != none {
			*l.pos.at(d.slot) = uint32(len(packed))
			packed = append(packed, d)
		}
	}
	l.letters, l.holes = packed, 0
}

// notKept returns up to limit slots of the oldest letters that the retention does not keep.
func (l *deadList) notKept(r backend.Retention, now int64, limit int) (gone []uint32) {
	beyond := 0
	if r.MaxCount > 0 {
		beyond = l.len() - r.MaxCount
	}
	for _, d := range l.letters {
		old := r.MaxAge > 0 && now-d.died >= int64(r.MaxAge)
		switch {
		case d.slot == none:
		case len(gone) == limit || len(gone) >= beyond && !old:
			return gone
		default:
			gone = append(gone, d.slot)
		}
	}
	return gone
}

// from returns the letters after the cursor.
func (l *deadList) from(cursor string) ([]letter, error) {
	if cursor == "" {
		return l.letters, nil
	}
	seq, err := strconv.ParseUint(cursor, 10, 64)
	if err != nil {
		return nil, backend.Invalid("cursor", cursor, "one that a listing returned")
	}
	i := sort.Search(len(l.letters), func(i int) bool { return l.letters[i].seq > seq })
	return l.letters[i:], nil
}

// pageOfDead applies show to a page of dead letters, and returns the results and the cursor of the
// next page. The store is locked.
func pageOfDead[T any](s *store, cursor string, limit int, show func(letter) T) ([]T, string, error) {
	rest, err := s.dead.from(cursor)
	if err != nil {
		return nil, "", err
	}
	var page []T
	var last uint64
	for _, l := range rest {
		if l.slot == none {
			continue
		}
		if len(page) == limit {
			return page, strconv.FormatUint(last, 10), nil
		}
		page = append(page, show(l))
		last = l.seq
	}
	return page, "", nil
}

func (s *store) idLocked(l letter) string {
	return record.UnpackID(record.PackedID(s.arena.bytes(s.nodes.at(l.slot).rec())))
}

// deadLetterLocked makes a message in flight a dead letter, unless it was replaced meanwhile.
func (s *store) deadLetterLocked(slot uint32, now int64, reason string) {
	if s.nodes.at(slot).replaced() {
		s.giveBackLocked(slot, s.held.at(slot))
		return
	}
	due := s.held.at(slot).when
	s.endLeaseLocked(slot)
	s.nodes.at(slot).enter(dead)
	s.dead.add(slot, due, now, reason)
}

// redriveLocked schedules a dead letter as if it had just been pushed.
func (s *store) redriveLocked(slot uint32, now int64) {
	s.dead.remove(slot)
	n := s.nodes.at(slot)
	n.enter(scheduled)
	n.setAttempt(0)
	s.pushes++
	s.due.push(key{now, s.pushes}, slot)
}
