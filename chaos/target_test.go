package chaos

import (
	"context"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/judge"
)

// A target is a store, the ways to it, and its faults.
type target struct {
	name    string
	opens   []OpenFunc // the first one directly, the others through proxies
	direct  Endpoint   // for processes
	proxied Endpoint
	rate    float64 // messages a second
	mix     func(*Mix)
	poison  int         // messages that kill
	repeats bool        // see judge.History
	clock   *storeClock // nil for the machine's

	faults     []*fault
	oneProcess bool                            // no other process can open the backend
	outside    bool                            // all clients are in other processes: none here has the store open while faults strike
	tear       func(*injection) int            // of such a target: it damages what a power cut may, while all are dead
	ownFaults  bool                            // clients and processes have no faults, since those of the target take long
	harmless   bool                            // only harmlessFaults strike
	lastFault  func(t *testing.T) judge.Window // before the drain; nil for none

	// oneLock says that one process that stops may hold the lock that all wait for.
	oneLock bool

	drainTime time.Duration // in which a drain has to end
	skipCalm  bool          // no calm follows in which a lost wake-up shows; other targets have it
	leftovers func(context.Context, backend.Backend) ([]string, error)
	locate    func() string // where the messages are, by the store's tools; nil for unknown
}

type targetFunc func(t *testing.T) *target

// The name of the second queue begins like the first one's, and its messages have ids of the first
// one's.
const (
	queueName   = "chaos"
	secondQueue = "chaos-second"
	poisonQueue = "poison"
)

// shift is the difference of the store's clock from the machine's between jumps.
func (v *target) shift() time.Duration {
	if v.clock == nil {
		return 0
	}
	return v.clock.shift
}

// remains returns what a store still holds of the queues.
func remains(ctx context.Context, b backend.Backend) ([]string, error) {
	if s, ok := b.(shared); ok {
		b = s.Backend
	}
	return b.(admin.Remover).Remains(ctx, queueName, secondQueue, poisonQueue)
}

// sharing opens a backend, with its connections, that all clients share until the test ends.
func sharing(t *testing.T, open OpenFunc) OpenFunc {
	t.Helper()
	b, err := open(t.Context())
	must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return func(context.Context) (backend.Backend, error) { return shared{b}, nil }
}
