package conformance

import (
	"testing"

	"github.com/delayq/delayq/backend"
)

// TestTranslatorHasWhatTheQueueHas holds each combination of optional interfaces against what shows.
func TestTranslatorHasWhatTheQueueHas(t *testing.T) {
	t.Parallel()
	type whole struct {
		backend.Queue
		backend.Canceler
		backend.Rescheduler
		backend.Inspector
		backend.DeadLetters
	}
	for bits := range 2 * buries {
		q := translated(withOnly(bits, &translator{}, whole{}, whole{}, whole{}, whole{}), newNames())
		_, c := q.(backend.Canceler)
		_, m := q.(backend.Rescheduler)
		_, i := q.(backend.Inspector)
		_, d := q.(backend.DeadLetters)
		want := [4]bool{bits&cancels != 0, bits&moves != 0, bits&counts != 0, bits&buries != 0}
		if got := [4]bool{c, m, i, d}; got != want {
			t.Errorf("over a queue with %v (cancel, reschedule, stats, dead letters) the translator has %v", want, got)
		}
	}
}
