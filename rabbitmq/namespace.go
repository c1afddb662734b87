package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
)

var (
	_ admin.Remover = (*Backend)(nil)
	_ admin.Lister  = (*Backend)(nil)
)

// Remove is as in admin.Remover: it deletes the queue and its dead letters from the broker.
// Messages that still wait in the levels end in undeliverable.
func (b *Backend) Remove(ctx context.Context, queue string) error {
	return b.withConnection(ctx, func(conn *amqp.Connection) error {
		return deleteAll(conn, nil, []string{b.names.queue(queue), b.names.dead(queue)})
	})
}

// Remains is as in admin.Remover: it counts messages that wait for workers, dead letters, and the
// messages of any queue in undeliverable. It does not see messages that wait in the levels.
func (b *Backend) Remains(ctx context.Context, queues ...string) (left []string, err error) {
	all := []string{b.names.undeliverable()}
	for _, q := range queues {
		all = append(all, b.names.queue(q), b.names.dead(q))
	}
	err = b.withConnection(ctx, func(conn *amqp.Connection) error {
		for _, name := range all {
			n, err := length(conn, name)
			if err != nil {
				return err
			}
			if n > 0 {
				left = append(left, fmt.Sprintf("%d messages in %s", n, name))
			}
		}
		return nil
	})
	return left, err
}

// Queues is as in admin.Lister. It lists the queues of the namespace until they are removed, by the
// broker's management API, since AMQP cannot list queues: see [Management] for its address. Without
// it the error matches [backend.ErrUnsupported].
func (b *Backend) Queues(ctx context.Context) (names []string, err error) {
	if err := errors.Join(b.options.err, ctx.Err()); err != nil {
		return nil, err
	}
	if b.closing.Load() {
		return nil, backend.ErrClosed
	}
	all, err := b.queueInfos(ctx)
	if err != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%w without the management API, which lists queues: %w", backend.ErrUnsupported, err)
	}
	for _, info := range all {
		if name, ok := strings.CutPrefix(info.Name, b.names.queue("")); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, errors.Join(ctx.Err(), err)
}

// RemoveNamespace deletes the exchanges and queues that all queues of the namespace share, with
// every message that waits there. It is for a namespace that is not used any more. Remove its
// queues first, with [Backend.Remove]. Levels and buckets with other options than this backend's
// stay.
func (b *Backend) RemoveNamespace(ctx context.Context) error {
	exchanges, queues := b.delayer.parts(b.names)
	exchanges = append(exchanges, b.names.deliver(), b.names.undeliverable())
	queues = append(queues, b.names.undeliverable())
	return b.withConnection(ctx, func(conn *amqp.Connection) error { return deleteAll(conn, exchanges, queues) })
}

// withConnection calls do with a connection of its own, which ends with the context.
func (b *Backend) withConnection(ctx context.Context, do func(*amqp.Connection) error) error {
	if err := errors.Join(b.options.err, ctx.Err()); err != nil {
		return err
	}
	conn, err := newDialer(b.options).connect(ctx)
	if err != nil {
		return errors.Join(ctx.Err(), err)
	}
	defer func() { _ = conn.CloseDeadline(time.Now().Add(hangUpWithin)) }()
	stop := context.AfterFunc(ctx, func() { _ = conn.CloseDeadline(time.Now()) })
	defer stop()
	if err := do(conn.Connection); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	return nil
}

// deleteAll deletes exchanges before queues, so that nothing is routed to a deleted queue. Deleting
// a name that does not exist is no error.
func deleteAll(conn *amqp.Connection, exchanges, queues []string) error {
	ch, err := conn.Channel()
	if err != nil {
		return explain("opening a channel", err)
	}
	defer func() { _ = ch.Close() }()
	for _, name := range exchanges {
		if err := ch.ExchangeDelete(name, false, false); err != nil {
			return explain("deleting exchange "+name, err)
		}
	}
	for _, name := range queues {
		if _, err := ch.QueueDelete(name, false, false, false); err != nil {
			return explain("deleting queue "+name, err)
		}
	}
	return nil
}
