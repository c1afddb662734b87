package client

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/testenv"
)

// printed is what the client library prints.
type printed struct {
	mu   sync.Mutex
	text strings.Builder
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// The call's error says that a server cannot be reached, and nothing is printed. Messages of other
// clients are still printed.
func TestFailuresToDialAreNotPrinted(t *testing.T) {
	var p printed
	before := printer.Writer()
	printer.SetOutput(&p)
	defer printer.SetOutput(before)
	server := testenv.Redis(t, testenv.Private())
	ours := mustConnect(t, "zsetpoll://"+server.Addr()+"/orders")
	theirs := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, DialerRetries: 1})
	defer func() { _ = theirs.Close() }()
	server.Kill()
	for end := time.Now().Add(20 * time.Second); ; {
		err := ours.Ping(t.Context()).Err()
		if err != nil && strings.Contains(err.Error(), "connection refused") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the error of a server that is gone is %v", err)
		}
	}
	if p.String() != "" {
		t.Errorf("our client prints: %s", p.String())
	}
	if err := theirs.Ping(t.Context()).Err(); err == nil {
		t.Error("the other client reaches a server that is gone")
	}
	if !strings.Contains(p.String(), "failed to dial") {
		t.Errorf("the other client prints %q", p.String())
	}
}
