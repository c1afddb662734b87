// Package rabbitmq is the RabbitMQ backend: any delay to the millisecond out of queues whose messages expire and are passed on.
//
// # How a message waits
//
// A delay in ms has seven digits: the lowest two of six bits, the others of four. For each digit there is an exchange, and for each value of it but 0 a quorum queue
// with a fixed time to live: 201 queues for all delays of all queues of a namespace. A message is published at its highest digit, waits there,
// is passed on (at least once, by RabbitMQ's own dead-lettering) to the next digit that is not 0, and so on to the queue that workers take from. No
// message waits behind one with a longer delay. A delay of more than 49.7 days goes through all of it again. [Grain], [Buckets], [Fixed] and
// [DelayedExchange] are other ways to wait.
//
// # URLs
//
//	rabbitmq://[USER:PASSWORD@]HOST[:PORT]/[VHOST/]QUEUE[?NAME=VALUE&…]
//
//	rabbitmqs://…               TLS, verified; with tls_ca=FILE, tls_cert=FILE, tls_key=FILE, tls_server_name=NAME
//	VHOST                       percent-encoded; / (%2F) when it is left out
//	hosts=HOST:PORT,…           further nodes of a cluster
//	management=HOST:PORT        of the management API, which delayq doctor asks for policies
//	namespace=delayq            what the names of exchanges and queues begin with
//	grain=16ms | buckets=10s,1m | fixed=30m | delayed_exchange=true
//	classic=true                classic queues, which lose messages when the broker crashes
//
// # What it promises
//
// What the broker has confirmed survives its crash. Messages come without order. Two pushes of one id are two messages. They cannot be moved or
// counted: the broker has no way to. Nor can they be cancelled, unless [WithTombstones] gives the backend a store that remembers what was.
//
// A lease is an unsettled delivery of one connection. Its end is a timer of the handle that took it, which then gives the message back; it
// ends early when the connection breaks, and with Close. A settlement from before a break answers delayq.ErrLeaseLost. Attempts are counted by the broker's delivery count and by a
// header that goes along when a message is published again. A break of the connection counts as an attempt of everything that the handle held, handed out or not. So
// may the end of a subscription while the broker takes no messages, as in an alarm; else it does not.
//
// Nack, Dead and Redrive publish a copy and then acknowledge the first. A crash between the two, or a context that ends there, leaves both.
//
// Ack returns when the broker's end of the channel has read it; if the broker crashes in that moment, the message may come again.
// An ack may wait up to 2 ms for others, and one out of turn for those before it, to go out with them as one.
//
// # Time
//
// The waiting is the broker's, and there is no other clock. The due time goes along: a message that comes some ms too early is held back until then, by the clock of
// the worker's machine. Where that is an hour behind, a message that comes is sent to wait for that hour.
package rabbitmq
