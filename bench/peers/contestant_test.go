package peers

import (
	"context"
	"testing"
	"time"

	"github.com/delayq/delayq/bench/internal/load"
)

// A contestant is a peer that takes part in a benchmark.
type contestant struct {
	peer
	system
	scope *scope
}

// A scope ends before its benchmark does, and closes everything that was opened for it.
type scope struct {
	testing.TB
	ends []func()
}

func (s *scope) Cleanup(f func()) { s.ends = append(s.ends, f) }

func (s *scope) end() {
	for len(s.ends) > 0 {
		last := len(s.ends) - 1
		end := s.ends[last]
		s.ends = s.ends[:last]
		end()
	}
}

func (p peer) enter(b *testing.B) *contestant {
	b.Helper()
	c := &contestant{peer: p, scope: &scope{TB: b}}
	c.system = p.open(c.scope)
	return c
}

func (c *contestant) leave() { c.scope.end() }

func (c *contestant) clear(b *testing.B) {
	b.Helper()
	if s, ok := c.system.(clearer); ok {
		s.clear(b)
		return
	}
	c.leave()
	c.system = c.open(c.scope)
}

// upTo is how many of n messages it can be asked for.
func (c *contestant) upTo(n int) int {
	if c.most > 0 {
		return min(n, c.most)
	}
	return n
}

// mustHaveLeft fails unless that many messages are not acknowledged.
func (c *contestant) mustHaveLeft(b *testing.B, want int) {
	b.Helper()
	n, err := c.left(context.Background())
	load.Must(b, err)
	if n != int64(want) {
		b.Fatalf("%s holds %d messages, want %d", c.name, n, want)
	}
}

// drained returns when all messages are acknowledged, but for those that a peer has lost.
func (c *contestant) drained(b *testing.B, lost int) {
	b.Helper()
	for end := time.Now().Add(load.Patience); ; time.Sleep(time.Millisecond) { // ended by the condition
		n, err := c.left(context.Background())
		load.Must(b, err)
		switch {
		case n <= int64(lost):
			return
		case time.Now().Before(end):
		case c.ours:
			b.Fatalf("%s has handled all messages and keeps %d of them", c.name, n)
		default:
			b.Logf("%s has handled all messages and keeps %d of them", c.name, n)
			return
		}
	}
}

// keep fails when a side of ours was early, lost a message or handed it out twice.
func (c *contestant) keep(b *testing.B, o load.Outcome) {
	b.Helper()
	if c.ours {
		o.MustHold(b, c.name)
	}
}
