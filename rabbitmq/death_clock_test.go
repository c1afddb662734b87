package rabbitmq

import (
	"testing"
	"time"
)

func TestDeathClock(t *testing.T) {
	var c deathClock
	now := time.UnixMicro(5_000_000)
	for i, want := range []int64{5_000_000, 5_000_001, 5_000_002} {
		if got := c.next(now); got != want {
			t.Errorf("death %d in one microsecond is at %d, want %d", i, got, want)
		}
	}
	if got := c.next(now.Add(-time.Hour)); got != now.Add(-time.Hour).UnixMicro() {
		t.Errorf("after the clock was set back a death is at %d", got)
	}
}
