package chaos_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// lastAcks is how long before a break acks may have succeeded that the broker then forgets, as docs/rabbitmq.md declares.
const lastAcks = int64(500 * time.Millisecond)

// rabbitFaults are what happens to a broker.
func rabbitFaults(s *testenv.RabbitServer, url string) []*fault {
	vhost := mustURI(url).Vhost
	return []*fault{
		brokerKilled(s), serverStopped(s, rabbitGreeting), connectionsClosed(s, vhost, url),
		alarm("memory alarm", url, s.SetMemoryAlarm),
		alarm("disk alarm", url, func(on bool) { setDiskAlarm(s, on) }),
		exchangeDeleted(url),
	}
}

func mustURI(url string) amqp.URI {
	u, err := amqp.ParseURI(url)
	if err != nil {
		panic(err)
	}
	return u
}

func brokerKilled(s *testenv.RabbitServer) *fault {
	var up bool
	return &fault{
		Kind: chaos.Kind{Name: "server kill -9", Weight: 1, Alone: true}, window: judge.Window{Breaks: true, Undo: lastAcks},
		on: func(*testing.T, *rand.Rand) {
			s.Kill()
			_, up = rabbitGreeting.answer(s.Addr(), deaf)
			s.Restart()
		},
		off: func(*testing.T) int { return count(!up) },
	}
}

// connectionsClosed has the broker close the connections, as an administrator does.
func connectionsClosed(s *testenv.RabbitServer, vhost, url string) *fault {
	var closed chan *amqp.Error
	return &fault{
		Kind: chaos.Kind{Name: "connections closed", Weight: 1}, window: judge.Window{Breaks: true, Undo: lastAcks},
		on: func(t *testing.T, _ *rand.Rand) {
			conn, err := amqp.Dial(url)
			must(t, err)
			closed = conn.NotifyClose(make(chan *amqp.Error, 1))
			try(t, func() { s.CloseConnections(vhost) })
		},
		off: func(*testing.T) int {
			select {
			case err := <-closed:
				return count(err != nil)
			case <-time.After(5 * time.Second):
				return 0
			}
		},
	}
}

// exchanges are those of the default namespace, that an operator may delete by mistake. They are declared again within 3 s (docs/rabbitmq.md).
var exchanges = []string{"deliver", "w1", "w2", "w3", "undeliverable"}

// exchangeDeleted deletes an exchange, another each time. What waits in queues stays there, so that nothing is lost.
func exchangeDeleted(url string) *fault {
	turn, deleted := -1, 0
	return &fault{
		Kind: chaos.Kind{Name: "exchange deleted", Weight: 1, Alone: true}, window: judge.Window{Breaks: true},
		on: func(t *testing.T, _ *rand.Rand) {
			conn, err := amqp.Dial(url)
			must(t, err)
			defer func() { _ = conn.CloseDeadline(time.Now().Add(time.Second)) }()
			ch, err := conn.Channel()
			must(t, err)
			turn++
			name := "delayq.v1." + exchanges[turn%len(exchanges)]
			must(t, ch.ExchangeDelete(name, false, false))
			deleted = count(poll(10*time.Second, func() bool { return isThere(t, conn, name) }))
		},
		off: func(*testing.T) int { return deleted },
	}
}

// isThere reports whether an exchange exists. To look for one that does not costs the channel.
func isThere(t *testing.T, conn *amqp.Connection, exchange string) bool {
	t.Helper()
	ch, err := conn.Channel()
	must(t, err)
	defer func() { _ = ch.Close() }()
	return ch.ExchangeDeclarePassive(exchange, "topic", true, false, false, false, nil) == nil
}

// alarm has the broker take no messages. A connection that tries to publish is told so. On a machine under load it may last for longer than a level waits until
// the next queue confirms: then the level passes its messages on once more (docs/rabbitmq.md).
func alarm(name, url string, set func(bool)) *fault {
	blocked := false
	return &fault{
		Kind: chaos.Kind{Name: name, Weight: 1, For: time.Second, Alone: true}, breaks: confirmsWithin - time.Second,
		on: func(t *testing.T, _ *rand.Rand) {
			try(t, func() { set(true) })
			blocked = isBlocked(t, url)
		},
		off: func(t *testing.T) int { try(t, func() { set(false) }); return count(blocked) },
	}
}

// isBlocked publishes to nobody and listens whether the broker objects.
func isBlocked(t *testing.T, url string) bool {
	t.Helper()
	conn, err := amqp.Dial(url)
	must(t, err)
	defer func() { _ = conn.CloseDeadline(time.Now().Add(time.Second)) }()
	told := conn.NotifyBlocked(make(chan amqp.Blocking, 1))
	ch, err := conn.Channel()
	must(t, err)
	must(t, ch.PublishWithContext(context.Background(), "", "nobody", false, false, amqp.Publishing{}))
	select {
	case b := <-told:
		return b.Active
	case <-time.After(3 * time.Second):
		return false
	}
}

func setDiskAlarm(s *testenv.RabbitServer, on bool) {
	limit := "50MB"
	if on {
		limit = "900000GB"
	}
	s.Ctl("set_disk_free_limit", limit)
}
