package demo

import (
	"fmt"
	"time"
)

// summary is what a run comes to.
type summary struct {
	pushed, handled, cancelled, dead, redriven int

	early, lost, duplicates, fired, altered, left int // each breaks a promise

	foreign int // messages of somebody else; no fault of the queue

	p50, p99, max *time.Duration // of lateness; nil without a hand-out
}

func (s *summary) broken() bool {
	return s.early+s.lost+s.duplicates+s.fired+s.altered+s.left > 0
}

// String is one line that a script can take apart: words, each followed by its value.
func (s *summary) String() string {
	return fmt.Sprintf("summary: pushed %d handled %d cancelled %d dead %d redriven %d"+
		" | early %d lost %d duplicates %d fired-after-cancel %d altered %d left %d"+
		" | lateness p50 %s p99 %s max %s",
		s.pushed, s.handled, s.cancelled, s.dead, s.redriven,
		s.early, s.lost, s.duplicates, s.fired, s.altered, s.left,
		millis(s.p50), millis(s.p99), millis(s.max))
}

func millis(d *time.Duration) string {
	if d == nil {
		return "-"
	}
	return fmt.Sprintf("%.1fms", float64(*d)/float64(time.Millisecond))
}
