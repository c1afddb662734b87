package chaos_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/testenv"
)

// durably has a server write down each change before it answers, so that kill -9 loses nothing.
func durably() []testenv.Option {
	return []testenv.Option{testenv.AOF(), testenv.Directive("appendfsync", "always")}
}

// redisVenue is a server of its own.
func redisVenue(backendName string, rate float64) venueFunc {
	return func(t *testing.T) *venue {
		t.Helper()
		return redisOn(t, testenv.Redis(t, durably()...), backendName, rate)
	}
}

// redisOn is a venue on one server.
func redisOn(t *testing.T, s *testenv.RedisServer, backendName string, rate float64) *venue {
	t.Helper()
	admin := s.Client(t, patiently)
	p, w := testenv.Proxy(t, s.Addr()), newWire(t, s.Addr())
	at := func(addr string) chaos.Endpoint { return chaos.Endpoint{Backend: backendName, Addr: addr} }
	v := &venue{
		name: backendName, rate: rate, patient: time.Minute, left: remains, straight: at(s.Addr()), bent: at(p.Addr()), poison: 2,
		opens: []chaos.OpenFunc{at(s.Addr()).Open, at(p.Addr()).Open, at(w.addr).Open},
	}
	v.repeats = backendName != "redisson" // docs/redis.md, what repetitions do; without ids of the pusher's there are none
	v.faults = slices.Concat(networkFaults(p, redisGreeting), wireFaults(w, redisGreeting), redisFaults(s, admin))
	return v
}

// patiently has a client of the test's own outlast what it does to the server.
func patiently(o *redis.Options) {
	o.ReadTimeout, o.MaxRetries, o.MinRetryBackoff, o.MaxRetryBackoff = 5*time.Second, 20, 10*time.Millisecond, 200*time.Millisecond
}
