package conformance_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/rabbitmq/tombstone"
	"github.com/delayq/delayq/rabbitmq/tombstone/redistomb"
)

// rabbitBackends returns harnesses of RabbitMQ in its default mode.
func rabbitBackends(t *testing.T) map[string]conformance.Harness {
	t.Helper()
	inMemory := tombstone.NewMemory()
	inRedis := sync.OnceValue(func() rabbitmq.Tombstones {
		return redistomb.New(testenv.SharedRedis(t).Client(t), redistomb.Prefix(fmt.Sprint("conformance-", time.Now().UnixNano())))
	})
	return map[string]conformance.Harness{
		"rabbitmq":                  rabbitHarness(t, "levels", func() rabbitmq.Tombstones { return nil }),
		"rabbitmq-tombstones":       rabbitHarness(t, "tombs", func() rabbitmq.Tombstones { return inMemory }),
		"rabbitmq-tombstones-redis": rabbitHarness(t, "redistombs", inRedis),
	}
}

// rabbitHarness shares the levels of one namespace, which are expensive to declare, among all its
// backends. Each check has queues of its own.
func rabbitHarness(t *testing.T, namespace string, tombstones func() rabbitmq.Tombstones) conformance.Harness {
	t.Helper()
	url := sync.OnceValue(func() string {
		server := testenv.SharedRabbitMQ(t)
		return server.VhostURL(server.Vhost(t))
	})
	open := func() *openedRabbit {
		opts := []rabbitmq.Option{rabbitmq.Namespace(namespace)}
		if store := tombstones(); store != nil {
			opts = append(opts, rabbitmq.WithTombstones(store))
		}
		return &openedRabbit{Backend: rabbitmq.New(url(), opts...)}
	}
	return conformance.Harness{
		New:    func(context.Context) (backend.Backend, func(), error) { return open(), nil, nil },
		Attach: func(context.Context, backend.Backend) (backend.Backend, func(), error) { return open(), nil, nil },
		Leftovers: func(ctx context.Context, b backend.Backend) ([]string, error) {
			queues := []string{namespace + ".v1.undeliverable"}
			for _, name := range b.(*openedRabbit).all() {
				queues = append(queues, namespace+".v1.q."+name, namespace+".v1.dead."+name)
			}
			return messagesIn(ctx, url(), queues...)
		},
		Tick:  400 * time.Millisecond,
		Slack: 10 * time.Second, // a broker on a busy machine; it has no polls behind which a lost wake-up could hide
	}
}

// openedRabbit remembers the queues that a check has opened: other queues on the vhost may hold
// messages.
type openedRabbit struct {
	*rabbitmq.Backend

	mu     sync.Mutex
	opened []string
}

func (b *openedRabbit) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := testenv.RetryOnBusyRabbit(ctx, func() (backend.Queue, error) { return b.Backend.Open(ctx, name, o) })
	if err == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.opened = append(b.opened, name)
	}
	return q, err
}

func (b *openedRabbit) Remains(ctx context.Context, queues ...string) ([]string, error) {
	return testenv.RetryOnBusyRabbit(ctx, func() ([]string, error) { return b.Backend.Remains(ctx, queues...) })
}

func (b *openedRabbit) Remove(ctx context.Context, queue string) error {
	_, err := testenv.RetryOnBusyRabbit(ctx, func() (bool, error) { return true, b.Backend.Remove(ctx, queue) })
	return err
}

func (b *openedRabbit) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(b.opened)))
}

// messagesIn returns the queues that are not empty. It waits for them to become empty: a broker
// does not confirm acks.
func messagesIn(ctx context.Context, url string, queues ...string) (full []string, err error) {
	for end := time.Now().Add(10 * time.Second); ; {
		full, err = testenv.RetryOnBusyRabbit(ctx, func() ([]string, error) { return messagesNow(url, queues...) })
		if len(full) == 0 || err != nil || time.Now().After(end) || ctx.Err() != nil {
			return full, err
		}
		time.Sleep(50 * time.Millisecond) // the queues being empty ends the wait
	}
}

func messagesNow(url string, queues ...string) (full []string, err error) {
	conn, err := amqp.Dial(url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	for _, name := range queues {
		q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
		if err != nil {
			return nil, err
		}
		if q.Messages > 0 {
			full = append(full, fmt.Sprintf("%d messages in %s", q.Messages, name))
		}
	}
	return full, nil
}
