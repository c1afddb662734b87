package rabbitmq

import (
	"regexp"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"
)

// alwaysAccepted is the size up to which mayBeTooLarge reports no body.
const alwaysAccepted = 16 << 10

// mayBeTooLarge reports whether the broker may reject a message for its size. It is true for bodies
// beyond alwaysAccepted that are larger than all bodies confirmed on this connection. A broker
// closes the channel of a message beyond its max_message_size, and then the outcome of all other
// messages there is unknown. So such messages have a channel of their own.
func (s *session) mayBeTooLarge(m *publication) bool {
	return len(m.Body) > alwaysAccepted && int64(len(m.Body)) > s.largest.Load()
}

// confirmed notes that the broker has confirmed a body of that size.
func (s *session) confirmed(size int) {
	for {
		largest := s.largest.Load()
		if int64(size) <= largest || s.largest.CompareAndSwap(largest, int64(size)) {
			return
		}
	}
}

// described is an invalid value in words, which an error shows without quotes.
type described string

var tooLarge = regexp.MustCompile(`message size \d+ is larger than (?:configured )?max size (\d+)`)

// sizeLimit returns the broker's max_message_size in bytes if a message beyond it is why a channel
// was closed, and 0 otherwise.
func sizeLimit(reason *amqp.Error) int {
	if reason == nil || reason.Code != amqp.PreconditionFailed {
		return 0
	}
	found := tooLarge.FindStringSubmatch(reason.Reason)
	if found == nil {
		return 0
	}
	limit, _ := strconv.Atoi(found[1])
	return limit
}
