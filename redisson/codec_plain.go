package redisson

import (
	"unicode/utf8"

	"github.com/delayq/delayq/backend"
)

// Bytes is ByteArrayCodec: the payload is the body. It accepts all bodies and payloads, so it can
// also hand on payloads that no other codec here reads.
var Bytes Codec = plainBytes{}

// String is StringCodec: the payload is the string in UTF-8, and so is the body. Java writes
// a lone surrogate as a question mark there; here a body that is not UTF-8 is rejected.
var String Codec = plainString{}

type plainBytes struct{}

func (plainBytes) Name() string                          { return "bytes" }
func (plainBytes) Encode(body []byte) ([]byte, error)    { return body, nil }
func (plainBytes) Decode(payload []byte) ([]byte, error) { return payload, nil }

type plainString struct{}

func (plainString) Name() string { return "string" }

func (plainString) Encode(body []byte) ([]byte, error) {
	if !utf8.Valid(body) {
		return nil, backend.Invalid("body", string(body), "UTF-8 with the codec string; the codec bytes takes all")
	}
	return body, nil
}

func (c plainString) Decode(payload []byte) ([]byte, error) {
	if !utf8.Valid(payload) {
		reason := "not UTF-8"
		if codec := writtenBy(payload); codec != "" {
			reason += ", it begins like a payload of " + codec
		}
		return nil, unreadable(c.Name(), reason, payload)
	}
	return payload, nil
}
