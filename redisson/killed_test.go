package redisson_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

// TestWorkerKilled kills a process that holds messages: they come back when the leases end, not
// before.
func TestWorkerKilled(t *testing.T) {
	t.Parallel()
	for _, c := range []redisson.Codec{redisson.String, redisson.Envelope} {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			p := setup(t)
			q := p.open(redisson.WithCodec(c))
			texts := []string{"a", "b", "c", "d", "e"}
			until := p.killWhoHolds(c, 1500*time.Millisecond, func() { p.push(q, 0, texts...) }, len(texts))
			ds := p.take(q, len(texts), time.Minute)
			for _, d := range ds {
				checkReturned(t, d, until[string(d.Body)])
			}
			must(t, q.Ack(p.ctx, leases(ds))...)
			p.empty()
		})
	}
}

// TestJavaWorksOnAfterAKill has only Java there when the leases and their time of grace are over.
func TestJavaWorksOnAfterAKill(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.backend()
	q := p.openOn(b)
	until := p.killWhoHolds(redisson.String, time.Second, func() { p.push(q, 0, "a") }, 1)
	must(t, b.Close())
	j := p.java(redisson.V2)
	await(t, "Java's transfer", func() bool { return j.transfer(time.Now()) == 1 })
	if early := time.Until(until["a"].Add(grace)); early > 0 {
		t.Errorf("Java moved it %v early", early)
	}
	p.handed("a")
}

func checkReturned(t *testing.T, d backend.Delivery, until time.Time) {
	t.Helper()
	claimed := d.Until.Add(-time.Minute)
	if d.Attempt != 2 || until.IsZero() || claimed.Before(until) || claimed.After(until.Add(5*time.Second)) {
		t.Errorf("%s came back at %v as attempt %d; the lease ended at %v", d.Body, claimed, d.Attempt, until)
	}
}

// killWhoHolds kills a worker process once it holds the n messages that push pushes; it returns
// when their leases end, by their bodies.
func (p *place) killWhoHolds(c redisson.Codec, lease time.Duration, push func(), n int) map[string]time.Time {
	p.t.Helper()
	worker := exec.CommandContext(p.ctx, os.Args[0])
	worker.Stderr = os.Stderr
	worker.Env = append(os.Environ(), helperURL+"="+p.server.URL(), helperQueue+"="+p.name, helperCodec+"="+c.Name(), helperLease+"="+lease.String())
	out, err := worker.StdoutPipe()
	must(p.t, err, worker.Start())
	push()
	until := make(map[string]time.Time)
	for lines := bufio.NewScanner(out); len(until) < n && lines.Scan(); {
		var body string
		var attempt int
		var ms int64
		if _, err := fmt.Sscan(lines.Text(), &body, &attempt, &ms); err != nil || attempt != 1 {
			p.t.Fatalf("the worker says %q", lines.Text())
		}
		until[body] = time.UnixMilli(ms)
	}
	must(p.t, worker.Process.Kill())
	_ = worker.Wait() // it was killed
	if len(until) != n {
		p.t.Fatalf("the worker held %d messages, want %d", len(until), n)
	}
	return until
}
