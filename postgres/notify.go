package postgres

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"
)

// An announcer tells other processes of messages that are due soon, after their commit: one
// statement for all queues, and one at a time. A notification that is lost makes a message late by
// one look at most.
type announcer struct {
	b *Backend

	mu      sync.Mutex
	soonest map[string]int64 // by queue; all for at once
	running bool
}

const (
	// newsEvery is how often notifications are sent at most. Commits with notifications wait for one
	// another on the whole server.
	newsEvery = 5 * time.Millisecond
	// newsWithin bounds one statement.
	newsWithin = 2 * time.Second
)

// self tells this process's notifications from those of others.
var self = strconv.FormatUint(rand.Uint64(), 36)

// tell has a due time sent. It does not wait.
func (a *announcer) tell(queue string, due int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.soonest == nil {
		a.soonest = make(map[string]int64)
	}
	if at, ok := a.soonest[queue]; !ok || due < at {
		a.soonest[queue] = due
	}
	if !a.running {
		a.running = true
		a.b.calls.run(a.send)
	}
}

// take returns what is to be sent. After nothing, send ends.
func (a *announcer) take() (payloads []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for queue, due := range a.soonest {
		payloads = append(payloads, payload(a.b.id(), queue, due))
	}
	a.soonest = nil
	a.running = len(payloads) > 0
	return payloads
}

func (a *announcer) send() {
	for payloads := a.take(); len(payloads) > 0; payloads = a.take() {
		began := time.Now()
		ctx, cancel := context.WithTimeout(context.Background(), newsWithin)
		if conn, err := a.b.db.acquire(ctx); err == nil {
			// It need not be on the disk: nothing waits for it.
			_ = conn.query(ctx, "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1::text, p) FROM unnest($2::text[]) p",
				[]any{a.b.cfg.channel(), payloads}, func(scan) error { return nil })
			conn.release()
		}
		cancel()
		time.Sleep(newsEvery - time.Since(began))
	}
}

// channel is where wake-ups of this schema and prefix are sent.
func (c *config) channel() string {
	name := c.name("wake")
	if len(name) < 60 {
		return name
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return "delayq_" + strconv.FormatUint(h.Sum64(), 36)
}

// id tells this backend's notifications from those of others.
func (b *Backend) id() string { return self + "." + strconv.FormatUint(b.number, 36) }

func payload(from, queue string, due int64) string {
	return from + " " + queue + " " + strconv.FormatInt(due, 10)
}

// readPayload returns the parts of a payload.
func readPayload(text string) (from, queue string, due time.Time, ok bool) {
	parts := strings.Split(text, " ")
	if len(parts) != 3 {
		return "", "", time.Time{}, false
	}
	us, err := strconv.ParseInt(parts[2], 10, 64)
	if us != all {
		due = moment(us)
	}
	return parts[0], parts[1], due, err == nil
}

// A listener is the backend's connection for LISTEN. It starts with the first Receive.
type listener struct {
	b    *Backend
	mu   sync.Mutex
	stop context.CancelFunc // nil before the start
	over bool
}

func (l *listener) start() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stop != nil || l.over {
		return
	}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(context.Background())
	l.b.calls.run(func() { l.run(ctx) })
}

func (l *listener) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over = true; l.stop != nil {
		l.stop()
	}
}

const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// run listens, and connects again when the connection breaks.
func (l *listener) run(ctx context.Context) {
	wait := firstRetry
	for ctx.Err() == nil {
		err := l.b.db.listen(ctx, l.b.cfg.channel(), func() {
			wait = firstRetry
			l.b.wakeAll() // others may have told something meanwhile
		}, l.got)
		if err == errNoListen { //nolint:errorlint // it is ours
			return
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, lastRetry)
		case <-ctx.Done():
		}
	}
}

func (l *listener) got(text string) {
	if from, queue, due, ok := readPayload(text); ok && from != l.b.id() {
		l.b.wake(queue, due)
	}
}

// wakeAll makes all handles look at once, at everything.
func (b *Backend) wakeAll() {
	b.mu.Lock()
	for _, m := range b.open {
		m.scan.lower(time.Time{})
	}
	b.mu.Unlock()
	b.hub.WakeAll()
}
