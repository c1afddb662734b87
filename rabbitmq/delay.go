package rabbitmq

import amqp "github.com/rabbitmq/amqp091-go"

// A delayer keeps messages for their delay, and then passes them on to the exchange deliver. Its
// parts belong to the shared topology.
type delayer interface {
	declare(ch *amqp.Channel, n names) error

	// route returns where to publish a message with a delay of ms > 0 milliseconds. A route may take
	// less than that: a further round covers the rest.
	route(n names, dest string, ms int64) route

	// parts returns the names of all exchanges and queues that declare declares, or declared in
	// earlier versions.
	parts(n names) (exchanges, queues []string)

	// exchanges returns the exchanges that messages pass.
	exchanges(n names) []exchange
}

// A route is an exchange, a key and headers. Most routes begin at the default exchange, which
// cannot be deleted. Its keys are names of queues, and the broker returns a message whose queue
// does not exist. Publishing to an exchange that does not exist closes the channel, and leaves the
// outcome of all other messages there unknown.
type route struct {
	exchange, key string
	headers       amqp.Table
	fanout        bool // the exchange is the fanout exchange of a digit
	notMandatory  bool // publish without the mandatory flag
}

type exchange struct{ name, kind string }

// immediate returns the route of a message that is due.
func immediate(n names, dest string) route { return route{key: n.queue(dest)} }
