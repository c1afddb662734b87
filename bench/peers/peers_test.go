// Package peers measures delayq beside other queues, each as its own documentation sets it up and once more tuned for
// speed. It is a module of its own, so that nobody who uses delayq downloads them.
//
//	cd bench/peers && go test -run '^$' -bench . -benchtime 1x -timeout 30m
//
// The sides take turns, round by round; after the last one each has a line, on which msgs/s is the median of its rounds and
// /asynq the median of how many times as fast as asynq it was in a round. Each queue on Redis has a server of its own without
// persistence, on this machine, that shares its processors; all use the same release of go-redis. A benchmark fails when
// delayq breaks a promise, an early or a lost message, and never because of a rate; the goals are in the comments.
//
// What the lines say is measured before they are printed: -count repeats the lines and not the measurement, and ns/op and a long
// -benchtime mean nothing.
package peers

import (
	"context"
	"testing"
	"time"
)

// A peer is a queue to measure. A new one joins by an entry in peers.
type peer struct {
	name string

	// open returns an empty queue that nobody else uses; it cleans up after itself.
	open func(*testing.B) system

	// punctual peers promise never to be early.
	punctual bool

	// slow ones are left out of a short run, since they wait for seconds before they begin, or show nothing new.
	slow bool

	// oneByOne peers know no batches.
	oneByOne bool

	// tweaks are peers whose settings concern only how they consume; another entry stands for their pushes.
	tweaks bool
}

var peers = []peer{
	{name: "zsetpoll", open: openZsetpoll, punctual: true},
	{name: "asynq", open: openAsynq(asDocumented), slow: true, oneByOne: true},
	{name: "asynq-tuned", open: openAsynq(tuned), oneByOne: true},
	{name: "asynq-tuned-x4", open: openAsynq(tunedServers), slow: true, oneByOne: true, tweaks: true},
	{name: "keyspace", open: openKeyspace, punctual: true},
	{name: "redisson", open: openRedisson, punctual: true},
}

// A system is a peer that runs.
type system interface {
	// push hands over one message, as the peer takes single ones, and returns when the store has it.
	push(ctx context.Context, m message) error

	// pushAll hands over up to 1,000 messages in as few calls as the peer has for that.
	pushAll(ctx context.Context, ms []message) error

	// consume has 32 workers call handle, until stop. That returns when all of them are idle.
	consume(b *testing.B, handle func(body []byte)) (stop func())

	// left counts the messages that are not acknowledged.
	left(ctx context.Context) (int64, error)

	// clear forgets all messages. Nobody consumes then.
	clear(b *testing.B)
}

type message struct {
	body []byte
	due  time.Time
}

const (
	bodySize = 100 // bytes, as the figures of other queues are given
	workers  = 32
)

// A contestant is a peer that takes part in a benchmark.
type contestant struct {
	peer
	system
}

// contest opens the peers that a run of this length has time for, as far as they are wanted.
func contest(b *testing.B, wanted func(peer) bool) (cs []contestant) {
	b.Helper()
	for _, p := range peers {
		if wanted(p) {
			cs = append(cs, contestant{p, p.open(b)})
		}
	}
	return cs
}

func inTime(p peer) bool { return !p.slow || !testing.Short() }

// mustHaveLeft fails unless that many messages are not acknowledged.
func (c contestant) mustHaveLeft(b *testing.B, want int) {
	b.Helper()
	n, err := c.left(context.Background())
	must(b, err)
	if n != int64(want) {
		b.Fatalf("%s holds %d messages, want %d", c.name, n, want)
	}
}

// drained returns when all messages are acknowledged.
func (c contestant) drained(b *testing.B) {
	b.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		n, err := c.left(context.Background())
		must(b, err)
		if n == 0 {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("%s has handled all messages and keeps %d of them", c.name, n)
		}
	}
}

// keep fails when a side that promises otherwise was early, or handed out a message twice.
func (c contestant) keep(b *testing.B, t *tally) {
	b.Helper()
	if early, twice := t.early.Load(), t.twice.Load(); c.punctual && early+twice > 0 {
		b.Fatalf("%s: %d messages came early, %d twice", c.name, early, twice)
	}
}

func must(b *testing.B, err error) {
	if err != nil {
		b.Helper()
		b.Fatal(err)
	}
}

func unlessShort[T any](full, short T) T {
	if testing.Short() {
		return short
	}
	return full
}
