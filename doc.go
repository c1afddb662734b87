// Package delayq is a delay queue: a message is pushed with a due time, stays hidden until then, is
// handed to exactly one worker, and is handed out again until a worker acknowledges it. People use
// it for orders that cancel themselves after 30 minutes unpaid, reviews that default after 7 days,
// reminders and retries.
//
//	q, err := delayq.New(ctx, "orders", delayq.InMemory())
//	id, err := q.Push(ctx, []byte("order 17"), delayq.After(30*time.Minute))
//	err = q.Cancel(ctx, id) // paid in time
//	err = q.Consume(ctx, func(ctx context.Context, d *delayq.Delivery) error {
//		return cancelOrder(ctx, d.Body)
//	}, delayq.Workers(32))
//
// # Backends
//
// [New] puts a queue on the backend given with [WithBackend], [Open] on the one that a URL names.
// With [InMemory], or without either, messages live in the process's memory. All backends pass one
// conformance suite; an operation that a backend lacks returns [ErrUnsupported], and [Require]
// makes New fail at once instead.
//
// # Two ways to work
//
// [Consumer.Consume] is the usual one: it calls a handler for each message, on several workers,
// renews leases, retries, and makes dead letters of messages that fail too often.
// [Receiver.Receive] hands out one message and leaves all that to the caller.
//
// Package schedule pushes messages at intervals or by a cron expression.
//
// # What a user can rely on
//
// A message is never handed out before it is due by the store's clock. Once Push has returned nil,
// it is handed out until a worker acknowledges it, or it is cancelled, or it becomes a dead letter.
// While one worker's lease lasts, no other gets the message. A worker that dies gives it back by
// not renewing the lease, and that attempt counts. So a message may be handled twice, where a
// worker dies or stalls after its work and before its Ack: make handlers idempotent, by the
// message's id.
//
// # Terms
//
// A message is due at a time or after a delay. A worker holds it under a lease until it settles it:
// Ack (done), Nack (back, after a delay), Release (back, as if untouched) or DeadLetter (a dead
// letter, which Redrive brings back).
package delayq
