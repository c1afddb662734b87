// Package rabbitmq is the RabbitMQ backend. It delays messages to the millisecond, with queues
// whose messages expire and are passed on.
//
// # How a message waits
//
// A delay in milliseconds has seven digits: the lowest two of six bits, the others of four. Each
// digit has an exchange, and each of its values but 0 a quorum queue with a fixed time to live.
// That makes 201 queues for all delays of all queues of a namespace. A message is published to the
// queue of its highest digit and waits there. RabbitMQ's dead-lettering passes it on, at least
// once, to the next digit that is not 0, and finally to the queue that workers take from. No
// message waits behind one with a longer delay. A delay of more than 49.7 days takes several
// rounds. [Grain], [Buckets], [Fixed] and [DelayedExchange] are other ways to wait.
//
// # URLs
//
//	rabbitmq://[USER:PASSWORD@]HOST[:PORT]/[VHOST/]QUEUE[?NAME=VALUE&…]
//
//	rabbitmqs://…               TLS, verified; with tls_ca=FILE, tls_cert=FILE, tls_key=FILE, tls_server_name=NAME
//	VHOST                       percent-encoded; / (%2F) when it is left out
//	hosts=HOST:PORT,…           further nodes of a cluster
//	management=HOST:PORT        the management API, to warn of policies that stop messages
//	namespace=delayq            prefix of the names of exchanges and queues
//	grain=16ms | buckets=10s,1m | fixed=30m | delayed_exchange=true
//	classic=true                classic queues, which lose messages when the broker crashes
//
// An AMQP URI opens the same store. Its path is the virtual host, / (%2F) when it is left out, and
// the queue's name is delayq.Named or the parameter queue:
//
//	amqp://[USER:PASSWORD@]HOST[:PORT][/VHOST][?queue=QUEUE&…]
//	amqps://…                   TLS, verified
//
// # What it promises
//
// A message that the broker has confirmed survives a crash. Messages come in no order. Two pushes
// of one id are two messages. Messages cannot be rescheduled or counted: the broker has no way to.
// They can be cancelled only with [WithTombstones], a store that remembers cancellations.
//
// A lease is an unsettled delivery of one connection. It ends by a timer of the handle, which then
// returns the message to the queue. It ends early with the connection and with Close. Settling a
// message from before a reconnect returns delayq.ErrLeaseLost.
//
// Attempts are the sum of the broker's delivery count and a header that is kept when a message is
// published again. A lost connection counts as an attempt of every message that the handle had,
// handed out or not. So may the end of a subscription while the broker takes no messages, as in an
// alarm.
//
// Nack, Dead and Redrive publish a copy and then acknowledge the first message. A crash between
// the two, or a context that ends there, leaves both.
//
// Ack returns when the broker's end of the channel has read it. If the broker crashes in that
// moment, the message may come again. An ack may wait up to 2 ms for other acks, so that one ack
// covers all.
//
// # Time
//
// The broker measures delays, and there is no other clock. A message carries its due time. If it
// comes some milliseconds early, the handle keeps it until then, by the clock of the worker's
// machine. If that clock is an hour behind, the handle sends the message to wait for an hour.
package rabbitmq
