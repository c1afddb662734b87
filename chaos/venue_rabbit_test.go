package chaos_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/testenv"
)

// confirmsWithin is after how long levels try again what they could not pass on. By default that is 180 s.
const confirmsWithin = 3 * time.Second

func triesSoon() testenv.RabbitOption {
	return testenv.RabbitAdvanced("dead_letter_worker_publisher_confirm_timeout", strconv.FormatInt(confirmsWithin.Milliseconds(), 10))
}

// rabbitRate is what a broker takes whose queues write down each message, up to seven times over, beside all else that runs here.
const rabbitRate = 300

func rabbitVenue(t *testing.T) *venue {
	t.Helper()
	return rabbitOn(t, testenv.RabbitMQ(&soft{TB: t}, testenv.PrivateRabbit(), triesSoon()))
}

// rabbitOn is a venue on one broker.
func rabbitOn(t *testing.T, s *testenv.RabbitServer) *venue {
	t.Helper()
	p, w := testenv.Proxy(t, s.Addr()), newWire(t, s.Addr())
	v := rabbitAt(t, s.URL(), s.URL(), through(t, s.URL(), p.Addr()), through(t, s.URL(), w.addr))
	s.Sync()
	v.where = whereInRabbits(mustURI(s.URL()).Vhost, s)
	network := append(networkFaults(p, rabbitGreeting), wireFaults(w, rabbitGreeting)...)
	for _, f := range network {
		f.window.Undo = lastAcks
	}
	v.faults = slices.Concat(network, rabbitFaults(s, s.URL()))
	return v
}

// restlessVenue is a broker that nothing happens to, with workers that come and go. There attempts count hand-outs alone.
func restlessVenue(t *testing.T) *venue {
	t.Helper()
	s := testenv.RabbitMQ(&soft{TB: t}, testenv.PrivateRabbit())
	v := rabbitAt(t, s.URL(), s.URL(), s.URL(), s.URL())
	v.name, v.inside, v.restless, v.poison = "rabbitmq-restless", true, true, 0
	v.where = whereInRabbits(mustURI(s.URL()).Vhost, s)
	return v
}

// rabbitAt is a venue on a broker that can be reached in several ways. Its queues are declared.
func rabbitAt(t *testing.T, straight string, ways ...string) *venue {
	t.Helper()
	at := func(url string) chaos.Endpoint { return chaos.Endpoint{Backend: "rabbitmq", Addr: url} }
	v := &venue{
		name: "rabbitmq", rate: rabbitRate, patient: 2 * time.Minute, straight: at(straight), bent: at(ways[len(ways)-1]),
		poison: 1, // of two, the death of a worker by one might count for the other
		mix: func(m *chaos.Mix) {
			m.Batches = []int{1, 10, 30, 50}
			m.Cancel, m.Reschedule = 0, 0 // it cannot
		},
	}
	for _, url := range ways {
		v.opens = append(v.opens, sharing(t, at(url).Open))
	}
	declare(t, v.opens[0])
	return v
}

// sharing has all actors of this process that go one way share a backend, and its two connections.
func sharing(t *testing.T, open chaos.OpenFunc) chaos.OpenFunc {
	t.Helper()
	b, err := open(t.Context())
	must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return func(context.Context) (backend.Backend, error) { return lasting{b}, nil }
}

// lasting is closed by somebody else.
type lasting struct{ backend.Backend }

func (lasting) Close() error { return nil }

func declare(t *testing.T, open chaos.OpenFunc) {
	t.Helper()
	b, err := open(t.Context())
	must(t, err)
	defer func() { _ = b.Close() }()
	for _, name := range []string{queueName, secondQueue, poisonQueue} {
		q, err := b.Open(t.Context(), name, backend.Options{Logger: quiet().Logger})
		must(t, err)
		must(t, q.Close())
	}
}
