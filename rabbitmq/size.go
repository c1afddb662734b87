package rabbitmq

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
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

// frameRest is the part of a frame that headers may not fill. It takes the other properties and the
// headers that the broker adds in levels.
const frameRest = 4 << 10

// mostEntries is the number of headers that the AMQP client reads: it ends a connection on which
// more come.
const mostEntries = 8192

// mostHeaders returns how many bytes a message's headers may take. They are one frame, and the
// broker closes a connection that sends a larger one than its frame_max.
func (s *session) mostHeaders() int {
	size := s.conn.Config.FrameSize
	return size - min(frameRest, size/2)
}

// fit makes sure that the headers take no more than a number of bytes. Those of a message that the
// broker has are cut, so that it can always become a dead letter.
func (m *outgoing) fit(limit int) error {
	if user, _ := m.Headers[headersHeader].(amqp.Table); len(user) > mostEntries {
		return backend.Invalid("headers", described(fmt.Sprintf("%d of them", len(user))),
			fmt.Sprintf("up to %d", mostEntries))
	}
	size := sizeOfValue(m.Headers)
	if size > limit && m.received {
		size = m.cut(size, limit)
		m.q.log.Warn("delayq: the headers or the reason of a message were cut to the broker's frame_max",
			"queue", m.q.name, "id", m.MessageId)
	}
	if size > limit {
		return backend.Invalid("headers", described(fmt.Sprintf("of %d bytes", size)),
			fmt.Sprintf("up to %d bytes, by the broker's frame_max", limit))
	}
	return nil
}

// cut shortens the reason, and then drops the user's largest headers, until they fit. It returns
// the new size.
func (m *outgoing) cut(size, limit int) int {
	if reason, _ := m.Headers[reasonHeader].([]byte); len(reason) > 0 {
		kept := bytes.ToValidUTF8(reason[:max(len(reason)-(size-limit), 0)], nil)
		m.Headers[reasonHeader] = kept
		size -= len(reason) - len(kept)
	}
	user, _ := m.Headers[headersHeader].(amqp.Table)
	bySize := func(a, b string) int { return cmp.Compare(sizeOfValue(user[b]), sizeOfValue(user[a])) }
	for _, key := range slices.SortedFunc(maps.Keys(user), bySize) {
		if size <= limit {
			break
		}
		size -= sizeOfEntry(key, user[key])
		delete(user, key)
	}
	return size
}

// sizeOfValue returns how many bytes a header's value takes, or a few more.
func sizeOfValue(v any) int {
	n := 9
	switch v := v.(type) {
	case string:
		n += len(v)
	case []byte:
		n += len(v)
	case []any:
		for _, each := range v {
			n += sizeOfValue(each)
		}
	case amqp.Table:
		for key, each := range v {
			n += sizeOfEntry(key, each)
		}
	}
	return n
}

func sizeOfEntry(key string, v any) int { return 1 + len(key) + sizeOfValue(v) }

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
