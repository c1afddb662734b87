package testenv_test

import (
	"testing"
	"time"

	"github.com/delayq/delayq/internal/testenv"
)

// TestClockJumps sets the clock of a server that runs, forward, back and by less than a second, and
// has it keep that over a restart.
func TestClockJumps(t *testing.T) {
	clock := testenv.NewClock(t, time.Hour)
	server := testenv.Redis(t, testenv.OnClock(clock))
	client := server.Client(t)
	look := func() {
		t.Helper()
		before := time.Now().Truncate(time.Microsecond)
		at, err := client.Time(t.Context()).Result()
		after := time.Now()
		if err != nil {
			t.Fatal(err)
		}
		if at = at.Add(-clock.Skew()); at.Before(before) || at.After(after) {
			t.Errorf("with a skew of %v it is %v, between %v and %v, by the server", clock.Skew(), at, before, after)
		}
	}
	look()
	for _, skew := range []time.Duration{-time.Hour, 0, 1500 * time.Millisecond, -1500 * time.Millisecond} {
		clock.Set(t, skew)
		look()
	}
	server.Restart()
	if err := client.Ping(t.Context()).Err(); err != nil { // the first one meets the connection that broke
		t.Fatal(err)
	}
	look()
}
