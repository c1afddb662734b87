package redisson_test

import (
	"testing"
	"time"

	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/redisson"
)

// TestJavaWorksOnAfterAKill has only Java there when the leases and their time of grace are over.
func TestJavaWorksOnAfterAKill(t *testing.T) {
	t.Parallel()
	p := setup(t)
	b := p.backend()
	q := p.openOn(b)
	until := redistest.KillWorker(t, p.server, "", p.name, time.Second, func() { p.push(q, 0, "a") }, 1)
	must(t, b.Close())
	j := p.java(redisson.V2)
	await(t, "Java's transfer", func() bool { return j.transfer(time.Now()) == 1 })
	if early := time.Until(until["a"].Add(grace)); early > 0 {
		t.Errorf("Java moved it %v early", early)
	}
	p.handed("a")
}
