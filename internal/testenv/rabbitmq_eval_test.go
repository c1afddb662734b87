package testenv

import (
	"sync"
	"testing"
)

// Parallel tests talk to one broker at once.
func TestRabbitEvalsAtOnce(t *testing.T) {
	s := SharedRabbitMQ(t)
	if s.control == nil {
		t.Skip("only a broker that was started here can be told something")
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
