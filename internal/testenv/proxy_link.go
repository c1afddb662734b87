package testenv

import (
	"bytes"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// link is one connection through a proxy.
type link struct {
	proxy  *FaultProxy
	client net.Conn
	gone   chan struct{} // closed when the link is

	mu     sync.Mutex
	server net.Conn // nil until it is connected
	closed bool

	// Guarded by the lock of the proxy.
	dice   *rand.Rand
	robbed bool
	frozen bool
}

type reply struct {
	bytes []byte
	due   time.Time
}

const chunk = 32 << 10

func (l *link) run() {
	defer l.end()
	if !l.connect() {
		return
	}
	replies := make(chan reply, 1024)
	var tasks sync.WaitGroup
	tasks.Go(l.passRequests)
	tasks.Go(func() { l.takeReplies(replies) })
	tasks.Go(func() { l.passReplies(replies) })
	tasks.Wait()
}

// connect reports false when there is nothing to talk to.
func (l *link) connect() bool {
	server, err := net.DialTimeout("tcp", l.proxy.upstream, patience)
	if err != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = server.Close()
		return false
	}
	l.server = server
	return true
}

func (l *link) passRequests() {
	defer l.close()
	buf := make([]byte, chunk)
	for {
		n, err := l.client.Read(buf)
		if err != nil {
			return
		}
		if l.drops() {
			continue
		}
		l.freeze()
		if _, err := l.server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// takeReplies reads ahead of passReplies, so that latency delays replies and does not add up.
func (l *link) takeReplies(replies chan<- reply) {
	defer close(replies)
	buf := make([]byte, chunk)
	for {
		n, err := l.server.Read(buf)
		if err != nil {
			return
		}
		if l.drops() {
			continue
		}
		l.freeze()
		latency, cut := l.drawReply()
		if cut {
			return // passReplies still passes on those before, and closes the link
		}
		if !l.held() {
			return
		}
		select {
		case replies <- reply{bytes.Clone(buf[:n]), time.Now().Add(latency)}:
		case <-l.gone:
			return
		}
	}
}

func (l *link) passReplies(replies <-chan reply) {
	defer l.close()
	for r := range replies {
		if !l.sleep(time.Until(r.due)) {
			return
		}
		if _, err := l.client.Write(r.bytes); err != nil {
			return
		}
	}
}

// sleep reports false when the link was closed meanwhile.
func (l *link) sleep(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-l.gone:
		return false
	}
}

// held waits while replies are held back. It reports false when the link was closed meanwhile.
func (l *link) held() bool {
	over := l.proxy.holdsBack()
	if over == nil {
		return true
	}
	select {
	case <-over:
		return true
	case <-l.gone:
		return false
	}
}

// holdsBack counts a reply, and returns a channel that ends the stall if the reply has to wait.
func (p *FaultProxy) holdsBack() (over <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.faults.stall
	if s == nil {
		return nil
	}
	if s.left > 0 {
		s.left--
		return nil
	}
	s.holds = true
	return s.over
}

// freeze waits for the end of a link that is frozen.
func (l *link) freeze() {
	l.proxy.mu.Lock()
	frozen := l.frozen
	l.proxy.mu.Unlock()
	if frozen {
		<-l.gone
	}
}

func (l *link) drops() bool {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	if l.proxy.faults.hole {
		l.robbed = true
	}
	return l.proxy.faults.hole
}

// drawReply decides on a reply. The dice are thrown for each, so that a change of the probability
// does not change the sequence.
func (l *link) drawReply() (latency time.Duration, cut bool) {
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	cut = l.dice.Float64() < l.proxy.faults.cut
	if cut {
		l.proxy.cuts++
	}
	return l.proxy.faults.latency, cut
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.closed = true
	close(l.gone)
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}

func (l *link) end() {
	l.close()
	l.proxy.mu.Lock()
	defer l.proxy.mu.Unlock()
	delete(l.proxy.links, l)
}
