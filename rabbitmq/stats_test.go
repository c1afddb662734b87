package rabbitmq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

// unknowns is what Stats returns of a queue without ready messages and dead letters.
func unknowns() backend.Stats {
	s := backend.Stats{Scheduled: backend.Unknown, InFlight: backend.Unknown, OldestReady: backend.Unknown, Activity: backend.UnknownActivity}
	for i := range s.Due {
		s.Due[i] = backend.Unknown
	}
	return s
}

// Without the management API messages in flight are unknown, and so are dead letters while another
// connection has their lock.
func TestStatsOverAMQP(t *testing.T) {
	t.Parallel()
	server := testenv.SharedRabbitMQ(t)
	url := server.VhostURL(server.Vhost(t))
	b := newBackend(t, url)
	q := openOn(t, b, "counted")
	want := unknowns()
	var empty backend.Stats
	await(t, "the dead letters to be counted within a second", func() (counted bool) { // else they are unknown
		var err error
		empty, err = q.Stats(deadline(t, patience))
		must(t, err)
		return empty.Dead != backend.Unknown
	})
	if empty != want {
		t.Errorf("an empty queue has %+v; want %+v", empty, want)
	}
	must(t, q.Schedule(deadline(t, patience), batch("m", 3, 0))...)
	must(t, q.Schedule(deadline(t, patience), batch("later", 3, time.Hour))...)
	want.Ready = 3
	await(t, "three ready messages", func() bool {
		s, err := q.Stats(deadline(t, patience))
		must(t, err)
		return s == want
	})
	conn, err := amqp.Dial(url)
	must(t, err)
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	must(t, err)
	_, err = ch.QueueDeclare("delayq.v1.lock.counted", false, false, true, false, nil)
	must(t, err)
	want.Dead = backend.Unknown
	began := time.Now()
	if s, err := q.Stats(deadline(t, patience)); err != nil || s != want {
		t.Errorf("while another reads the dead letters: %+v, %v; want %+v", s, err, want)
	}
	if took := time.Since(began); took < time.Second/2 || took > 10*time.Second {
		t.Errorf("Stats waited for %v; want about a second", took)
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := q.Stats(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a Stats whose context ended: %v", err)
	}
	if _, err := b.Queues(t.Context()); !errors.Is(err, backend.ErrUnsupported) {
		t.Errorf("Queues without the management API: %v", err)
	}
}

// testManagementCounts counts and lists with the management API.
func testManagementCounts(ctx context.Context, t *testing.T, url, at string) {
	t.Helper()
	b := newBackend(t, url, rabbitmq.Management(at))
	q := openOn(t, b, "counted")
	must(t, q.Schedule(ctx, batch("m", 1, 0))...)
	ds, err := q.Receive(ctx, 1, time.Hour)
	must(t, err)
	want := unknowns()
	want.InFlight = 1
	await(t, "a message in flight", func() bool { // the management API is some seconds behind
		s, err := q.Stats(ctx)
		must(t, err)
		return s == want
	})
	must(t, q.Ack(ctx, []backend.Lease{ds[0].Lease()})...)
	want.InFlight = 0
	await(t, "none in flight", func() bool {
		s, err := q.Stats(ctx)
		must(t, err)
		return s == want
	})
	var names []string
	await(t, "a reply of the management API", func() bool {
		names, err = b.Queues(ctx)
		return err == nil
	})
	if len(names) != 2 || names[0] != "counted" || names[1] != "orders" {
		t.Errorf("Queues returns %q", names)
	}
	must(t, q.Close(), b.Remove(ctx, "counted"))
}
