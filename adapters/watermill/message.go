package watermill

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/components/delay"
	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// UUIDHeader is the header that holds a message's UUID. Watermill's other Pub/Subs use the same
// name.
const UUIDHeader = "_watermill_message_uuid"

func encode(msg *message.Message) (delayq.Message, error) {
	m := delayq.Message{Body: msg.Payload, Headers: make(map[string]string, len(msg.Metadata)+1)}
	for k, v := range msg.Metadata {
		m.Headers[escapeKey(k)] = v
	}
	if _, taken := msg.Metadata[UUIDHeader]; taken {
		return m, backend.Invalid("metadata key", UUIDHeader, "another key: this one holds the UUID")
	}
	m.Headers[UUIDHeader] = msg.UUID
	var err error
	m.Due, m.Delay, err = due(msg.Metadata)
	return m, err
}

func decode(d *delayq.Delivery) *message.Message {
	uuid, published := d.Headers[UUIDHeader]
	if !published {
		uuid = d.ID
	}
	msg := message.NewMessage(uuid, d.Body)
	for k, v := range d.Headers {
		if k != UUIDHeader {
			msg.Metadata[unescapeKey(k)] = v
		}
	}
	return msg
}

// due reads the delay metadata: a due time, or a delay by the store's clock, or neither.
func due(md message.Metadata) (until time.Time, after time.Duration, err error) {
	untilText, afterText := md.Get(delay.DelayedUntilKey), md.Get(delay.DelayedForKey)
	if untilText != "" {
		if until, err = time.Parse(time.RFC3339, untilText); err != nil {
			return until, 0, invalid(delay.DelayedUntilKey, untilText, "a time as RFC 3339 writes it")
		}
	}
	if afterText != "" {
		if after, err = time.ParseDuration(afterText); err != nil {
			return until, 0, invalid(delay.DelayedForKey, afterText, `a duration, as "1h30m"`)
		}
	}
	switch {
	case untilText == "":
		return time.Time{}, max(after, 0), nil
	case afterText != "":
		// Watermill cuts the due time to seconds. The message would come early without a second more.
		until = until.Add(time.Second)
		if time.Now().Add(after).Before(until) {
			return time.Time{}, max(after, 0), nil
		}
	}
	if until.Before(backend.EarliestDue) {
		return time.Time{}, 0, nil
	}
	return until, 0, nil
}

func invalid(key, value, allowed string) error {
	return backend.Invalid(fmt.Sprintf("metadata %q", key), value, allowed)
}

// reservedPrefix begins the headers that a backend may add for itself.
const reservedPrefix = "delayq-"

// escapeKey makes a header key of a metadata key, which may have any bytes and may be empty.
func escapeKey(k string) string {
	if rest, reserved := strings.CutPrefix(k, reservedPrefix); reserved {
		return "%64elayq-" + url.PathEscape(rest)
	}
	if k == "" {
		return "%"
	}
	return url.PathEscape(k)
}

// unescapeKey leaves keys that escapeKey did not make as they are.
func unescapeKey(k string) string {
	if k == "%" {
		return ""
	}
	if plain, err := url.PathUnescape(k); err == nil {
		return plain
	}
	return k
}
