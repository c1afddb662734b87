package redisson

import (
	"strings"

	"github.com/delayq/delayq/backend"
)

// Codec turns the body that a user pushes and gets into the payload that Java reads and writes, and
// back. It must be the codec of the Java side: Redisson loses a payload that its codec cannot
// decode, since it has popped it by then.
//
// Codecs are safe for concurrent use, and what they return is the caller's. It shares memory with
// the argument only where both are the same bytes: with [Bytes] and [String], and where
// [JacksonObject] and [Jackson3Object] decode.
//
// On this side a Java string is UTF-8. A surrogate without its other half, which UTF-8 has no place
// for and Java allows, is the three bytes of its code point here (so-called WTF-8), so that every
// string of Java's comes back to Java as it was. [String] is the exception.
type Codec interface {
	// Name is the codec's name for [CodecByName].
	Name() string

	// Encode returns the bytes that Redisson would write. Its error is
	// a [backend.InvalidError].
	Encode(body []byte) (payload []byte, err error)

	// Decode understands all that Redisson writes with this codec for the values that
	// the codec is for. All else is an [UnreadableError], never a guess.
	Decode(payload []byte) (body []byte, err error)
}

var codecs = []Codec{Bytes, String, JacksonString, Jackson3String, JacksonObject, Jackson3Object, MarshallingString, Kryo5String, Envelope}

// CodecByName returns the codec of a name: bytes, string, jackson, jackson3, jackson-object,
// jackson3-object, marshalling, kryo5 or envelope. The error for another one is a
// [backend.InvalidError].
func CodecByName(name string) (Codec, error) {
	known := make([]string, 0, len(codecs))
	for _, c := range codecs {
		if c.Name() == name {
			return c, nil
		}
		known = append(known, c.Name())
	}
	return nil, backend.Invalid("codec", name, strings.Join(known, ", "))
}
