package redisson

import (
	"bytes"
	"fmt"
	"math"
)

// Kryo5String is Kryo5Codec for strings, the default since Redisson 3.19.0. Other objects are not
// read.
//
// For ASCII of 2 to 32 characters Kryo has a short form, which is the one that is written. The
// general form of such a string, which Kryo reads too, is read. With Redisson's useReferences,
// which is off by default, Kryo puts a byte 01 in front of a string; that cannot be told from a
// string that begins with U+0001, and is taken for one.
var Kryo5String Codec = kryo5String{}

type kryo5String struct{}

const (
	kryoNamed  = 0x01 // a class's name follows
	kryoString = 0x03
	kryoNUL    = "\x00"

	// The end of a short form, and the start of a count.
	kryoFlag = 0x80

	kryoShortMin, kryoShortMax = 2, 32

	kryoFirstName = 0x00 // of the names in a payload
)

func (kryo5String) Name() string { return "kryo5" }

func (kryo5String) Encode(body []byte) ([]byte, error) {
	if isShortASCII(body) {
		dst := append([]byte{kryoString}, body...)
		dst[len(body)] |= kryoFlag
		return dst, nil
	}
	n, err := units(body)
	if err != nil {
		return nil, err
	}
	return appendUnits(appendKryoCount([]byte{kryoString}, n+1), body, kryoNUL), nil
}

func isShortASCII(body []byte) bool {
	return len(body) >= kryoShortMin && len(body) <= kryoShortMax && flagged(body) == len(body)
}

// flagged returns where the first byte with the high bit is, or the length.
func flagged(b []byte) int {
	for i, x := range b {
		if x&kryoFlag != 0 {
			return i
		}
	}
	return len(b)
}

func (c kryo5String) Decode(payload []byte) (body []byte, err error) {
	var reason string
	switch class := kryoClass(payload); {
	case len(class) > 0:
		reason = fmt.Sprintf("an object%s, only strings, %02x, are read", ofClass(class), kryoString)
	case len(payload) > 0 && payload[0] != kryoString:
		reason = fmt.Sprintf("an object with the class id %02x, only strings, %02x, are read", payload[0], kryoString)
	case len(payload) < 2:
		reason = "it ends too early"
	case payload[1]&kryoFlag == 0:
		body, reason = readKryoShort(payload[1:])
	default:
		body, reason = readKryoLong(payload[1:])
	}
	if reason != "" {
		return nil, unreadable(c.Name(), reason, payload)
	}
	return body, nil
}

// kryoClass is the class that an object begins with whose class was not registered with Kryo.
func kryoClass(payload []byte) []byte {
	name, named := bytes.CutPrefix(payload, []byte{kryoNamed, kryoFirstName})
	last := flagged(name)
	if !named || last == len(name) {
		return nil
	}
	name = bytes.Clone(name[:last+1])
	name[last] &^= kryoFlag
	return name
}

func readKryoShort(b []byte) (body []byte, reason string) {
	last := flagged(b)
	switch {
	case last == len(b):
		return nil, "a short string without its end"
	case last < len(b)-1:
		return nil, "more bytes behind a short string"
	case len(b) > kryoShortMax:
		return nil, fmt.Sprintf("a short string of more than %d characters", kryoShortMax)
	}
	body = append(body, b...)
	body[last] &^= kryoFlag
	return body, ""
}

func readKryoLong(b []byte) (body []byte, reason string) {
	n, size := kryoCount(b)
	switch {
	case size == 0:
		return nil, "the length is cut off, too large, or longer than needed"
	case n == 0:
		return nil, "null"
	}
	return readUnits(b[size:], n-1, kryoNUL)
}

// A count has six bits in its first byte and seven in each that follows, the low ones
// first. The bit above them says that more follow.
func appendKryoCount(dst []byte, n uint64) []byte {
	first := kryoFlag | byte(n&0x3f)
	if n >>= 6; n == 0 {
		return append(dst, first)
	}
	dst = append(dst, first|0x40)
	for ; n >= 0x80; n >>= 7 {
		dst = append(dst, byte(n)|0x80)
	}
	return append(dst, byte(n))
}

const kryoCountMax = 5 // bytes

// kryoCount reads a count in its shortest form. The size is 0 if there is none.
func kryoCount(b []byte) (n uint64, size int) {
	n = uint64(b[0] & 0x3f)
	more := b[0]&0x40 != 0
	for size = 1; more; size++ {
		if size == len(b) || size == kryoCountMax {
			return 0, 0
		}
		n |= uint64(b[size]&0x7f) << (7*size - 1)
		more = b[size]&0x80 != 0
	}
	if n > math.MaxInt32 || size > 1 && b[size-1] == 0 {
		return 0, 0
	}
	return n, size
}
