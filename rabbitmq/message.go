package rabbitmq

import (
	"bytes"
	"fmt"
	"math"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// The headers of a message. A message that is published again loses all other headers, of brokers
// and other clients. Brokers before 4.0 drop a message whose x-death names the queue.
const (
	dueHeader      = "delayq-due"      // µs since 1970
	attemptsHeader = "delayq-attempts" // deliveries before it was last published; absent if none
	stampHeader    = "delayq-stamp"    // of the tombstone store; absent without one
	headersHeader  = "delayq-headers"  // the user's, as a table
	queueHeader    = "delayq-queue"    // the message's queue, in case it ends in undeliverable
	reasonHeader   = "delayq-reason"   // of a dead letter
	diedHeader     = "delayq-died"     // µs since 1970

	// countHeader is the broker's: how often a message has returned to a quorum queue.
	countHeader = "x-delivery-count"
)

// record is a message as the broker has it.
type record struct {
	id       string
	body     []byte
	headers  map[string]string
	due      time.Time
	attempts int   // deliveries so far
	stamp    int64 // of the tombstone store
	received bool  // the broker has it, so it must be possible to publish it again
}

func (r *record) publishing() amqp.Publishing {
	h := amqp.Table{dueHeader: r.due.UnixMicro()}
	if r.attempts > 0 {
		h[attemptsHeader] = int64(r.attempts)
	}
	if r.stamp > 0 {
		h[stampHeader] = r.stamp
	}
	if len(r.headers) > 0 {
		user := make(amqp.Table, len(r.headers))
		for k, v := range r.headers {
			user[k] = []byte(v) // text would have to be UTF-8
		}
		h[headersHeader] = user
	}
	return amqp.Publishing{Headers: h, DeliveryMode: amqp.Persistent, MessageId: r.id, Body: r.body}
}

// readRecord reads a delivery. It accepts any message, since other programs may publish to the
// queue. A classic queue does not count deliveries. A quorum queue does, but for returns that are no
// attempts (basic.nack from RabbitMQ 4.3 on).
func readRecord(d *amqp.Delivery, classic bool) record {
	r := record{id: d.MessageId, body: d.Body, due: time.Now(), received: true}
	r.attempts = count(d.Headers[attemptsHeader]) + count(d.Headers[countHeader])
	r.stamp = number(d.Headers[stampHeader])
	if classic && d.Headers[countHeader] == nil && d.Redelivered {
		r.attempts++
	}
	if v := d.Headers[dueHeader]; number(v) > 0 || v == int64(0) {
		r.due = time.UnixMicro(number(v)).UTC()
	}
	if r.id == "" {
		r.id = fmt.Sprintf("delivery-%d", d.DeliveryTag)
	}
	if user, ok := d.Headers[headersHeader].(amqp.Table); ok && len(user) > 0 {
		r.headers = make(map[string]string, len(user))
		for k, v := range user {
			switch v.(type) {
			case amqp.Table, []any: // no header of delayq's; its text may be many times as large
			default:
				r.headers[k] = text(v)
			}
		}
	}
	return r
}

// count reads a number of deliveries. Another program may have written any number, and a message
// with a negative one would never reach MaxAttempts.
func count(v any) int { return int(min(max(number(v), 0), math.MaxInt32)) }

func number(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case int32:
		return int64(n)
	case int16:
		return int64(n)
	case int8:
		return int64(n)
	case uint8:
		return int64(n)
	default:
		return 0
	}
}

func text(v any) string {
	switch s := v.(type) {
	case nil:
		return ""
	case []byte:
		return string(s)
	case string:
		return s
	default:
		return fmt.Sprint(v)
	}
}

// ceil rounds up to whole milliseconds.
func ceil(t time.Time) time.Time {
	if ms := t.Truncate(time.Millisecond); ms.Before(t) {
		return ms.Add(time.Millisecond)
	}
	return t
}

// newRecord returns the record of a pushed message.
func newRecord(m *backend.Message, now time.Time) record {
	return record{id: m.ID, body: bytes.Clone(m.Body), headers: m.Headers, due: ceil(m.DueAt(now))}
}
