package chaos_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/judge"
)

// A venue is a store, the ways to it, and what can happen there.
type venue struct {
	name     string
	opens    []chaos.OpenFunc // the first one straight, the others through what breaks connections
	straight chaos.Endpoint   // for processes
	bent     chaos.Endpoint
	inside   bool // nobody outside of this process can open it
	faults   []*fault
	bare     bool    // no other faults strike: these take long
	restless bool    // nothing breaks: only its own actors come and go
	rate     float64 // messages a second
	mix      func(*chaos.Mix)
	clock    *jumper                         // of the store; nil for the machine's
	settle   func(t *testing.T) judge.Window // the last fault, before the drain; nil for none
	repeats  bool                            // see judge.History
	patient  time.Duration                   // how long a drain may take
	poison   int                             // messages that kill
	brief    bool                            // it ends without the calm in which a lost wake-up shows; other venues have that
	left     func(context.Context, backend.Backend) ([]string, error)
	where    func(*testing.T) string // the messages are, as the store tells; nil where nobody asks it
}

// secondQueue begins as queueName does, and its messages have ids that those have.
const (
	queueName   = "chaos"
	secondQueue = "chaos-second"
)

// remains names what the store holds of the queues.
func remains(ctx context.Context, b backend.Backend) ([]string, error) {
	r, ok := b.(interface {
		Remains(ctx context.Context, queues ...string) ([]string, error)
	})
	if !ok {
		return nil, nil
	}
	return r.Remains(ctx, queueName, secondQueue, poisonQueue)
}

const poisonQueue = "poison"

func sanitized(name string) string { return strings.ReplaceAll(name, "/", "-") }

type venueFunc func(t *testing.T) *venue

// usual is how far the store's clock is off where it is left alone.
func (v *venue) usual() time.Duration {
	if v.clock == nil {
		return 0
	}
	return v.clock.usual
}

func (v *venue) clockJumps() []judge.ClockJump {
	if v.clock == nil {
		return nil
	}
	return v.clock.made
}
