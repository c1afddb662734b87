package chaos

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/delayq/delayq/backend"
)

// A message's body begins with its number, from which the rest of body and headers follows. So a
// worker can check that it receives exactly what was pushed.
const numberLen = 4

// maxNumber is above the numbers of any run: a body with a larger one is not a pusher's.
const maxNumber = 1 << 26

// contentOf returns a message without its due time. Its id is an earlier message's on the second
// queue: mostly one of the first queue's.
func (e *Env) contentOf(n uint32) backend.Message { return contentOf(n, e.idOf(n), e.Traits) }

func contentOf(n uint32, id string, t backend.Traits) backend.Message {
	m := backend.Message{ID: id, Body: bodyOf(n)}
	if t.Supports(backend.KeepingHeaders) {
		m.Headers = headersOf(n)
	}
	return m
}

func (e *Env) idOf(n uint32) string {
	if e.Second {
		n--
	}
	return idOf(n)
}

func idOf(n uint32) string { return fmt.Sprintf("m%d", n) }

// bodyOf returns the body of a message: mostly short, but one in a hundred has some kilobytes.
func bodyOf(n uint32) []byte {
	rng := rand.New(rand.NewPCG(uint64(n), 3))
	size := rng.IntN(48)
	if n%101 == 0 {
		size = 1000 + rng.IntN(4000)
	}
	body := make([]byte, numberLen, numberLen+size+8)
	binary.BigEndian.PutUint32(body, n)
	for len(body) < numberLen+size {
		body = binary.LittleEndian.AppendUint64(body, rng.Uint64())
	}
	return body[:numberLen+size]
}

// headersOf returns a message's headers; one in seven has some.
func headersOf(n uint32) map[string]string {
	if n%7 != 0 {
		return nil
	}
	return map[string]string{"n": strconv.Itoa(int(n)), "odd": "\xff\x00"}
}

// recognize returns a message's number, and whether body and headers are as pushed.
func recognize(body []byte, headers map[string]string, t backend.Traits) (n uint32, whole bool) {
	if len(body) < numberLen {
		return 0, false
	}
	if n = binary.BigEndian.Uint32(body); n > maxNumber {
		return 0, false
	}
	whole = bytes.Equal(body, bodyOf(n)) && (!t.Supports(backend.KeepingHeaders) || maps.Equal(headers, headersOf(n)))
	return n, whole
}

// rngOf returns the random numbers of one client.
func rngOf(seed uint64, client string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(client)) // it never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

func jitter(rng *rand.Rand, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return time.Duration(rng.Int64N(int64(most)))
}
