package memory

import (
	"math/rand/v2"
	"time"

	"github.com/delayq/delayq/backend"
)

const (
	surveyed = 4096 // scheduled messages that are counted one by one
	sampled  = 4096 // messages that an estimate is made from
)

// survey counts the ready and the scheduled messages. It visits the ready ones and some thousand of
// the others, however many there are. Intervals with more than that are estimated.
func (h *heap) survey(now int64) backend.Stats {
	s := surveyor{heap: h, now: now, exact: len(backend.DueHistogram{}) - 1}
	s.visit(root)
	s.Scheduled = int64(h.len()) - s.Ready
	s.DueEstimated = s.exact < len(s.Due)-1
	rest := s.Scheduled - s.counted
	if !s.DueEstimated {
		s.Due[s.exact] = rest
		return s.Stats
	}
	s.estimate(rest)
	return s.Stats
}

// A surveyor walks over a heap, where each message is due no sooner than its parent.
type surveyor struct {
	backend.Stats
	heap    *heap
	now     int64
	exact   int   // intervals of Due that the walk counts; all after them are left to the estimate
	counted int64 // the messages in these
}

func (s *surveyor) visit(i uint32) {
	if i >= root+s.heap.n {
		return
	}
	if wait := s.heap.keys.at(i).when - s.now; wait <= 0 {
		s.Ready++
	} else if !s.count(backend.DueInterval(time.Duration(wait))) {
		return
	}
	first := firstChild(i)
	for c := first; c < first+4; c++ {
		s.visit(c)
	}
}

// count counts a message, and gives up the last interval when there are too many. It reports
// whether messages after this one are still counted.
func (s *surveyor) count(interval int) bool {
	if interval >= s.exact {
		return false
	}
	s.Due[interval]++
	s.counted++
	for s.counted > surveyed {
		s.exact--
		s.counted -= s.Due[s.exact]
		s.Due[s.exact] = 0
	}
	return true
}

// estimate spreads the messages that were not counted over the last intervals, as a sample has
// them: one message from each of many equal parts of the heap.
func (s *surveyor) estimate(rest int64) {
	var seen backend.DueHistogram
	total := int64(0)
	for n, j := int64(s.heap.len()), int64(0); j < sampled; j++ {
		at := (j*n + rand.Int64N(n)) / sampled
		wait := s.heap.keys.at(root+uint32(at)).when - s.now
		if i := backend.DueInterval(time.Duration(wait)); wait > 0 && i >= s.exact {
			seen[i]++
			total++
		}
	}
	left := rest
	for i := len(seen) - 1; i > s.exact && total > 0; i-- {
		s.Due[i] = rest * seen[i] / total
		left -= s.Due[i]
	}
	s.Due[s.exact] = left
}
