package wire

import (
	"time"

	"github.com/delayq/delayq/backend"
)

// Store describes the store behind a server, and the server's limits.
type Store struct {
	Name         string   `json:"name"`
	Features     []string `json:"features"`
	Resolution   Duration `json:"resolution"`
	Sweep        Duration `json:"sweep"`
	Disorder     Duration `json:"disorder"`
	MaxDelay     Duration `json:"max_delay"`
	MaxBody      int      `json:"max_body"`
	Leases       string   `json:"leases"`
	AnyName      bool     `json:"any_queue_name"`
	RequestBytes int64    `json:"max_request_bytes"`
	Batch        int      `json:"max_batch"`
	Wait         Duration `json:"max_wait"`
}

// features are the names of the features. A feature without a name is one that HTTP cannot offer.
var features = map[backend.Feature]string{
	backend.Cancelling:        "cancel",
	backend.Rescheduling:      "reschedule",
	backend.Counting:          "stats",
	backend.Redriving:         "dead_letters",
	backend.Ordering:          "order",
	backend.Deduplicating:     "deduplication",
	backend.CountingAttempts:  "attempts",
	backend.Durability:        "durability",
	backend.OwnIDs:            "ids",
	backend.KeepingHeaders:    "headers",
	backend.UniqueWindows:     "unique_for",
	backend.Peeking:           "peek",
	backend.Purging:           "purge",
	backend.ChangingHeaders:   "nack_headers",
	backend.Pausing:           "pause",
	backend.ExactAttempts:     "exact_attempts",
	backend.SingleCopy:        "single_copy",
	backend.CancelNotFound:    "cancel_not_found",
	backend.Getting:           "get",
	backend.Replacing:         "replace",
	backend.CountingScheduled: "stats_scheduled",
	backend.ReplacingInFlight: "replace_after_in_flight",

	backend.CountingActivity: "stats_activity",
}

const inConnection = "connection"

// StoreOf describes a store. The caller adds the limits.
func StoreOf(t backend.Traits) Store {
	s := Store{
		Name: t.Name, Features: []string{}, Resolution: Duration(t.Resolution), Sweep: Duration(t.Sweep), Disorder: Duration(t.Disorder),
		MaxDelay: Duration(t.MaxDelay), MaxBody: t.MaxBody, Leases: "store", AnyName: t.AnyName,
	}
	if t.Leases == backend.InConnection {
		s.Leases = inConnection
	}
	if s.MaxDelay == 0 {
		s.MaxDelay = Duration(backend.MaxDelay)
	}
	if s.MaxBody == 0 {
		s.MaxBody = backend.MaxBody
	}
	for _, f := range backend.Features() {
		if name := features[f]; name != "" && t.Supports(f) {
			s.Features = append(s.Features, name)
		}
	}
	return s
}

// Traits returns the promises of the store, under the name of its client. It lacks the features that
// a server does not name: it may be older than the client.
func (s *Store) Traits(name string) backend.Traits {
	named := make(map[string]bool, len(s.Features))
	for _, f := range s.Features {
		named[f] = true
	}
	t := backend.Traits{
		Name: name, Resolution: time.Duration(s.Resolution), Sweep: time.Duration(s.Sweep), Disorder: time.Duration(s.Disorder),
		MaxDelay: time.Duration(s.MaxDelay), MaxBody: s.MaxBody, AnyName: s.AnyName,
	}
	if s.Leases == inConnection {
		t.Leases = backend.InConnection
	}
	for _, f := range backend.Features() {
		if name := features[f]; name == "" || !named[name] {
			t.Lacks = t.Lacks.With(f)
		}
	}
	return t
}
