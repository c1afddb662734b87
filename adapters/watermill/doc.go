// Package watermill connects Watermill (github.com/ThreeDotsLabs/watermill) to the stores of
// delayq. A [Publisher] pushes messages, due at once or after a delay, and a [Subscriber] hands
// them out.
//
// # What differs from other Pub/Subs
//
// There is no fan-out and there are no consumer groups. A topic is one queue. All subscribers of a
// topic share its messages, and each message goes to one of them. Publish to several topics where
// several services need a copy. A message that is acknowledged is gone: new subscribers do not get
// old messages.
//
// A message comes at least once. Make handlers idempotent.
//
// # Delays
//
// Publish reads the metadata that Watermill's package components/delay sets. So delay.Message,
// delay.WithContext with delay.NewPublisher, and the middleware DelayOnError work as they are
// documented. The delay counts from Publish, by the store's clock. A message that is published more
// than a second after its delay was set, as from an outbox, is due when Watermill's due time is
// over. Watermill cuts that time to seconds, so that the message may come up to a second late.
//
// # Ack and nack
//
// A message is leased while it is handled, and the lease is renewed. A message that is nacked comes
// again after the delay of [delayq.Retry]: by default after 1 s, and twice as long each further
// time. After [delayq.MaxAttempts] failures, 25 by default, it becomes a dead letter. Set
// MaxAttempts(0) where Watermill's PoisonQueue does that job.
//
// Where a handler has changed the delay metadata, as DelayOnError does, the message waits that long
// instead. The new delay is stored with the message, so that it can grow. A backend without
// [delayq.ChangingHeaders], such as redisson, waits that long and stores no change: the delay of
// DelayOnError then stays at its InitialInterval. Use delayq.Retry there.
//
// # Order
//
// A subscription hands out one message, and the next after its ack. On a backend with
// [delayq.Ordering], messages come by (due, push order). With delayq.Workers(n) a subscription
// hands out n messages at a time, in no order.
//
// # Names and headers
//
// A message becomes a delayq message with the payload as its body. Metadata become headers, and the
// UUID becomes the header [UUIDHeader]. The UUID is not the id of the delayq message: a handler may
// publish its own message again. Metadata keys that a header cannot have are percent-encoded, and
// decoded on receipt. [QueueName] says which queue holds a topic. A message that was pushed without
// this package has its id as its UUID.
//
// A backend needs [delayq.KeepingHeaders]: redisson needs its codec Envelope.
//
// # Watermill's test suite
//
// Every store passes pubsub/tests with the features Persistent, and, except for rabbitmq,
// GuaranteedOrder and GuaranteedOrderWithSingleSubscriber. These are not claimed, so that their
// tests are skipped:
//
//   - ConsumerGroups: each message goes to one subscriber.
//   - NewSubscriberReceivesOldMessages: a message that is acknowledged is gone.
//   - ExactlyOnceDelivery: delivery is at least once.
//   - ContextPreserved: contexts stay in the process that publishes.
//   - GuaranteedOrder on rabbitmq: its messages come in no order.
//   - RestartServiceCommand: that test reads a list while a goroutine appends to it. A test of this
//     package kills the server twice instead.
package watermill
