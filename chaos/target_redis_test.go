package chaos

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/testenv"
)

// durable makes a server write each change to its disk before it replies, so that kill -9 loses
// nothing.
func durable(opts ...testenv.Option) []testenv.Option {
	return append([]testenv.Option{testenv.AOF(), testenv.Directive("appendfsync", "always")}, opts...)
}

// retrying makes a client of the test outlast the faults of its server.
func retrying(o *redis.Options) {
	o.ReadTimeout, o.MaxRetries, o.MinRetryBackoff, o.MaxRetryBackoff = 5*time.Second, 20, 10*time.Millisecond, 200*time.Millisecond
}

// onRedis is a target without a proxy.
func onRedis(name string, at Endpoint, faults ...*fault) *target {
	return &target{
		name: at.Backend + ", " + name, rate: 1500, drainTime: time.Minute, leftovers: remains, direct: at, proxied: at,
		opens: []OpenFunc{at.Open}, faults: faults,
		repeats: at.Backend != "redisson", // its pushers choose no ids, so a repeated push is a new message (docs/redis.md)
	}
}

func redisTarget(backendName string, rate float64) targetFunc {
	return func(t *testing.T) *target {
		t.Helper()
		return onServer(t, testenv.Redis(t, durable()...), backendName, rate)
	}
}

// onServer is a target on one server, with proxies.
func onServer(t *testing.T, s *testenv.RedisServer, backendName string, rate float64) *target {
	t.Helper()
	p, toxic := testenv.Proxy(t, s.Addr()), newToxicProxy(t, s.Addr())
	at := func(addr string) Endpoint { return Endpoint{Backend: backendName, Addr: addr} }
	v := onRedis("", at(s.Addr()), slices.Concat(
		networkFaults(p, redisGreeting), toxicFaults(toxic, redisGreeting), redisFaults(s, s.Client(t, retrying)))...)
	v.name, v.rate, v.proxied, v.poison = backendName, rate, at(p.Addr()), 2
	v.opens = append(v.opens, at(p.Addr()).Open, at(toxic.Listen).Open)
	return v
}

// skewedTarget is a server with a wrong clock: to the server, all workers' clocks are wrong.
func skewedTarget(backendName string, skew time.Duration) targetFunc {
	return func(t *testing.T) *target {
		t.Helper()
		v, s, clock := onClock(t, backendName, skew)
		v.name = fmt.Sprintf("%s, clocks %+.0fh", backendName, -skew.Hours())
		v.faults = append(v.faults, clocksWrong(s, clock))
		v.clock = newStoreClock(skew, skew, nil)
		return v
	}
}

// jumpTarget is a server whose clock jumps. It also stands for workers whose clocks jump, which Go
// programs do not allow: they do not ask the C library for the time. Only the difference between
// the wall clocks of worker and server counts. Durations that a worker measures follow its
// monotonic clock, which no jump reaches.
func jumpTarget(backendName string) targetFunc {
	return func(t *testing.T) *target {
		t.Helper()
		v, _, clock := onClock(t, backendName, 0)
		v.name = backendName + ", clock jumps"
		v.clock = newServerClock(t, clock)
		v.lastFault = v.clock.jumpLast
		v.faults = slices.DeleteFunc(v.faults, func(f *fault) bool { return !slices.Contains(besidesJumps, f.Name) })
		v.faults = append(v.faults, jumpFaults(v.clock, time.Second)...)
		return v
	}
}

// besidesJumps are the faults after which the server reads the time anew, or scripts are repeated.
var besidesJumps = []string{"replies cut", "server kill -9"}

// onClock is a target on a server with a clock of its own.
func onClock(t *testing.T, backendName string, skew time.Duration) (*target, *testenv.RedisServer, *testenv.Clock) {
	t.Helper()
	clock := testenv.NewClock(t, skew)
	s := testenv.Redis(t, durable(testenv.OnClock(clock))...)
	v := onServer(t, s, backendName, 3000)
	v.skipCalm = true
	return v, s, clock
}
