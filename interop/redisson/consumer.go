package interop

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Received is a value that a thread of a [Consumer] took, or an exception such as a codec's, by
// which the value is lost.
type Received struct {
	Value any
	Err   error
	At    time.Time // by the clock of Java, when it was in the hands of the thread
}

// Consumer is threads that take values off a destination. Any goroutine may call its methods.
type Consumer struct {
	process *process
	id      string

	mu    sync.Mutex
	all   []Received
	next  int
	ended bool
	news  chan struct{} // closed and replaced when something changes
}

// Consume starts threads that take values off the destination until Stop, or until the process
// ends.
func (q *Queue) Consume(ctx context.Context, threads int) (*Consumer, error) {
	l := q.jvm.process.link
	id, reply := l.expect()
	defer l.forget(id)
	c := &Consumer{process: q.jvm.process, id: id, news: make(chan struct{})}
	l.add(c)
	_, err := l.send(ctx, id, reply, "consume", q.arguments([]any{int64(threads)}))
	if err != nil {
		l.drop(c)
		return nil, err
	}
	return c, nil
}

func (l *link) add(c *Consumer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.consumers[c.id] = c
}

func (l *link) drop(c *Consumer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.consumers, c.id)
}

// Next returns values in the order of their arrival, and waits for the next one if need be. It
// returns ctx's error, or ErrEnded when the consumer was stopped or the process has ended.
func (c *Consumer) Next(ctx context.Context) (Received, error) {
	for {
		r, news, ok := c.pop()
		switch {
		case ok:
			return r, nil
		case news == nil:
			return Received{}, ErrEnded
		}
		select {
		case <-news:
		case <-ctx.Done():
			return Received{}, ctx.Err()
		}
	}
}

// pop returns the next value. Without one, news is closed when there may be one, and is nil at the
// end.
func (c *Consumer) pop() (_ Received, news <-chan struct{}, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.next < len(c.all):
		c.next++
		return c.all[c.next-1], nil, true
	case c.ended:
		return Received{}, nil, false
	default:
		return Received{}, c.news, false
	}
}

// Received returns all that was received so far, in the order in which Java told of it.
func (c *Consumer) Received() []Received {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all)
}

func (c *Consumer) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// Stop returns when the threads have ended, which takes up to a second. The values that they took
// are then received.
func (c *Consumer) Stop(ctx context.Context) error {
	if _, err := c.process.ask(ctx, "stop", c.id); err != nil {
		return err
	}
	c.process.drop(c)
	c.end()
	return nil
}

func (c *Consumer) add(r Received) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, r)
	c.tell()
}

func (c *Consumer) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.tell()
}

func (c *Consumer) tell() {
	close(c.news)
	c.news = make(chan struct{})
}
