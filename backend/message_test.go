package backend_test

import (
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

func TestDueAt(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	past := now.Add(-time.Hour)
	for _, c := range []struct {
		due   time.Time
		delay time.Duration
		want  time.Time
	}{
		{want: now},
		{delay: time.Minute, want: now.Add(time.Minute)},
		{due: past, want: past},
		{due: time.Time{}.Local(), delay: time.Minute, want: now.Add(time.Minute)},
	} {
		m := backend.Message{Due: c.due, Delay: c.delay}
		if got := m.DueAt(now); !got.Equal(c.want) {
			t.Errorf("a message with due %v and delay %v is due at %v, want %v", c.due, c.delay, got, c.want)
		}
		move := backend.Move{Due: c.due, Delay: c.delay}
		if got := move.DueAt(now); !got.Equal(c.want) {
			t.Errorf("a move with due %v and delay %v is due at %v, want %v", c.due, c.delay, got, c.want)
		}
	}
}
