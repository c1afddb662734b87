package chaos

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

// A message's body begins with its number, from which the rest of body and headers follows. So a
// worker can check that it receives exactly what was pushed.
const numberLen = 4

// maxNumber is above the numbers of any run. What follows a message's number in the first word of its
// body counts its contents, where it is replaced: 0 for the first, those of a pusher up to
// pusherContents, then those of workers up to maxContents. A body with a larger word is nobody's.
const (
	maxNumber      = 1 << 26
	pusherContents = 4
	ownContents    = 10 // of this process's workers; those of worker processes follow
	maxContents    = 16
)

// workerContents counts the contents that workers of one process have given to messages in flight, so
// that each content of a message is pushed once. A worker process gives some to the messages that it
// has pushed itself.
type workerContents struct {
	first, end uint32 // contents
	after, to  uint32 // numbers of messages
	used       sync.Map
}

// next reports false when a message has had all contents, or is another process's.
func (c *workerContents) next(n uint32) (content uint32, ok bool) {
	if n <= c.after || n > c.to {
		return 0, false
	}
	used, _ := c.used.LoadOrStore(n, new(atomic.Uint32))
	content = used.(*atomic.Uint32).Add(1) + c.first - 1
	return content, content < c.end
}

// contentOf returns a message without its due time, with one of its contents. Its id is an earlier
// message's on the second queue: mostly one of the first queue's.
func (e *Env) contentOf(n, content uint32) backend.Message {
	return contentOf(n+content*maxNumber, e.idOf(n), e.Traits)
}

func contentOf(word uint32, id string, t backend.Traits) backend.Message {
	m := backend.Message{ID: id, Body: bodyOf(word)}
	if t.Supports(backend.KeepingHeaders) {
		m.Headers = headersOf(word)
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

// bodyOf returns the body with a first word: mostly short, but one in a hundred has some kilobytes.
func bodyOf(word uint32) []byte {
	rng := rand.New(rand.NewPCG(uint64(word), 3))
	size := rng.IntN(48)
	if word%101 == 0 {
		size = 1000 + rng.IntN(4000)
	}
	body := make([]byte, numberLen, numberLen+size+8)
	binary.BigEndian.PutUint32(body, word)
	for len(body) < numberLen+size {
		body = binary.LittleEndian.AppendUint64(body, rng.Uint64())
	}
	return body[:numberLen+size]
}

// headersOf returns the headers beside the body with a first word; one in seven has some.
func headersOf(word uint32) map[string]string {
	if word%7 != 0 {
		return nil
	}
	return map[string]string{"n": strconv.Itoa(int(word)), "odd": "\xff\x00"}
}

// recognize returns a message's number, which of its contents it has, and whether body and headers
// are as pushed.
func recognize(body []byte, headers map[string]string, t backend.Traits) (n, content uint32, whole bool) {
	if len(body) < numberLen {
		return 0, 0, false
	}
	word := binary.BigEndian.Uint32(body)
	if word >= maxContents*maxNumber {
		return 0, 0, false
	}
	whole = bytes.Equal(body, bodyOf(word)) && (!t.Supports(backend.KeepingHeaders) || maps.Equal(headers, headersOf(word)))
	return word % maxNumber, word / maxNumber, whole
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
