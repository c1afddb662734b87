package testenv

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func TestSharedRabbitMQ(t *testing.T) {
	var first, second string
	var left *amqp.Connection
	t.Run("first", func(t *testing.T) {
		s := SharedRabbitMQ(t)
		first = s.Vhost(t)
		var err error
		left, err = amqp.DialConfig(s.VhostURL(first), amqp.Config{Dial: amqp.DefaultDial(patience)})
		must(t, err)
		declare(t, openChannel(t, left), "classic")
	})
	s := SharedRabbitMQ(t)
	must(t, await("the end of a connection to a deleted vhost", func() (bool, error) {
		if left.IsClosed() {
			return false, nil
		}
		return false, errors.New("it is open")
	}))
	t.Run("second", func(t *testing.T) {
		second = s.Vhost(t)
		ch := openChannel(t, dialRabbit(t, s.VhostURL(second)))
		if _, err := ch.QueueDeclarePassive("classic", true, false, false, false, nil); !isAMQP(err, amqp.NotFound) {
			t.Errorf("the queue of another test gives %v", err)
		}
	})
	if first == second {
		t.Errorf("two tests got the vhost %s", first)
	}
	if vhosts := s.Ctl("list_vhosts", "--no-table-headers"); vhosts != "/" {
		t.Errorf("left are the vhosts %q", vhosts)
	}
	r := record(t, func(tb testing.TB) { SharedRabbitMQ(tb).Kill() })
	if !strings.Contains(r.failed, "not this test's own") {
		t.Errorf("killing the shared broker ended with %q, %q", r.failed, r.skipped)
	}
}

func isAMQP(err error, code int) bool {
	var e *amqp.Error
	return errors.As(err, &e) && e.Code == code
}

func TestRabbitVhostNames(t *testing.T) {
	s := SharedRabbitMQ(t)
	for _, name := range []string{"a/b c", `"quoted" \ü%2f`} {
		s.AddVhost(name)
		dialRabbit(t, s.VhostURL(name))
		must(t, deleteVhost(s.control, name))
		if err := greet(s.VhostURL(name), patience); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
	if err := deleteVhost(s.control, "no such vhost"); err == nil || !strings.Contains(err.Error(), "no_such_vhost") {
		t.Errorf("deleting a vhost that is not there ended with %v", err)
	}
}

func TestRabbitUser(t *testing.T) {
	t.Parallel()
	s := SharedRabbitMQ(t)
	vhost := s.Vhost(t)
	s.AddUser("guest of "+vhost, "p:/@ß", vhost, RabbitPermissions{Configure: "^own-", Read: ".*"})
	conn := dialRabbit(t, s.UserURL("guest of "+vhost, "p:/@ß", vhost))
	_, err := openChannel(t, conn).QueueDeclare("own-queue", true, false, false, false, nil)
	must(t, err)
	if _, err := openChannel(t, conn).QueueDeclare("queue", true, false, false, false, nil); !isAMQP(err, amqp.AccessRefused) {
		t.Errorf("declaring a queue without the right gives %v", err)
	}
	if err := greet(s.UserURL("guest of "+vhost, "wrong", vhost), patience); !isAMQP(err, amqp.AccessRefused) {
		t.Errorf("another password gives %v", err)
	}
	s.Ctl("delete_user", "guest of "+vhost)
}

func TestRabbitCtlFails(t *testing.T) {
	s := SharedRabbitMQ(t)
	r := record(t, func(tb testing.TB) {
		s.in(tb).Ctl("no_such_command")
	})
	if !strings.Contains(r.failed, "no_such_command") || !strings.Contains(r.failed, "exit status") {
		t.Errorf("ended with %q", r.failed)
	}
}

func TestProxyCutsRabbitConnections(t *testing.T) {
	s := SharedRabbitMQ(t)
	vhost := s.Vhost(t)
	p := Proxy(t, s.Addr())
	url := strings.Replace(s.VhostURL(vhost), s.Addr(), p.Addr(), 1)
	direct := openChannel(t, dialRabbit(t, s.VhostURL(vhost)))
	declare(t, direct, "classic")
	for range 10 {
		conn := dialRabbit(t, url)
		end := conn.NotifyClose(make(chan *amqp.Error, 1))
		publish(t, openChannel(t, conn), "classic", 10)
		p.CloseAll()
		select {
		case err := <-end:
			if err == nil {
				t.Error("a cut looks like a proper end")
			}
		case <-time.After(patience):
			t.Fatal("the connection stays open")
		}
	}
	mustDrain(t, direct, "classic", 100)
	if p.Connections() != 10 {
		t.Errorf("%d connections; want 10", p.Connections())
	}
}

// TestRabbitEvalsAtOnce stands for parallel tests on one broker.
func TestRabbitEvalsAtOnce(t *testing.T) {
	s := SharedRabbitMQ(t)
	if s.control == nil {
		t.Skip("the broker of DELAYQ_RABBITMQ_URL takes no commands from tests")
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
