package keyspace_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
)

// In virtual time nothing expires, so no subscription is needed.
func TestClockNeedsNoServerSetting(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t)
	b := newBackend(t, client)
	q, err := b.Open(t.Context(), "q", backend.Options{Logger: slog.New(slog.DiscardHandler), Clock: clockwork.NewFakeClock()})
	must(t, err)
	push(t, q, "m", time.Hour)
	if f := flags(t, client); f != "" {
		t.Errorf("notify-keyspace-events was set to %q", f)
	}
	if n := triggers(t, client); n != 0 {
		t.Errorf("%d triggers", n)
	}
}
