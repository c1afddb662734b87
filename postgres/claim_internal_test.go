package postgres

import (
	"testing"
	"time"
)

// A lease that has ended while a transaction holds its message must not make a handle look again at
// once, and again.
func TestLookAgainForLockedMessage(t *testing.T) {
	t.Parallel()
	ended, soon := int64(1_000), int64(1_000_000+time.Second.Microseconds())
	c := claimed{now: 1_000_000, lease: &ended, next: &soon}
	if got, want := c.claim(1).Next, moment(c.now).Add(lockedAgain); !got.Equal(want) {
		t.Errorf("it looks again at %v, want %v", got, want)
	}
}
