//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/testenv"
)

// crashes are messages, and what became of them.
type crashes struct {
	mu     sync.Mutex
	due    map[string]time.Time // the earliest
	got    map[string]int       // hand-outs
	early  []string
	pushes int // that had to be repeated
}

// TestServeKilled kills the server with -9 while messages are pushed and received, and cuts
// connections after requests were executed. No message is lost, and none comes early.
func TestServeKilled(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	const pushers, each, kills = 4, 150, 5
	dir := t.TempDir()
	s := startServe(t, dir)
	address := strings.TrimPrefix(s.url, "http://")
	proxy := testenv.Proxy(t, address)
	proxy.Seed(1)
	url := "delayq+http://" + proxy.Addr() + "/mail"
	c := &crashes{due: make(map[string]time.Time), got: make(map[string]int)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var pushing, working sync.WaitGroup
	for i := range pushers {
		q := openCrashQueue(t, url)
		pushing.Go(func() {
			for j := range each {
				c.push(ctx, q, fmt.Sprintf("m%d.%d", i, j))
			}
		})
		worker := openCrashQueue(t, url)
		working.Go(func() { c.work(ctx, worker) })
	}
	proxy.CutReplies(0.05)
	for range kills {
		time.Sleep(500 * time.Millisecond) // some hundred requests go on meanwhile
		mustDo(t, s.cmd.Process.Kill())
		_ = s.cmd.Wait() // it was killed
		s = startServe(t, dir, "--listen="+address)
	}
	pushing.Wait()
	proxy.CutReplies(0)
	until(t, "end of all messages", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.got) == pushers*each
	}, s.said)
	q := openCrashQueue(t, url)
	until(t, "empty queue", func() bool {
		stats, err := q.Stats(t.Context())
		return err == nil && stats.Scheduled+stats.Ready+stats.InFlight+stats.Dead == 0
	}, s.said)
	stop()
	working.Wait()
	if len(c.early) > 0 {
		t.Errorf("%d came early: %v", len(c.early), c.early[0])
	}
	t.Logf("%d messages, %d pushes repeated, %d replies cut", len(c.got), c.pushes, proxy.Cuts())
	if c.pushes == 0 || proxy.Cuts() == 0 {
		t.Error("no push had to be repeated, or no reply was cut: the test shows nothing")
	}
}

func openCrashQueue(t *testing.T, url string) (q delayq.Queue) {
	t.Helper()
	until(t, "connection", func() (ok bool) {
		var err error
		q, err = delayq.Open(t.Context(), url, delayq.WithLease(2*time.Second), delayq.WithLogger(slog.New(slog.DiscardHandler)))
		return err == nil
	})
	t.Cleanup(func() { _ = q.Close() })
	return q
}

// push pushes until the message is known to be stored.
func (c *crashes) push(ctx context.Context, q delayq.Queue, id string) {
	const delay = 300 * time.Millisecond
	c.mu.Lock()
	c.due[id] = time.Now().Add(delay)
	c.mu.Unlock()
	for {
		_, err := q.Push(ctx, []byte(id), delayq.ID(id), delayq.After(delay))
		c.mu.Lock()
		if err == nil || errors.Is(err, delayq.ErrDuplicate) || c.got[id] > 0 {
			c.mu.Unlock()
			return
		}
		c.pushes++
		c.mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		time.Sleep(5 * time.Millisecond) // before the next try
	}
}

func (c *crashes) work(ctx context.Context, q delayq.Queue) {
	for ctx.Err() == nil {
		d, err := q.Receive(ctx)
		if err != nil {
			time.Sleep(5 * time.Millisecond) // before the next try
			continue
		}
		now := time.Now()
		c.mu.Lock()
		c.got[d.ID]++
		if now.Before(d.Due) || now.Before(c.due[d.ID]) || string(d.Body) != d.ID {
			c.early = append(c.early, fmt.Sprint(d, " at ", now))
		}
		c.mu.Unlock()
		_ = d.Ack(ctx) // a message that is not acknowledged comes again
	}
}
