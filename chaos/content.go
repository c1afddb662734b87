package chaos

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"strconv"
)

// A message's body begins with its number, and the rest follows from that: a worker can tell from it
// everything that was pushed.
const numberLen = 4

// mostNumber is above those of any run: a body with a larger one is not a pusher's.
const mostNumber = 1 << 26

// bodyOf is the body of a message: mostly short, but one in a hundred has some kilobytes.
func bodyOf(n uint32) []byte {
	dice := rand.New(rand.NewPCG(uint64(n), 3))
	size := dice.IntN(48)
	if n%101 == 0 {
		size = 1000 + dice.IntN(4000)
	}
	body := make([]byte, numberLen, numberLen+size+8)
	binary.BigEndian.PutUint32(body, n)
	for len(body) < numberLen+size {
		body = binary.LittleEndian.AppendUint64(body, dice.Uint64())
	}
	return body[:numberLen+size]
}

// headersOf are a message's headers, for one of seven.
func headersOf(n uint32) map[string]string {
	if n%7 != 0 {
		return nil
	}
	return map[string]string{"n": strconv.Itoa(int(n)), "odd": "\xff\x00"}
}

// recognize returns a message's number, and whether body and headers are as pushed.
func recognize(body []byte, headers map[string]string, withHeaders bool) (n uint32, whole bool) {
	if len(body) < numberLen {
		return 0, false
	}
	if n = binary.BigEndian.Uint32(body); n > mostNumber {
		return 0, false
	}
	whole = bytes.Equal(body, bodyOf(n))
	if withHeaders {
		whole = whole && maps.Equal(headers, headersOf(n))
	}
	return n, whole
}
