package testenv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

func heavy(t *testing.T) {
	t.Helper()
	In(t, All)
	t.Parallel()
}

func dialRabbit(t *testing.T, url string) *amqp.Connection {
	t.Helper()
	conn, err := amqp.DialConfig(url, amqp.Config{Dial: amqp.DefaultDial(patience)})
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() }) // the test may have closed it
	return conn
}

func openChannel(t *testing.T, conn *amqp.Connection) *amqp.Channel {
	t.Helper()
	ch, err := conn.Channel()
	must(t, err)
	return ch
}

// declare declares a queue whose type is its name.
func declare(t *testing.T, ch *amqp.Channel, kind string) {
	t.Helper()
	_, err := ch.QueueDeclare(kind, true, false, false, false, amqp.Table{"x-queue-type": kind})
	must(t, err)
}

// publish returns when the broker has confirmed all messages.
func publish(t *testing.T, ch *amqp.Channel, queue string, n int) {
	t.Helper()
	must(t, ch.Confirm(false))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var confirms []*amqp.DeferredConfirmation
	for range n {
		c, err := ch.PublishWithDeferredConfirm("", queue, true, false, amqp.Publishing{DeliveryMode: amqp.Persistent, Body: []byte("x")})
		must(t, err)
		confirms = append(confirms, c)
	}
	for _, c := range confirms {
		if acked, err := c.WaitContext(ctx); !acked || err != nil {
			t.Fatalf("a message is confirmed %v, %v", acked, err)
		}
	}
}

// mustDrain takes exactly n messages from a queue.
func mustDrain(t *testing.T, ch *amqp.Channel, queue string, n int) {
	t.Helper()
	got := 0
	must(t, await(fmt.Sprint(n, " messages of ", queue), func() (bool, error) {
		_, ok, err := ch.Get(queue, true)
		for ; ok && err == nil; _, ok, err = ch.Get(queue, true) {
			got++
		}
		if err == nil && got != n {
			err = fmt.Errorf("%d so far", got)
		}
		return got > n || errors.Is(err, amqp.ErrClosed), err
	}))
}

// processesOf finds the processes that know the directory from their environment or arguments.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*")
	must(t, err)
	var found []string
	for _, proc := range procs {
		env, _ := os.ReadFile(proc + "/environ") // it may have ended
		args, _ := os.ReadFile(proc + "/cmdline")
		if bytes.Contains(append(env, args...), []byte(dir)) && filepath.Base(proc) != fmt.Sprint(os.Getpid()) {
			found = append(found, fmt.Sprintf("%s %.80q", filepath.Base(proc), args))
		}
	}
	return found
}

func awaitNoProcesses(t *testing.T, dir string) {
	t.Helper()
	must(t, await("no process of "+dir, func() (bool, error) {
		if left := processesOf(t, dir); len(left) > 0 {
			return false, fmt.Errorf("left: %q", left)
		}
		return false, nil
	}))
}

func TestPrivateRabbit(t *testing.T) {
	heavy(t)
	var s *RabbitServer
	t.Run("its test", func(t *testing.T) {
		s = RabbitMQ(t, PrivateRabbit(), RabbitConfig("channel_max", "77"), RabbitAdvanced("msg_store_file_size_limit", "1234567"))
		if conn := dialRabbit(t, s.URL()); conn.Config.ChannelMax != 77 {
			t.Errorf("%d channels; want the option's 77", conn.Config.ChannelMax)
		}
		if limit := s.Ctl("eval", "application:get_env(rabbit, msg_store_file_size_limit)."); limit != "{ok,1234567}" {
			t.Errorf("the limit is %s; want the option's 1234567", limit)
		}
		if n := len(processesOf(t, s.local().dir)); n == 0 {
			t.Error("its processes are not found")
		}
		waitsForStart(t, s)
		closesConnections(t, s)
		blocksPublishers(t, s)
		pauses(t, s)
		survives(t, s)
	})
	if !s.local().ended() || !s.local().epmd.ended() {
		t.Error("it still runs")
	}
	for _, dir := range []string{s.local().dir, s.local().epmd.dir} {
		awaitNoProcesses(t, dir)
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("its directory is still there: %v", err)
		}
	}
}

// waitsForStart gives a command to a broker that does not take it yet.
func waitsForStart(t *testing.T, s *RabbitServer) {
	t.Helper()
	s.Ctl("stop_app")
	listed := make(chan error, 1)
	go func() {
		_, err := s.local().ctl("list_vhosts")
		listed <- err
	}()
	s.Ctl("start_app")
	must(t, <-listed)
}

func closesConnections(t *testing.T, s *RabbitServer) {
	t.Helper()
	vhost := s.Vhost(t)
	kept, closed := dialRabbit(t, s.URL()), dialRabbit(t, s.VhostURL(vhost))
	end := closed.NotifyClose(make(chan *amqp.Error, 1))
	s.CloseConnections(vhost)
	select {
	case err := <-end:
		if err == nil || err.Code != amqp.ConnectionForced {
			t.Errorf("the connection ends with %v", err)
		}
	case <-time.After(patience):
		t.Error("the connection stays open")
	}
	openChannel(t, kept)
}

