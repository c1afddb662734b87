package chaos_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/testenv"
)

// clocksWrong lasts all the time. It only looks whether the clocks differ as they should.
func clocksWrong(s *testenv.RedisServer, skew time.Duration) *fault {
	wrong := false
	return &fault{
		Kind: chaos.Kind{Name: "clocks wrong", Weight: 1},
		on: func(t *testing.T, _ *rand.Rand) {
			client := s.Client(t, patiently)
			defer func() { _ = client.Close() }()
			at, err := client.Time(t.Context()).Result()
			must(t, err)
			wrong = (time.Until(at) - skew).Abs() < time.Minute
		},
		off: func(*testing.T) int { return count(wrong) },
	}
}
