package rabbitmq_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

// TestLimits has the broker refuse one queue too many, and one connection too many.
func TestLimits(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	server := testenv.RabbitMQ(t, testenv.PrivateRabbit())
	for limit, texts := range map[string][]string{
		`{"max-queues":3}`:      {"declaring queue", "may have no more queues", "set_vhost_limits"},
		`{"max-connections":1}`: {"takes no more connections", "limit"},
	} {
		t.Run(limit, func(t *testing.T) {
			vhost := server.Vhost(t)
			server.Ctl("set_vhost_limits", "-p", vhost, limit)
			b := newBackend(t, server.VhostURL(vhost))
			_, err := tryOpen(t, b, "q")
			wantError(t, err, texts...)
			for _, other := range []string{"other arguments", "no such virtual host"} {
				if err != nil && strings.Contains(err.Error(), other) {
					t.Errorf("%q says %q", err, other)
				}
			}
		})
	}
}

// TestConsumerTimeout holds a message for longer than the broker allows. The log has the broker's
// reason.
func TestConsumerTimeout(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	ctx := deadline(t, patience)
	server := testenv.RabbitMQ(t, testenv.PrivateRabbit(), testenv.RabbitConfig("consumer_timeout", "1000"), testenv.RabbitAdvanced("channel_tick_interval", "500"))
	b := newBackend(t, server.URL())
	log := new(logBuffer)
	q := openLogging(t, b, "q", log)
	must(t, q.Schedule(ctx, message("a", 0))...)
	held := receiveOne(ctx, t, q, "a")
	again := receiveOne(ctx, t, q, "a")
	if again.Attempt != 2 || !strings.Contains(log.String(), "consumer_timeout") {
		t.Errorf("got %+v; the log: %s", again, log)
	}
	if err := q.Ack(ctx, []backend.Lease{held.Lease()})[0]; !errors.Is(err, backend.ErrLeaseLost) {
		t.Errorf("the ack of the first: %v", err)
	}
}

// TestMoreQueuesThanChannels opens more queues than the broker allows channels to a connection, in
// one backend. All work, and closed ones make room.
func TestMoreQueuesThanChannels(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	const n, channels = 25, 16
	ctx := deadline(t, patience)
	server := testenv.RabbitMQ(t, testenv.PrivateRabbit(), testenv.RabbitConfig("channel_max", fmt.Sprint(channels)))
	b := newBackend(t, server.URL())
	var qs []backend.Queue
	for i := range n {
		qs = append(qs, openOn(t, b, fmt.Sprint("q", i)))
	}
	for i, q := range qs {
		must(t, q.Schedule(ctx, message(fmt.Sprint(i), 0))...)
	}
	for i, q := range qs {
		ack(ctx, t, q, receiveOne(ctx, t, q, fmt.Sprint(i)))
	}
	connections := len(strings.Split(server.Ctl("list_connections", "-q", "--no-table-headers", "pid"), "\n"))
	for _, q := range qs {
		must(t, q.Close())
	}
	for range n {
		must(t, openOn(t, b, "q").Close())
	}
	if now := len(strings.Split(server.Ctl("list_connections", "-q", "--no-table-headers", "pid"), "\n")); now != connections {
		t.Errorf("%d connections became %d", connections, now)
	}
}

// TestHeartbeat asks the broker for the heartbeat of a handle's connections. The heartbeat decides
// how long the broker waits for a stopped worker, as docs/operating.md says.
func TestHeartbeat(t *testing.T) {
	testenv.In(t, testenv.All)
	server, vhost := sharedVhost(t)
	open(t, server.VhostURL(vhost))
	connections := 0
	for line := range strings.Lines(server.Ctl("list_connections", "-q", "--no-table-headers", "vhost", "timeout")) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == vhost {
			if connections++; f[1] != "10" {
				t.Errorf("a connection has a heartbeat of %s s, want 10", f[1])
			}
		}
	}
	if connections != 2 {
		t.Errorf("%d connections, want one to publish and one to consume", connections)
	}
}
