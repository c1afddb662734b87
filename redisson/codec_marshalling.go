package redisson

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// MarshallingString is MarshallingCodec for strings, the default of Redisson 3.13.0 to
// 3.18: JBoss Marshalling's River protocol, version 4. Other objects, longer
// forms of a length and other versions of the protocol are not read.
var MarshallingString Codec = marshallingString{}

type marshallingString struct{}

const (
	riverVersion = 0x04
	riverEmpty   = 0x3d
	riverSmall   = 0x3e // a byte counts; 0 is 256
	riverMedium  = 0x3f // two bytes; 0 is 65536
	riverLarge   = 0x40 // four bytes

	riverNUL = "\xc0\x80"
)

func (marshallingString) Name() string { return "marshalling" }

func (marshallingString) Encode(body []byte) ([]byte, error) {
	n, err := units(body)
	if err != nil {
		return nil, err
	}
	return appendUnits(appendRiver(nil, n), body, riverNUL), nil
}

func (c marshallingString) Decode(payload []byte) ([]byte, error) {
	n, reason := riverCount(payload)
	if reason != "" {
		return nil, unreadable(c.Name(), reason, payload)
	}
	chars, found := bytes.CutPrefix(payload, appendRiver(nil, n))
	if !found {
		return nil, unreadable(c.Name(), "a longer form of the length than needed", payload)
	}
	body, reason := readUnits(chars, n, riverNUL)
	if reason != "" {
		return nil, unreadable(c.Name(), reason, payload)
	}
	return body, nil
}

// appendRiver appends the bytes before the characters of a string of n.
func appendRiver(dst []byte, n uint64) []byte {
	dst = append(dst, riverVersion)
	switch {
	case n == 0:
		return append(dst, riverEmpty)
	case n <= math.MaxUint8+1:
		return append(dst, riverSmall, byte(n))
	case n <= math.MaxUint16+1:
		return binary.BigEndian.AppendUint16(append(dst, riverMedium), uint16(n))
	default:
		return binary.BigEndian.AppendUint32(append(dst, riverLarge), uint32(n))
	}
}

// riverCount reads any form that appendRiver writes.
func riverCount(p []byte) (n uint64, reason string) {
	if len(p) < 2 {
		return 0, "it ends too early"
	}
	if p[0] != riverVersion {
		return 0, fmt.Sprintf("protocol version %d, only %d is read", p[0], riverVersion)
	}
	width, ok := map[byte]int{riverEmpty: 0, riverSmall: 1, riverMedium: 2, riverLarge: 4}[p[1]]
	if !ok {
		return 0, fmt.Sprintf("an object with the tag %02x, only strings are read", p[1])
	}
	if len(p) < 2+width {
		return 0, "it ends within the length"
	}
	return riverNumber(p[2 : 2+width]), ""
}

func riverNumber(b []byte) (n uint64) {
	for _, x := range b {
		n = n<<8 | uint64(x)
	}
	if n == 0 && (len(b) == 1 || len(b) == 2) {
		return 1 << (8 * len(b))
	}
	return n
}
