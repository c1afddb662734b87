package redisson

import (
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
)

// Envelope is for queues that no Java process takes from: the payload has the id and the headers
// beside the body, and so the queue keeps every promise that there is. To Java the payload is bytes
// that mean nothing.
var Envelope Codec = envelope{}

type envelope struct{}

// magic begins an envelope: a byte that begins neither text nor a payload of the codecs, and a
// version. The id, packed, follows, then the content.
const magic = "\xdddq\x01"

// Name returns "envelope".
func (envelope) Name() string { return "envelope" }

// Encode wraps a body that has neither id nor headers. Queues do not use it: they have both.
func (envelope) Encode(body []byte) ([]byte, error) {
	return seal(&backend.Message{ID: "-", Body: body}), nil
}

// Decode returns the body alone.
func (envelope) Decode(payload []byte) ([]byte, error) {
	_, body, err := unseal(payload)
	return body, err
}

func seal(m *backend.Message) []byte {
	id := record.PackID(nil, m.ID)
	b := make([]byte, 0, len(magic)+len(id)+record.ContentSize(m.Headers, m.Body))
	return record.AppendContent(append(append(b, magic...), id...), m.Headers, m.Body)
}

func unseal(payload []byte) (headers map[string]string, body []byte, err error) {
	b := payload
	if len(b) < len(magic) || string(b[:len(magic)]) != magic {
		return nil, nil, unreadable("envelope", "it does not begin as one", payload)
	}
	if b = b[len(magic):]; len(b) == 0 || len(b) < packedLen(b[0]) {
		return nil, nil, unreadable("envelope", "the id is cut short", payload)
	}
	headers, body, err = record.Content(b[packedLen(b[0]):])
	if err != nil {
		return nil, nil, unreadable("envelope", "the headers do not fit", payload)
	}
	return headers, body, nil
}

// envelopeKey is the packed id of an envelope.
func envelopeKey(payload []byte) (key string, ok bool) {
	if len(payload) <= len(magic) || string(payload[:len(magic)]) != magic {
		return "", false
	}
	b := payload[len(magic):]
	if len(b) < packedLen(b[0]) {
		return "", false
	}
	return string(b[:packedLen(b[0])]), true
}

// packedLen is the length of a packed id that begins with b.
func packedLen(b byte) int {
	if b == 0 {
		return 1 + 16
	}
	return 1 + int(b)
}
