package rabbitmq

import (
	"net"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A connection can send small writes together.
type connection struct {
	*amqp.Connection
	buffer *writeBuffer
}

// A writeBuffer is the net.Conn under the client library. The library writes each message
// separately, and the broker would read each separately. Writes made while a goroutine holds the
// buffer are sent together when a goroutine releases it. A goroutine must release it before it
// waits.
type writeBuffer struct {
	net.Conn

	mu      sync.Mutex
	holders int
	pending []byte
	err     error // of an earlier write
}

// bufferBytes bounds the pending bytes, so that the broker gets work meanwhile.
const bufferBytes = 32 << 10

// Write fails with the error of any earlier write.
func (b *writeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = append(b.pending, p...)
	if b.holders == 0 || len(b.pending) >= bufferBytes {
		b.sendLocked()
	}
	if b.err != nil {
		return 0, b.err
	}
	return len(p), nil
}

func (b *writeBuffer) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holders++
}

// release sends the pending bytes, also while other goroutines hold the buffer.
func (b *writeBuffer) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holders--
	b.sendLocked()
}

// sendLocked closes the connection if it fails: earlier writes reported success, and their writers
// wait for a reply.
func (b *writeBuffer) sendLocked() {
	if b.err == nil && len(b.pending) > 0 {
		if _, b.err = b.Conn.Write(b.pending); b.err != nil {
			_ = b.Close()
		}
	}
	if cap(b.pending) > 4*bufferBytes {
		b.pending = nil // after a large message
	}
	b.pending = b.pending[:0]
}
