package watermill

import (
	"fmt"
	"strings"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// Config is the setup of a [Publisher] or [Subscriber].
type Config struct {
	// Backend holds the queues. The caller closes it, after each Publisher and Subscriber.
	Backend backend.Backend

	// Options are those of each queue, such as delayq.WithLease and delayq.WithLogger. Errors that
	// no call returns go to that logger.
	Options []delayq.Option

	// Consume are the options of each subscription, such as delayq.Workers, delayq.Retry and
	// delayq.Drain. A Publisher has no use for them. A delayq.Timeout begins when the message is
	// offered to the channel.
	Consume []delayq.ConsumeOption
}

func (c Config) validate() error {
	if c.Backend == nil {
		return backend.Invalid("Config.Backend", nil, "a backend, as memory.New() returns one")
	}
	if traits := c.Backend.Traits(); !traits.Supports(delayq.KeepingHeaders) {
		return &delayq.UnsupportedError{Backend: traits.Name, Op: "headers, which hold UUID and metadata"}
	}
	return delayq.ValidateConsumeOptions(c.Consume...)
}

// options are those of [delayq.New] for each queue.
func (c Config) options() []delayq.Option {
	return append(c.Options[:len(c.Options):len(c.Options)], delayq.WithBackend(c.Backend))
}

// QueueName returns the name of the queue that holds a topic's messages, for delayq.New, as to
// cancel messages or to redrive dead letters. A topic of letters, digits and "-_.:" is its own
// name. Each other byte becomes a colon and two hexadecimal digits.
func QueueName(topic string) string {
	var name strings.Builder
	for i := range len(topic) {
		if c := topic[i]; portable(c) && !looksEscaped(topic[i:]) {
			name.WriteByte(c)
		} else {
			fmt.Fprintf(&name, ":%02X", c)
		}
	}
	return name.String()
}

func portable(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-_.:", c) >= 0
}

// looksEscaped reports whether s begins as an escaped byte does. Two topics would share a queue if
// its colon were left as it is.
func looksEscaped(s string) bool {
	const digits = "0123456789ABCDEF"
	return len(s) >= 3 && s[0] == ':' && strings.IndexByte(digits, s[1]) >= 0 && strings.IndexByte(digits, s[2]) >= 0
}
