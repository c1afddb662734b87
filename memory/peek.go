package memory

import (
	pq "container/heap"
	"math"
	"strconv"
	"strings"

	"github.com/delayq/delayq/backend"
)

// peekLocked returns a page of scheduled messages, and the cursor of the next: the place in due of
// the last one.
func (s *store) peekLocked(now int64, cursor string, limit int) (page []backend.Pending, next string, err error) {
	k, err := placeOf(cursor)
	if err != nil {
		return nil, "", err
	}
	slots := s.due.after(k, limit+1)
	for _, slot := range slots[:min(limit, len(slots))] {
		page = append(page, s.infoLocked(slot, now))
	}
	if len(slots) > limit {
		last := s.due.key(slots[limit-1])
		next = strconv.FormatInt(last.when, 10) + "." + strconv.FormatUint(last.seq, 10)
	}
	return page, next, nil
}

func placeOf(cursor string) (key, error) {
	if cursor == "" {
		return key{when: math.MinInt64}, nil
	}
	due, order, _ := strings.Cut(cursor, ".")
	when, err := strconv.ParseInt(due, 10, 64)
	seq, err2 := strconv.ParseUint(order, 10, 64)
	if err != nil || err2 != nil {
		return key{}, backend.Invalid("cursor", cursor, "one that Peek returned")
	}
	return key{when, seq}, nil
}

// after returns up to n slots in order whose keys come after a key. It visits all slots up to that
// key, n more, and their children.
func (h *heap) after(k key, n int) (slots []uint32) {
	f := frontier{heap: h}
	f.seek(root, k)
	pq.Init(&f)
	for len(slots) < n && f.Len() > 0 {
		i := f.places[0]
		slots = append(slots, *h.slots.at(i))
		pq.Pop(&f)
		for c := firstChild(i); c < min(firstChild(i)+4, root+h.n); c++ {
			pq.Push(&f, c)
		}
	}
	return slots
}

// A frontier is the places of a heap that are looked at next, the least key first.
type frontier struct {
	*heap
	places []uint32
}

// seek adds the first places at or below i whose keys come after k.
func (f *frontier) seek(i uint32, k key) {
	if i >= root+f.n {
		return
	}
	if k.before(*f.keys.at(i)) {
		f.places = append(f.places, i)
		return
	}
	for c := firstChild(i); c < firstChild(i)+4; c++ {
		f.seek(c, k)
	}
}

func (f *frontier) Len() int           { return len(f.places) }
func (f *frontier) Less(a, b int) bool { return f.keys.at(f.places[a]).before(*f.keys.at(f.places[b])) }
func (f *frontier) Swap(a, b int)      { f.places[a], f.places[b] = f.places[b], f.places[a] }
func (f *frontier) Push(x any)         { f.places = append(f.places, x.(uint32)) }

func (f *frontier) Pop() any {
	last := len(f.places) - 1
	i := f.places[last]
	f.places = f.places[:last]
	return i
}
