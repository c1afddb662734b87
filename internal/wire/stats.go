package wire

import (
	"time"

	"github.com/delayq/delayq/backend"
)

// Stats counts the messages of a queue. What the store cannot tell is null.
type Stats struct {
	Scheduled    *int64            `json:"scheduled"`
	Ready        *int64            `json:"ready"`
	InFlight     *int64            `json:"in_flight"`
	Dead         *int64            `json:"dead"`
	Quarantined  *int64            `json:"quarantined"`
	Pushed       *int64            `json:"pushed"`
	Acked        *int64            `json:"acked"`
	Lateness     []int64           `json:"lateness"`
	HeadDue      *time.Time        `json:"head_due,omitempty"`
	Paused       bool              `json:"paused"`
	PausedUntil  *time.Time        `json:"paused_until,omitempty"`
	OldestReady  *Duration         `json:"oldest_ready_seconds"`
	Due          map[string]*int64 `json:"due"`
	DueEstimated bool              `json:"due_estimated,omitempty"`
}

// StatsOf returns counts as JSON has them.
func StatsOf(s backend.Stats) Stats {
	w := Stats{
		Scheduled: known(s.Scheduled), Ready: known(s.Ready), InFlight: known(s.InFlight), Dead: known(s.Dead),
		Quarantined: known(s.Quarantined), Pushed: known(s.Activity.Pushed), Acked: known(s.Activity.Acked), HeadDue: Time(s.HeadDue),
		Paused: s.Paused, PausedUntil: Time(s.PausedUntil),
		Due: make(map[string]*int64, len(s.Due)), DueEstimated: s.DueEstimated,
	}
	if s.Activity.Pushed != backend.Unknown {
		w.Lateness = s.Activity.Lateness[:]
	}
	if s.OldestReady != backend.Unknown {
		oldest := Duration(s.OldestReady)
		w.OldestReady = &oldest
	}
	for i, label := range backend.DueLabels() {
		w.Due[label] = known(s.Due[i])
	}
	return w
}

// Read is the inverse of StatsOf.
func (s *Stats) Read() backend.Stats {
	b := backend.Stats{
		Scheduled: count(s.Scheduled), Ready: count(s.Ready), InFlight: count(s.InFlight), Dead: count(s.Dead),
		Quarantined: count(s.Quarantined), HeadDue: At(s.HeadDue), Activity: backend.Activity{Pushed: count(s.Pushed), Acked: count(s.Acked)},
		Paused: s.Paused, PausedUntil: At(s.PausedUntil),
		OldestReady: backend.Unknown, DueEstimated: s.DueEstimated,
	}
	copy(b.Activity.Lateness[:], s.Lateness)
	if s.OldestReady != nil {
		b.OldestReady = time.Duration(*s.OldestReady)
	}
	for i, label := range backend.DueLabels() {
		b.Due[i] = count(s.Due[label])
	}
	return b
}

func known(n int64) *int64 {
	if n == backend.Unknown {
		return nil
	}
	return &n
}

func count(n *int64) int64 {
	if n == nil {
		return backend.Unknown
	}
	return *n
}
