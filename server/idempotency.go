package server

import (
	"container/list"
	"context"
	"crypto/sha256"
	"net/http"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
)

// Replies are kept for as long as clients try again. Both bounds hold, so that clients cannot take
// all memory.
const (
	keepReplies   = 10 * time.Minute
	maxReplies    = 20_000
	maxReplyBytes = 64 << 20
	maxKey        = 255
)

// A requestKey identifies a request: its Idempotency-Key, its caller and its path.
type requestKey [sha256.Size]byte

func keyOf(caller, path, key string) requestKey {
	return sha256.Sum256([]byte(caller + "\x00" + path + "\x00" + key))
}

// reply is what a request was answered with.
type reply struct {
	status int
	kind   string // the media type
	body   []byte
}

// kept is a request with an Idempotency-Key, while it runs and for some time after that.
type kept struct {
	key  requestKey
	body [sha256.Size]byte // of the request; zero where only the end of it is known
	done chan struct{}     // closed when the reply is set
	end  context.CancelFunc

	reply reply
	ended time.Time
	place *list.Element // while the reply is kept

	leases    []backend.Lease // of the reply's messages, until they are given back
	leasesEnd time.Time
	turns     int  // how many requests that were sent again got the reply
	forgotten bool // it is to be executed again
}

// replies are kept so that a request that is sent again is not executed again.
type replies struct {
	mu    sync.Mutex
	byKey map[requestKey]*kept
	done  list.List // of *kept, the oldest first
	bytes int
}

func newReplies() *replies { return &replies{byKey: make(map[requestKey]*kept)} }

// begin returns the entry of a request, and whether the caller is to execute it. end stops the
// request early.
func (rs *replies) begin(key requestKey, body [sha256.Size]byte, end context.CancelFunc) (k *kept, mine bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	now := time.Now()
	rs.dropLocked(now.Add(-keepReplies))
	k = rs.byKey[key]
	switch {
	case k == nil:
	case len(k.leases) > 0 && now.After(k.leasesEnd) && k.body == body:
		rs.removeLocked(k) // others may have its messages
	default:
		return k, false
	}
	k = &kept{key: key, body: body, done: make(chan struct{}), end: end}
	rs.byKey[key] = k
	return k, true
}

// finish sets the reply. After a failure of the server, or where it told the client to come again,
// the request may be executed again.
func (rs *replies) finish(k *kept, r reply, ls []backend.Lease, leasesEnd time.Time) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	k.reply, k.leases, k.leasesEnd, k.ended = r, ls, leasesEnd, time.Now()
	close(k.done)
	if r.status >= http.StatusInternalServerError || r.status == http.StatusTooManyRequests || len(r.body) > maxReplyBytes/8 {
		k.forgotten = true
		delete(rs.byKey, k.key)
		return
	}
	rs.keepLocked(k)
}

// take reports whether the reply may be sent to a request that was sent again, and its turn.
func (rs *replies) take(k *kept) (turn int, ok bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if k.forgotten {
		return 0, false
	}
	k.turns++
	return k.turns, true
}

// forget lets a receive be executed again whose reply could not be written at a turn, and returns the
// leases to give back. There are none where a later request got the reply.
func (rs *replies) forget(k *kept, turn int) []backend.Lease {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	ls := k.leases
	if turn != k.turns || len(ls) == 0 {
		return nil
	}
	if k.place != nil && rs.byKey[k.key] == k {
		rs.removeLocked(k)
	}
	k.leases, k.forgotten = nil, true
	return ls
}

func (rs *replies) keepLocked(k *kept) {
	k.place = rs.done.PushBack(k)
	rs.bytes += len(k.reply.body)
	for rs.done.Len() > maxReplies || rs.bytes > maxReplyBytes {
		rs.removeLocked(rs.done.Front().Value.(*kept))
	}
}

func (rs *replies) dropLocked(before time.Time) {
	for e := rs.done.Front(); e != nil && e.Value.(*kept).ended.Before(before); e = rs.done.Front() {
		rs.removeLocked(e.Value.(*kept))
	}
}

func (rs *replies) removeLocked(k *kept) {
	rs.done.Remove(k.place)
	rs.bytes -= len(k.reply.body)
	delete(rs.byKey, k.key)
}

// end stops a request that runs. One that has not arrived yet gets the reply when it does.
func (rs *replies) end(key requestKey, r reply) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if k := rs.byKey[key]; k != nil {
		if k.end != nil {
			k.end()
		}
		return
	}
	k := &kept{key: key, done: make(chan struct{}), reply: r, ended: time.Now()}
	close(k.done)
	rs.byKey[key] = k
	rs.keepLocked(k)
}
