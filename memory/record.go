package memory

import (
	"encoding/binary"

	"github.com/oklog/ulid/v2"
)

// A record is a message's id, headers and body in one run of bytes:
//
//	packed id | headers' length | headers | body's length | body
//
// Lengths are uvarints; each header is key length, key, value length, value. A
// packed id is a length byte and the id. An id in the canonical form that package
// delayq makes is 16 bytes behind a zero instead of 26 behind a length.

const packedULID = 0

// packID appends the packed form of an id to dst.
func packID(dst []byte, id string) []byte {
	if u, err := ulid.ParseStrict(id); err == nil && u.String() == id {
		return append(append(dst, packedULID), u[:]...)
	}
	return append(append(dst, byte(len(id))), id...)
}

// packedID returns the packed id that a record begins with.
func packedID(rec []byte) []byte {
	if rec[0] == packedULID {
		return rec[:1+len(ulid.ULID{})]
	}
	return rec[:1+int(rec[0])]
}

func unpackID(packed []byte) string {
	if packed[0] == packedULID {
		return ulid.ULID(packed[1:]).String()
	}
	return string(packed[1:])
}

func recordSize(packed []byte, headers map[string]string, body []byte) int {
	h := headersSize(headers)
	return len(packed) + uvarintSize(h) + h + uvarintSize(len(body)) + len(body)
}

func headersSize(headers map[string]string) int {
	n := 0
	for k, v := range headers {
		n += uvarintSize(len(k)) + len(k) + uvarintSize(len(v)) + len(v)
	}
	return n
}

func uvarintSize(n int) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

// putRecord writes a record into dst, which is large enough.
func putRecord(dst, packed []byte, headers map[string]string, body []byte) {
	dst = append(dst[:0], packed...)
	dst = binary.AppendUvarint(dst, uint64(headersSize(headers)))
	for k, v := range headers {
		dst = appendString(appendString(dst, k), v)
	}
	dst = binary.AppendUvarint(dst, uint64(len(body)))
	_ = append(dst, body...)
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// getRecord copies a record's parts out.
func getRecord(rec []byte) (id string, headers map[string]string, body []byte) {
	packed := packedID(rec)
	h, rest := cut(rec[len(packed):])
	b, _ := cut(rest)
	return unpackID(packed), getHeaders(h), append(make([]byte, 0, len(b)), b...)
}

func getHeaders(h []byte) map[string]string {
	if len(h) == 0 {
		return nil
	}
	headers := make(map[string]string)
	for len(h) > 0 {
		var k, v []byte
		k, h = cut(h)
		v, h = cut(h)
		headers[string(k)] = string(v)
	}
	return headers
}

// cut takes a length and as many bytes off the front.
func cut(b []byte) (part, rest []byte) {
	n, size := binary.Uvarint(b)
	b = b[size:]
	return b[:n], b[n:]
}
