package interop

import (
	"context"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/testenv"
)

// JVM is a test's handle on a Java process with one client of Redisson, which has Redisson's
// default settings but for a timeout of 15 s instead of 3 s. Any goroutine may call its methods,
// but Kill, which ends the test when it fails.
type JVM struct {
	tb      testing.TB
	process *process
	shared  bool
}

// Option says how to start a [JVM].
type Option func(*settings)

type settings struct{ cluster bool }

// Cluster makes the client one of a Redis Cluster; the address is that of any node.
func Cluster() Option { return func(s *settings) { s.cluster = true } }

// Start starts a Java process with one of the [Versions] and returns when its client is connected,
// after about a second. When the program is not there, or its sources have changed, it is built
// first. The address is host:port or redis://user:password@host:port/database. The process ends with
// the test, and when the test has failed, the end of Redisson's log is in the test's log.
func Start(tb testing.TB, version, addr string, opts ...Option) *JVM {
	tb.Helper()
	var set settings
	for _, opt := range opts {
		opt(&set)
	}
	p, err := launch(version, addr, set)
	testenv.Require(tb, err)
	tb.Cleanup(func() {
		if err := p.remove(); err != nil {
			tb.Errorf("removing a Java process: %v", err)
		}
	})
	return attach(tb, p, false)
}

// attach logs Redisson's log when the test has failed.
func attach(tb testing.TB, p *process, shared bool) *JVM {
	j := &JVM{tb: tb, process: p, shared: shared}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("Redisson %s, process %d, logged at the end:\n%s", p.version, p.program.Pid(), j.Log())
		}
	})
	return j
}

// Version is the release of Redisson.
func (j *JVM) Version() string { return j.process.version }

// Log returns the last 2,000 bytes of Redisson's log. Lines of ERROR are not always failures: the
// newer releases log one to say that RDelayedQueue is deprecated.
func (j *JVM) Log() string { return j.process.program.Log() }

// Clock asks for the time in Java, to the microsecond or better. It is the clock by which Redisson
// computes due times, which it cuts to milliseconds.
func (j *JVM) Clock(ctx context.Context) (time.Time, error) {
	nanos, err := result[int64](j.process.ask(ctx, "clock"))
	return time.Unix(0, nanos), err
}

// Kill ends the process at once (SIGKILL), as a crash would. Calls that wait match [ErrEnded].
func (j *JVM) Kill() {
	j.tb.Helper()
	if j.shared {
		j.tb.Fatal("cannot kill the JVM: other tests use it; Start gives one of your own")
	}
	if err := j.process.program.Kill(); err != nil {
		j.tb.Fatalf("cannot kill the JVM: %v", err)
	}
}
