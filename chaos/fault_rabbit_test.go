package chaos

import (
	"context"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// forgetsAcks is the window of a break of connections to RabbitMQ. The broker may forget acks that
// succeeded shortly before it, as docs/rabbitmq.md declares.
var forgetsAcks = judge.Window{Breaks: true, Undo: int64(500 * time.Millisecond)}

// rabbitFaults are the faults of a broker. On a machine under load they may last longer than a level
// waits for the next queue's confirms. Then the level passes its messages on once more
// (docs/rabbitmq.md).
func rabbitFaults(s *testenv.RabbitServer, url string) []*fault {
	stopped := serverStopped(s, rabbitGreeting)
	faults := []*fault{
		brokerKilled("server kill -9", func(*injection) *testenv.RabbitServer { return s }, func(*injection) { s.Restart() }),
		stopped,
		alarm("memory alarm", url, s.SetMemoryAlarm),
		alarm("disk alarm", url, func(on bool) {
			limit := "50MB"
			if on {
				limit = "900000GB"
			}
			s.Ctl("set_disk_free_limit", limit)
		}),
		connectionsClosed(s, url),
		exchangeDeleted(url),
	}
	for _, f := range faults[:4] { // the others leave levels and queues connected
		f.resends = confirmsWithin - time.Second
	}
	return faults
}

func vhostOf(url string) string {
	u, err := amqp.ParseURI(url)
	if err != nil {
		panic(err)
	}
	return u.Vhost
}

// brokerKilled kills one of the brokers, and starts it again.
func brokerKilled(name string, choose func(*injection) *testenv.RabbitServer, restart func(*injection)) *fault {
	return instant(name, 1, forgetsAcks, func(i *injection) int {
		s := choose(i)
		s.Kill()
		effect := rabbitGreeting.silent(s.Addr())
		restart(i)
		return effect
	}).alone()
}

// connectionsClosed makes the broker close the connections, as an administrator does.
func connectionsClosed(s *testenv.RabbitServer, url string) *fault {
	return instant("connections closed", 1, forgetsAcks, func(i *injection) int {
		conn, err := testenv.RetryOnBusyRabbit(i.T.Context(), func() (*amqp.Connection, error) { return amqp.Dial(url) })
		must(i.T, err)
		closed := conn.NotifyClose(make(chan *amqp.Error, 1))
		try(i.T, func() { s.CloseConnections(vhostOf(url)) })
		select {
		case err := <-closed:
			return count(err != nil)
		case <-time.After(5 * time.Second):
			return 0
		}
	})
}

// exchanges of the default namespace, which an operator may delete by mistake. Clients declare them
// again within 3 s (docs/rabbitmq.md).
var exchanges = []string{"deliver", "w1", "w2", "w3", "undeliverable"}

// exchangeDeleted deletes each exchange in turn. Messages that wait in queues stay there, so nothing
// is lost.
func exchangeDeleted(url string) *fault {
	turn := -1
	return instant("exchange deleted", 1, breaks, func(i *injection) int {
		conn, ch := dialRabbit(i.T, url)
		defer func() { _ = conn.CloseDeadline(time.Now().Add(time.Second)) }()
		turn++
		name := "delayq.v1." + exchanges[turn%len(exchanges)]
		must(i.T, ch.ExchangeDelete(name, false, false))
		declared := poll(10*time.Second, func() bool {
			ch, err := conn.Channel() // one that looks for a missing exchange is closed by the broker
			must(i.T, err)
			defer func() { _ = ch.Close() }()
			return ch.ExchangeDeclarePassive(name, "topic", true, false, false, false, nil) == nil
		})
		return count(declared)
	}).alone()
}

func dialRabbit(t *testing.T, url string) (*amqp.Connection, *amqp.Channel) {
	t.Helper()
	conn, err := testenv.RetryOnBusyRabbit(t.Context(), func() (*amqp.Connection, error) { return amqp.Dial(url) })
	must(t, err)
	ch, err := conn.Channel()
	must(t, err)
	return conn, ch
}

// alarm makes the broker block connections that publish.
func alarm(name, url string, set func(on bool)) *fault {
	return lasting(name, 1, time.Second, judge.Window{}, func(i *injection) func() int {
		try(i.T, func() { set(true) })
		blocked := isBlocked(i.T, url)
		return func() int { try(i.T, func() { set(false) }); return count(blocked) }
	}).alone()
}

// isBlocked publishes to no queue, and waits for the broker to block the connection.
func isBlocked(t *testing.T, url string) bool {
	t.Helper()
	conn, ch := dialRabbit(t, url)
	defer func() { _ = conn.CloseDeadline(time.Now().Add(time.Second)) }()
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking, 1))
	must(t, ch.PublishWithContext(context.Background(), "", "nobody", false, false, amqp.Publishing{}))
	select {
	case b := <-blocked:
		return b.Active
	case <-time.After(3 * time.Second):
		return false
	}
}
