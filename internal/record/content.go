package record

import (
	"encoding/binary"
	"errors"
)

// Content is headers and body in one run of bytes:
//
//	length of the headers | headers | body
//
// Lengths are uvarints; each header is key length, key, value length, value.

// ErrCorrupt is returned for bytes that this package did not write.
var ErrCorrupt = errors.New("corrupt record")

// AppendContent appends headers and body to dst.
func AppendContent(dst []byte, headers map[string]string, body []byte) []byte {
	return append(AppendHeaders(dst, headers), body...)
}

// AppendContentWith is AppendContent with one more header, which headers does not have. It returns
// how far behind the beginning of the content that header's value begins.
func AppendContentWith(dst []byte, headers map[string]string, key, value string, body []byte) (content []byte, at int) {
	start := len(dst)
	more := headersSize(map[string]string{key: value})
	dst = binary.AppendUvarint(dst, uint64(headersSize(headers)+more))
	for k, v := range headers {
		dst = appendString(appendString(dst, k), v)
	}
	dst = appendString(appendString(dst, key), value)
	return append(dst, body...), len(dst) - len(value) - start
}

// AppendHeaders appends the part before the body.
func AppendHeaders(dst []byte, headers map[string]string) []byte {
	dst = binary.AppendUvarint(dst, uint64(headersSize(headers)))
	for k, v := range headers {
		dst = appendString(appendString(dst, k), v)
	}
	return dst
}

// ContentSize is how many bytes AppendContent appends.
func ContentSize(headers map[string]string, body []byte) int {
	h := headersSize(headers)
	return UvarintSize(h) + h + len(body)
}

func headersSize(headers map[string]string) int {
	n := 0
	for k, v := range headers {
		n += UvarintSize(len(k)) + len(k) + UvarintSize(len(v)) + len(v)
	}
	return n
}

// UvarintSize is how many bytes the uvarint of n takes.
func UvarintSize(n int) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// Content copies headers and body out of b.
func Content(b []byte) (headers map[string]string, body []byte, err error) {
	h, body, ok := cut(b)
	if !ok {
		return nil, nil, ErrCorrupt
	}
	for len(h) > 0 {
		var k, v []byte
		if k, h, ok = cut(h); ok {
			v, h, ok = cut(h)
		}
		if !ok {
			return nil, nil, ErrCorrupt
		}
		if headers == nil {
			headers = make(map[string]string)
		}
		headers[string(k)] = string(v)
	}
	return headers, append(make([]byte, 0, len(body)), body...), nil
}

// cut takes a length and as many bytes off the front.
func cut(b []byte) (part, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	b = b[size:]
	return b[:n], b[n:], true
}
