package delayq

import (
	"cmp"
	"context"
	"fmt"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/batcher"
	"github.com/delayq/delayq/internal/telemetry"
	"github.com/delayq/delayq/internal/valid"
)

// Tx is a queue inside a transaction of yours, which [InTx] makes. Its calls are statements of that
// transaction: they run in the goroutine that makes them and under its context, are not combined
// with those of other goroutines, and are never tried again.
//
// A rollback leaves nothing of them. The commit makes all of them visible at once, and wakes workers
// of all processes for messages that are due sooner than these know. A COMMIT whose reply is lost
// has happened or not, for your tables and for the queue alike.
//
// [ErrDuplicate], [ErrInFlight], [ErrNotFound], [ErrLeaseLost], [ErrInvalid] and [ErrUnsupported] are
// outcomes: nothing was changed, and the transaction goes on. A transaction of another database or
// driver gets ErrInvalid at the first call, and is not used. After any other error roll back: on
// PostgreSQL the server accepts no more statements. [ErrUnavailable] is then temporary, as after a
// deadlock or a failed serialization: run the whole transaction again.
//
// What a transaction touches is locked until it ends. On PostgreSQL these are the ids: a push, cancel
// or settlement of the same id waits, and so do those that share its round trip, while claims pass
// by. On SQLite it is the file: all other writers wait. So make these calls last, and commit soon. In
// the same goroutine, make no call of the [Queue] itself for a message that the transaction has
// touched, and on SQLite none that writes: it would wait for you.
//
// A Tx is good until its transaction ends, and is not for concurrent use. Only InTx returns one, and
// methods may be added.
type Tx interface {
	// Pusher stores messages, also with [Replace]. They are in the queue from the commit on. A delay
	// counts from the call, so that a message may be due when it is committed.
	Pusher

	// Canceler changes messages that wait. No worker gets them from the call on. After a rollback
	// they are where they were: one that has become due meanwhile may then be late by a look of the
	// workers, a second on PostgreSQL.
	Canceler

	// Ack marks the message of a delivery as done, so that what a handler writes and the end of its
	// message are one: after the commit the message is gone, after a rollback nothing has happened.
	// It returns [ErrLeaseLost] where another worker may have the message: roll back then.
	//
	// The lease is checked at the call, and the message is locked until the transaction ends. So
	// nobody else gets it, also when the lease ends before the commit. From the call on the lease is
	// not renewed: after a rollback a later one may have ended, and the message is handed out again.
	// Make it the last call before the commit.
	//
	// A handler of Consume that has committed returns nil; one that has rolled back returns an
	// error, and its message is retried as ever. What the handler does outside the database, such as
	// sending a mail, is not part of it: a rollback, or a crash before the commit, repeats it.
	Ack(ctx context.Context, d *Delivery) error
}

// InTx returns the queue inside a transaction on the database that the queue is in. tx is a pgx.Tx or
// a *sql.Tx on a queue of package postgres, and a *sql.Tx on one of package sqlite. The caller begins
// it, and commits it or rolls it back. On SQLite begin it with BEGIN IMMEDIATE, as a transaction that
// has read before it writes may fail: see docs/sql.md.
//
//	tx, err := db.BeginTx(ctx, nil)
//	…
//	defer tx.Rollback()
//	if _, err := tx.ExecContext(ctx, "INSERT INTO orders …"); err != nil { … }
//	in, err := delayq.InTx(q, tx)
//	…
//	if _, err := in.Push(ctx, body, delayq.ID(order), delayq.After(30*time.Minute)); err != nil { … }
//	return tx.Commit()
//
// It sends nothing. It returns [ErrUnsupported] where the backend lacks [Transactions], and
// [ErrInvalid] for a tx of another type and for a queue that neither [New] nor [Open] returned.
func InTx(q Queue, tx any) (Tx, error) {
	const op = "begin in a transaction"
	of, ok := q.(*queue)
	if !ok {
		return nil, opError(op, "", "", backend.Invalid("queue", valid.Described(fmt.Sprintf("of type %T", q)), "one that New or Open returned"))
	}
	if err := of.lacks(Transactions, Transactions.String()); err != nil {
		return nil, of.fail(op, "", err)
	}
	store, err := of.store.InTx(tx)
	if err != nil {
		return nil, of.fail(op, "", err)
	}
	return transaction{of, &queue{
		name: of.name, clock: of.clock, log: of.log, lease: of.lease, backend: of.backend, traits: of.traits, store: store,
		telemetry: of.telemetry, random: of.random, loops: of.loops, batch: batcher.ForStore(store, MaxBatch, backend.NoRoundTrip),
	}}, nil
}

// transaction is a queue whose store is inside a transaction.
type transaction struct {
	of *queue // outside of it
	*queue
}

func (t transaction) Ack(ctx context.Context, d *Delivery) error {
	if err := cmp.Or(valid.Context(ctx), t.of.validDeliveries([]*Delivery{d})); err != nil {
		return t.of.fail(telemetry.Ack, "", err)
	}
	return t.of.fail(telemetry.Ack, d.ID, t.of.settle.AckInTx(ctx, &d.lease, t.store))
}
