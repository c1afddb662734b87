// Package gocloud is a driver of gocloud.dev/pubsub over the stores of delayq. [OpenTopic] and
// [OpenSubscription] take an open queue, and pubsub.OpenTopic and pubsub.OpenSubscription a URL.
//
// # What differs from other drivers
//
// There is no fan-out. A topic is one queue. All subscriptions of a queue share its messages, and
// each message goes to one of them. Send to several topics where several services need a copy.
// Topics and subscriptions need not be created: any name of a queue opens.
//
// # URLs
//
// Put "delayq:" before a URL of delayq.Open, and import the package that its scheme names:
//
//	delayq:zsetpoll://localhost:6379/orders
//	delayq:memory:///orders
//
// See [URLOpener].
//
// # Delays
//
// A message is due at once. [After] and [At] make a function for Message.BeforeSend that delays it.
//
// # Message delivery semantics
//
// A message comes at least once. It is leased from the moment that the subscription fetches it, and
// the lease is not renewed: call Ack within the time of [delayq.WithLease], 30 s by default.
// pubsub fetches ahead what the program handles in about two seconds. A message that is acked too
// late comes again, and Ack does not tell.
//
// A message that is nacked comes again after the delay of [SubscriptionOptions], by default at
// once. There is no limit of attempts. See the example of As for dead letters.
//
// Shutdown of a subscription gives back untouched all messages that are neither acked nor nacked:
// they come again at once, and the attempt does not count.
//
// A Send that failed for now, as when the store cannot be reached, is tried again until it succeeds
// or the topic is shut down. Messages of the batch that are stored are not sent again. A message
// whose outcome is unknown is sent again under its id: a store with [delayq.Deduplicating] keeps
// one.
//
// # Metadata
//
// Metadata become headers. Keys that a header cannot have are percent-encoded, and decoded on
// receipt. A backend that lacks [delayq.KeepingHeaders] rejects messages with metadata.
//
// # As
//
//   - Topic and Subscription: *delayq.Queue
//   - Message: **delayq.Delivery
//   - Message.BeforeSend and AfterSend: **delayq.Message. AfterSend finds the ID in it.
//   - Error: **delayq.OpError, **delayq.InvalidError, **delayq.UnsupportedError
//
// # gocloud's test suite
//
// Every store passes drivertest. TestSendReceiveTwo is skipped, since there is no fan-out. Its
// tests of topics that do not exist run on a queue that is made to return [delayq.ErrNotFound],
// since no store has such a queue.
package gocloud
