package interop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// ErrEnded matches the error of calls of a process that has ended, or was killed.
var ErrEnded = errors.New("the Java process has ended")

// JavaError is an exception.
type JavaError struct {
	Class   string // for example java.lang.NullPointerException
	Message string // with the names of the causes
}

func (e *JavaError) Error() string { return e.Class + ": " + e.Message }

// link carries requests to the Java process, and replies and events back; Main.java has the format.
type link struct {
	requests sync.Mutex // one line at a time
	to       io.Writer
	ended    chan struct{} // closed when no reply can come any more

	mu        sync.Mutex
	last      int
	waiting   map[string]chan answer
	consumers map[string]*Consumer
}

type answer struct {
	value any
	err   error
}

func newLink(to io.Writer) *link {
	return &link{
		to: to, ended: make(chan struct{}),
		waiting: make(map[string]chan answer), consumers: make(map[string]*Consumer),
	}
}

// ask sends a request and waits for its reply.
func (l *link) ask(ctx context.Context, operation string, args ...any) (any, error) {
	id, reply := l.expect()
	defer l.forget(id)
	return l.send(ctx, id, reply, operation, args)
}

func (l *link) expect() (id string, reply chan answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	id, reply = strconv.Itoa(l.last), make(chan answer, 1)
	l.waiting[id] = reply
	return id, reply
}

func (l *link) forget(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, id)
}

func (l *link) send(ctx context.Context, id string, reply <-chan answer, operation string, args []any) (any, error) {
	line, err := request(id, operation, args)
	if err == nil {
		err = l.write(line)
	}
	if err != nil {
		return nil, fmt.Errorf("asking Java to %s: %w", operation, err)
	}
	select {
	case a := <-reply:
		return a.value, a.err
	default:
	}
	select {
	case a := <-reply:
		return a.value, a.err
	case <-l.ended:
		return nil, fmt.Errorf("waiting for Java to %s: %w", operation, ErrEnded)
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for Java to %s: %w", operation, ctx.Err())
	}
}

func request(id, operation string, args []any) (string, error) {
	words := []string{id, operation}
	for _, arg := range args {
		word, err := encode(arg)
		if err != nil {
			return "", err
		}
		words = append(words, word)
	}
	return strings.Join(words, " ") + "\n", nil
}

func (l *link) write(line string) error {
	l.requests.Lock()
	defer l.requests.Unlock()
	if _, err := io.WriteString(l.to, line); err != nil {
		return fmt.Errorf("%w: %w", ErrEnded, err)
	}
	return nil
}

// read passes on Java's output until it ends.
func (l *link) read(from *bufio.Reader) {
	defer l.end()
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			return
		}
		if words := strings.Fields(line); len(words) > 2 {
			l.take(words)
		}
	}
}

func (l *link) end() {
	close(l.ended)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.consumers {
		c.end()
	}
}

func (l *link) take(words []string) {
	kind, id, rest := words[0], words[1], words[2:]
	a := content(kind, rest)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch c := l.consumers[id]; {
	case kind == "=" || kind == "!":
		if reply := l.waiting[id]; reply != nil {
			reply <- a
		}
	case c != nil:
		c.add(Received{Value: a.value, Err: a.err, At: instant(rest[len(rest)-1])})
	}
}

func content(kind string, words []string) answer {
	value, err := decode(words[0])
	if err != nil || kind == "=" || kind == "*" {
		return answer{value, err}
	}
	message, err := decode(words[1])
	if err != nil {
		return answer{nil, err}
	}
	return answer{nil, &JavaError{fmt.Sprint(value), fmt.Sprint(message)}}
}

func instant(nanos string) time.Time {
	n, err := strconv.ParseInt(nanos, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(0, n)
}
