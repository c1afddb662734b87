package testenv

import (
	"sync"
	"testing"
)

// Parallel tests talk to one broker at once.
func TestRabbitEvalsAtOnce(t *testing.T) {
	s := SharedRabbitMQ(t)
	if s.control == nil {
		t.Skip("the broker of DELAYQ_RABBITMQ_URL is not ours to command")
	}
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 5 {
				if value, err := s.control.eval("1 + 1."); err != nil || value != "2" {
					t.Errorf("eval returned %q, %v", value, err)
				}
			}
		})
	}
	all.Wait()
}
