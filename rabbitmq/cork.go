package rabbitmq

import (
	"net"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A connection is one whose small writes can go out together.
type connection struct {
	*amqp.Connection
	cork *cork
}

// A cork is under the client library, which writes each message by itself, for the broker to read by itself. What is written
// while somebody holds the cork goes out together when somebody lets go. Who waits for something lets go before.
type cork struct {
	net.Conn

	mu      sync.Mutex
	holders int
	pending []byte
	err     error // of an earlier write
}

// corkBytes is how much goes out at once, so that the broker has something to do meanwhile.
const corkBytes = 32 << 10

// Write fails with the error of any earlier write.
func (c *cork) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.pending, p...)
	if c.holders == 0 || len(c.pending) >= corkBytes {
		c.sendLocked()
	}
	if c.err != nil {
		return 0, c.err
	}
	return len(p), nil
}

func (c *cork) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holders++
}

// release sends what is pending, also while others hold the cork.
func (c *cork) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holders--
	c.sendLocked()
}

// sendLocked closes the connection if it fails: who has written believes that it is sent, and waits for an answer.
func (c *cork) sendLocked() {
	if c.err == nil && len(c.pending) > 0 {
		if _, c.err = c.Conn.Write(c.pending); c.err != nil {
			_ = c.Close()
		}
	}
	if cap(c.pending) > 4*corkBytes {
		c.pending = nil // after a large message
	}
	c.pending = c.pending[:0]
}
