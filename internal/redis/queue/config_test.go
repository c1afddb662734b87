package queue

import (
	"testing"
	"time"
)

func TestPattern(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{"orders": {"orders"}, "or": {"orders", "or", "organs"}, "": {"a", "b"}} {
		if got := common(names); got != want {
			t.Errorf("%v begin with %q, want %q", names, got, want)
		}
	}
	if got := literalPattern(`a*b?[c]\`); got != `a\*b\?\[c\]\\` {
		t.Error(got)
	}
}

func TestPollOutOfRange(t *testing.T) {
	t.Parallel()
	for d, ok := range map[time.Duration]bool{10 * time.Millisecond: true, time.Minute: true, 10*time.Millisecond - 1: false, time.Minute + 1: false, -1: false} {
		var c Config
		if c.SetPoll("Poll", d); (c.Err == nil) != ok || c.Poll != d {
			t.Errorf("%v: %v", d, c.Err)
		}
	}
}
