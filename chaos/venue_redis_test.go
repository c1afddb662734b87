package chaos_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/testenv"
)

// redisVenue is a server of its own that writes down each change before it answers, so that kill -9 loses nothing.
func redisVenue(backendName string, rate float64) venueFunc {
	return func(t *testing.T) *venue {
		t.Helper()
		s := testenv.Redis(t, testenv.AOF(), testenv.Directive("appendfsync", "always"))
		admin := s.Client(t, patiently)
		p, w := testenv.Proxy(t, s.Addr()), newWire(t, s.Addr())
		at := func(addr string) chaos.Endpoint { return chaos.Endpoint{Backend: backendName, Addr: addr} }
		v := &venue{
			name: backendName, rate: rate, patient: time.Minute, left: remains, straight: at(s.Addr()), bent: at(p.Addr()),
			opens: []chaos.OpenFunc{at(s.Addr()).Open, at(p.Addr()).Open, at(w.addr).Open},
		}
		v.moot = backendName != "redisson" // docs/redis.md, what repetitions do; without ids of the pusher's there are none
		if backendName != "redisson" {     // what is shared with Java has no ids of the pusher's
			v.poison = 2
		}
		v.faults = append(v.faults, networkFaults(p, redisGreeting)...)
		v.faults = append(v.faults, wireFaults(w, redisGreeting)...)
		v.faults = append(v.faults, redisFaults(s, admin)...)
		return v
	}
}

// patiently has a client of the test's own outlast what it does to the server.
func patiently(o *redis.Options) {
	o.ReadTimeout, o.MaxRetries, o.MinRetryBackoff, o.MaxRetryBackoff = 5*time.Second, 20, 10*time.Millisecond, 200*time.Millisecond
}
