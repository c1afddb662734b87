package server

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/wire"
)

// Replies are kept for as long as clients try again. Both bounds of a shelf hold, so that clients
// cannot take all memory.
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

// A shelf has the replies of some verbs. Those that may be executed again have one of their own:
// they take no room of the others.
type shelf struct {
	done    list.List // of *kept, the oldest first
	bytes   int
	dropped time.Time // the end of the youngest request whose reply made room for another
}

// kept is a request with an Idempotency-Key, while it runs and for some time after that.
type kept struct {
	key  requestKey
	body [sha256.Size]byte // of the request; zero where only the end of it is known
	done chan struct{}     // closed when the reply is set
	end  context.CancelFunc
	on   *shelf

	reply reply
	ended time.Time
	place *list.Element // while the reply is kept

	leases    []backend.Lease // of the reply's messages, until they are given back
	leasesEnd time.Time
	turns     int  // how many requests that were sent again got the reply
	forgotten bool // it is to be executed again
	unknown   bool // it failed, and may have been executed
}

// replies are kept so that a request that is sent again is not executed again.
type replies struct {
	mu         sync.Mutex
	byKey      map[requestKey]*kept
	changes    shelf
	repeatable shelf
}

func newReplies() *replies { return &replies{byKey: make(map[requestKey]*kept)} }

func (rs *replies) shelf(v verb) *shelf {
	if v.repeatable() {
		return &rs.repeatable
	}
	return &rs.changes
}

// begin returns the entry of a request, and whether the caller is to execute it. There is no entry
// for a request that is sent again and whose first try may have been forgotten, if that ended after
// since.
func (rs *replies) begin(k *kept, again bool, since time.Time) (entry *kept, mine bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	now := time.Now()
	oldest := now.Add(-keepReplies)
	rs.dropLocked(&rs.changes, oldest)
	rs.dropLocked(&rs.repeatable, oldest)
	known := rs.byKey[k.key]
	switch {
	case known == nil && again && k.on.dropped.After(since):
		return nil, false
	case known == nil:
	case len(known.leases) > 0 && now.After(known.leasesEnd) && known.body == k.body:
		rs.removeLocked(known) // others may have its messages
	case known.unknown && !again:
		rs.removeLocked(known)
	default:
		return known, false
	}
	rs.byKey[k.key] = k
	return k, true
}

// finish sets the reply. After a failure of the server, or where it told the client to come again,
// the request may be executed again. If it may have been executed, a client has to have seen that.
func (rs *replies) finish(k *kept, r reply, ls []backend.Lease, leasesEnd time.Time) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	k.reply, k.leases, k.leasesEnd, k.ended = r, ls, leasesEnd, time.Now()
	k.forgotten = r.status >= http.StatusInternalServerError ||
		r.status == http.StatusTooManyRequests || len(r.body) > maxReplyBytes/8
	k.unknown = k.forgotten && leavesUnknown(r)
	close(k.done)
	if k.forgotten && !k.unknown {
		delete(rs.byKey, k.key)
		return
	}
	rs.keepLocked(k)
}

// leavesUnknown reports whether a reply of a failure says that the request may have been executed.
func leavesUnknown(r reply) bool {
	var p wire.Problem
	return r.kind == wire.ProblemType && json.Unmarshal(r.body, &p) == nil &&
		(p.Unknown || p.Code == wire.Unconfirmed)
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
	on := k.on
	k.place = on.done.PushBack(k)
	on.bytes += len(k.reply.body)
	for on.done.Len() > maxReplies || on.bytes > maxReplyBytes {
		oldest := on.done.Front().Value.(*kept)
		on.dropped = oldest.ended
		rs.removeLocked(oldest)
	}
}

func (rs *replies) dropLocked(on *shelf, before time.Time) {
	for e := on.done.Front(); e != nil && e.Value.(*kept).ended.Before(before); e = on.done.Front() {
		rs.removeLocked(e.Value.(*kept))
	}
}

func (rs *replies) removeLocked(k *kept) {
	k.on.done.Remove(k.place)
	k.on.bytes -= len(k.reply.body)
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
	k := &kept{key: key, on: &rs.repeatable, done: make(chan struct{}), reply: r, ended: time.Now()}
	close(k.done)
	rs.byKey[key] = k
	rs.keepLocked(k)
}