func blocksPublishers(t *testing.T, s *RabbitServer) {
	t.Helper()
	conn := dialRabbit(t, s.URL())
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking, 2))
	for _, on := range []bool{true, false} {
		s.SetMemoryAlarm(on)
		if on { // the broker tells those that publish
			must(t, openChannel(t, conn).Publish("", "nowhere", false, false, amqp.Publishing{}))
		}
		select {
		case b := <-blocked:
			if b.Active != on {
				t.Errorf("alarm %v: blocked %v", on, b.Active)
			}
		case <-time.After(patience):
			t.Fatalf("alarm %v: the broker does not notify", on)
		}
	}
}

func pauses(t *testing.T, s *RabbitServer) {
	t.Helper()
	s.Pause()
	if err := greet(s.URL(), 200*time.Millisecond); err == nil || !strings.Contains(err.Error(), "i/o timeout") {
		t.Errorf("a paused broker gives %v; want a timeout", err)
	}
	s.Resume()
	must(t, greet(s.URL(), patience))
}

// survives kills the broker, then stops it, and checks its messages.
func survives(t *testing.T, s *RabbitServer) {
	t.Helper()
	url := s.URL()
	ends := []func(){func() { s.Kill(); s.Kill() }, s.Pause}
	for _, end := range ends {
		ch := openChannel(t, dialRabbit(t, url))
		for _, kind := range []string{"classic", "quorum"} {
			declare(t, ch, kind)
			publish(t, ch, kind, 100)
		}
		s.Sync()
		end()
		s.Restart()
		ch = openChannel(t, dialRabbit(t, url))
		mustDrain(t, ch, "classic", 100)
		mustDrain(t, ch, "quorum", 100)
	}
	s.Kill()
	if err := greet(url, patience); err == nil {
		t.Error("a killed broker replies")
	}
	r := record(t, func(tb testing.TB) { s.in(tb).Ctl("status") })
	if !strings.Contains(r.failed, "the broker is not running") {
		t.Errorf("rabbitmqctl for a dead broker ended with %q", r.failed)
	}
}

func TestRabbitFailedStartShowsTheLog(t *testing.T) {
	heavy(t)
	r := record(t, func(tb testing.TB) { RabbitMQ(tb, RabbitConfig("no_such_key", "1")) })
	if !strings.Contains(r.failed, "no_such_key") {
		t.Errorf("failed with %q; want the log in it", r.failed)
	}
}

func TestRabbitPortTaken(t *testing.T) {
	heavy(t)
	taken, err := listen()
	must(t, err)
	defer func() { must(t, taken.Close()) }()
	port := taken.Addr().(*net.TCPAddr).Port
	for name, take := range map[string]func(*localRabbit){
		"AMQP":         func(r *localRabbit) { r.port = port },
		"distribution": func(r *localRabbit) { r.dist = port },
	} {
		r := rabbitAsleep(t)
		take(r)
		if err := r.startEmpty(); !errors.Is(err, errPortTaken) {
			t.Errorf("%s port in use: start gives %v", name, err)
		}
		if r.port == port || r.dist == port {
			t.Errorf("%s port in use: the next try takes it again", name)
		}
	}
}

// rabbitAsleep is a broker that has not been started.
func rabbitAsleep(t *testing.T) *localRabbit {
	t.Helper()
	e, err := startEpmd()
	must(t, err)
	t.Cleanup(func() { must(t, e.remove()) })
	r, err := newLocalRabbit(e, newRabbitSecrets(), rabbitSettings{})
	must(t, err)
	t.Cleanup(func() { must(t, r.remove()) })
	return r
}

func TestEpmdPortTaken(t *testing.T) {
	mustHaveRabbit(t)
	taken, err := listen()
	must(t, err)
	defer func() { must(t, taken.Close()) }()
	e := &epmd{local{name: "epmd", dir: t.TempDir(), port: taken.Addr().(*net.TCPAddr).Port}}
	if err := e.start(); !errors.Is(err, errPortTaken) {
		t.Errorf("epmd on a port in use gives %v", err)
	}
}

func mustHaveRabbit(t *testing.T) {
	t.Helper()
	_, err := rabbitKind.binary()
	Require(t, err)
}

func TestRabbitEnvironmentIsItsOwn(t *testing.T) {
	t.Setenv("RABBITMQ_NODENAME", "rabbit@elsewhere")
	t.Setenv("ERL_AFLAGS", "-no_such_flag")
	t.Setenv("NOTIFY_SOCKET", "/run/elsewhere")
	env := (&localRabbit{local: local{dir: "/there"}, node: "own@localhost", epmd: &epmd{}}).env()
	for variable, want := range map[string]bool{
		"RABBITMQ_NODENAME=rabbit@elsewhere": false, "RABBITMQ_NODENAME=own@localhost": true,
		"ERL_AFLAGS=-no_such_flag": false, "NOTIFY_SOCKET=/run/elsewhere": false, "HOME=/there": true,
		"PATH=" + os.Getenv("PATH"): true,
	} {
		if slices.Contains(env, variable) != want {
			t.Errorf("%s is there: %v", variable, !want)
		}
	}
}
