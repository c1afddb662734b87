package memory

import (
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
)

// A store is one queue's messages. Each is in exactly one of three places: due,
// leases or dead. A method whose name ends in Locked needs mu.
type store struct {
	clock  clockwork.Clock
	limits limits

	mu      sync.Mutex
	nodes   *slab
	arena   *arena
	ids     *index
	due     heap // scheduled and ready messages by (due, push order)
	leases  heap // those in flight by (end of lease, token)
	held    heldKeys
	dead    deadList
	pushes  uint64   // push order
	tokens  uint64   // leases given, ever
	epoch   uint64   // distinguishes its leases from those of another store: a lease may outlive the process as text
	bytes   int64    // in cells of the arena
	windows *windows // nil when none lasts
	paused  int64    // when the pause ends: the end of time for one without an end, its beginning for none
	packed  []byte   // scratch for an id
	sleep   sleepers

	activity backend.Activity

	name    string // the backend's, and so is the next field
	handles int    // open ones
}

// limits are the caps on one queue; 0 is none.
type limits struct {
	messages int
	bytes    int64
}

func newStore(name string, clock clockwork.Clock, l limits) *store {
	s := &store{name: name, clock: clock, limits: l, paused: math.MinInt64, epoch: rand.Uint64()}
	s.emptyLocked()
	s.sleep.fired = s.wakeUp
	return s
}

// emptyLocked drops all messages at once. The counters go on: no later lease has the token of an
// earlier one.
func (s *store) emptyLocked() {
	nodes, arena := newSlab(), newArena()
	s.nodes, s.arena, s.ids = nodes, arena, newIndex(nodes, arena)
	s.due, s.leases = heap{pos: &nodes.pos}, heap{pos: &nodes.pos}
	s.held = heldKeys{}
	s.dead = deadList{pos: &nodes.pos, deaths: s.dead.deaths}
	s.bytes, s.windows = 0, nil
}

// enter locks the store and brings it up to date.
func (s *store) enter() (now int64) {
	s.mu.Lock()
	now = s.clock.Now().UnixNano()
	s.expireLocked(now)
	s.forgetWindowsLocked(now, fewWindows)
	return now
}

// expireLocked gives back the messages of ended leases.
func (s *store) expireLocked(now int64) {
	for s.leases.len() > 0 {
		k, slot := s.leases.head()
		if k.when > now {
			return
		}
		s.giveBackLocked(slot, s.held.at(slot))
	}
}

// addLocked stores a new message.
func (s *store) addLocked(m *backend.Message, now int64) error {
	s.packed = record.PackID(s.packed[:0], m.ID)
	if slot, ok := s.ids.find(s.packed); ok && m.Replace {
		return s.replaceLocked(slot, m, now)
	} else if ok {
		return backend.Duplicate(s.stateLocked(slot, now))
	} else if s.windows.end(s.packed) > now {
		return backend.Duplicate(backend.StateDone)
	}
	if m.MaxWait > 0 {
		bounded := m.Bounded(nil, moment(now))
		m = &bounded
	}
	size := recordSize(s.packed, m.Headers, m.Body)
	if s.fullLocked(m, size, now) {
		return backend.ErrFull
	}
	if m.UniqueFor > 0 {
		s.openWindowLocked(now, after(now, m.UniqueFor))
	}
	rec := s.arena.add(size)
	cell := s.arena.bytes(rec)
	putRecord(cell, s.packed, m.Headers, m.Body)
	s.bytes += int64(len(cell))
	slot := s.nodes.add(rec)
	s.ids.add(slot)
	s.pushes++
	s.due.push(key{dueTime(m.Due, m.Delay, now), s.pushes}, slot)
	return nil
}

// replaceLocked gives a message that waits, or is in flight where m says so, the content and the due
// time of a new one, and a new place in the push order. Its packed id is in s.packed.
func (s *store) replaceLocked(slot uint32, m *backend.Message, now int64) error {
	n := s.nodes.at(slot)
	switch {
	case n.state() == dead:
		return backend.Duplicate(backend.StateDead)
	case n.state() == leased && !m.AfterInFlight:
		return backend.ErrInFlight
	}
	if m.MaxWait > 0 {
		var waiting map[string]string
		if n.state() == scheduled || n.replaced() {
			_, waiting, _ = getRecord(s.arena.bytes(n.rec()))
		}
		bounded := m.Bounded(waiting, moment(now))
		m = &bounded
	}
	if err := s.setContentLocked(slot, m.Headers, m.Body, now); err != nil {
		return err
	}
	n.setAttempt(0)
	s.pushes++
	k := key{dueTime(m.Due, m.Delay, now), s.pushes}
	if n.state() == leased {
		s.held.set(slot, k)
	} else {
		s.due.move(slot, k)
	}
	return nil
}

func (s *store) setHeadersLocked(slot uint32, headers map[string]string, now int64) error {
	_, _, body := getRecord(s.arena.bytes(s.nodes.at(slot).rec()))
	return s.setContentLocked(slot, headers, body, now)
}

// setContentLocked moves a message to a cell that is as large as its new content needs. Its packed
// id is in s.packed.
func (s *store) setContentLocked(slot uint32, headers map[string]string, body []byte, now int64) error {
	n := s.nodes.at(slot)
	old := s.arena.bytes(n.rec())
	size := recordSize(s.packed, headers, body)
	growth := int64(cellSize(size)) - int64(len(old))
	if growth > 0 && s.outOfBytesLocked(now, growth) {
		return backend.ErrFull
	}
	s.arena.remove(n.rec())
	rec := s.arena.add(size)
	putRecord(s.arena.bytes(rec), s.packed, headers, body)
	n.setRec(rec)
	s.bytes += growth
	return nil
}

// fullLocked reports whether there is no room for a message with a record of so many bytes. It
// first frees the room of windows that have ended.
func (s *store) fullLocked(m *backend.Message, size int, now int64) bool {
	if l := s.limits.messages; l > 0 && int(s.nodes.live) >= l {
		return true
	}
	if s.limits.bytes == 0 {
		return false // and a push without a limit does not pay for the sizes of cells
	}
	room := int64(cellSize(size))
	if m.UniqueFor > 0 {
		room += int64(cellSize(len(s.packed)))
	}
	return s.outOfBytesLocked(now, room)
}

func (s *store) outOfBytesLocked(now, room int64) bool {
	full := func() bool { return s.limits.bytes > 0 && s.bytes+s.windows.size()+room > s.limits.bytes }
	if !full() {
		return false
	}
	s.forgetWindowsLocked(now, math.MaxInt)
	return full()
}

func dueTime(due time.Time, delay time.Duration, now int64) int64 {
	if !due.IsZero() {
		return due.UnixNano()
	}
	return after(now, delay)
}

// after adds, and stops at the largest time instead of overflowing.
func after(now int64, d time.Duration) int64 {
	if t := now + int64(d); d <= 0 || t > now {
		return t
	}
	return math.MaxInt64
}

// readyLocked reports whether a message may be handed out.
func (s *store) readyLocked(now int64) bool {
	if s.due.len() == 0 || s.paused > now {
		return false
	}
	k, _ := s.due.head()
	return k.when <= now
}

// takeLocked leases up to limit due messages.
func (s *store) takeLocked(now int64, limit int, lease time.Duration) []backend.Delivery {
	if !s.readyLocked(now) {
		return nil
	}
	n := s.due.countUntil(now, limit)
	ds := make([]backend.Delivery, n)
	for i := range ds {
		ds[i] = s.leaseLocked(after(now, lease))
		if ds[i].Attempt == 1 {
			s.activity.Lateness.Add(time.Duration(now - ds[i].Due.UnixNano()))
		}
	}
	return ds
}

// leaseLocked moves the head of due to leases.
func (s *store) leaseLocked(until int64) backend.Delivery {
	k, slot := s.due.head()
	s.due.remove(slot)
	s.held.add(slot, k)
	s.tokens++
	s.leases.push(key{until, s.tokens}, slot)
	n := s.nodes.at(slot)
	n.enter(leased)
	n.setAttempt(n.attempt() + 1)
	id, headers, body := getRecord(s.arena.bytes(n.rec()))
	return backend.Delivery{
		ID: id, Headers: headers, Body: body,
		Due:     moment(k.when),
		Attempt: n.attempt(),
		Token:   backend.Token{Hi: s.epoch, Lo: s.tokens},
		Until:   moment(until),
	}
}

func moment(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// giveBackLocked moves a message in flight to due.
func (s *store) giveBackLocked(slot uint32, k key) {
	s.endLeaseLocked(slot)
	s.nodes.at(slot).enter(scheduled)
	s.due.push(k, slot)
}

func (s *store) endLeaseLocked(slot uint32) {
	s.leases.remove(slot)
	s.held.remove(slot)
}

// heldLocked finds the message that a lease still holds.
func (s *store) heldLocked(l backend.Lease) (uint32, error) {
	slot, ok := s.findLocked(l.ID)
	if !ok || s.nodes.at(slot).state() != leased || l.Token != (backend.Token{Hi: s.epoch, Lo: s.leases.key(slot).seq}) {
		return none, backend.ErrLeaseLost
	}
	return slot, nil
}

func (s *store) findLocked(id string) (uint32, bool) {
	s.packed = record.PackID(s.packed[:0], id)
	return s.ids.find(s.packed)
}

// waitingLocked finds a message that can still be cancelled or moved.
func (s *store) waitingLocked(id string) (uint32, error) {
	slot, ok := s.findLocked(id)
	switch {
	case !ok || s.nodes.at(slot).state() == dead:
		return none, backend.ErrNotFound
	case s.nodes.at(slot).state() == leased:
		return none, backend.ErrInFlight
	}
	return slot, nil
}

// deadLocked finds a dead letter.
func (s *store) deadLocked(id string) (uint32, error) {
	slot, ok := s.findLocked(id)
	if !ok || s.nodes.at(slot).state() != dead {
		return none, backend.ErrNotFound
	}
	return slot, nil
}

// forgetLocked frees a message that is in no heap and no list any more.
func (s *store) forgetLocked(slot uint32) {
	s.ids.remove(slot)
	rec := s.nodes.at(slot).rec()
	s.bytes -= int64(len(s.arena.bytes(rec)))
	s.arena.remove(rec)
	s.nodes.remove(slot)
	if s.nodes.live == 0 {
		s.held.shrink()
	}
}

// isEmpty reports whether the store holds no message, no id that UniqueFor keeps, and no pause.
func (s *store) isEmpty() bool {
	messages, bytes := s.usage()
	now := s.enter()
	defer s.mu.Unlock()
	return messages == 0 && bytes == 0 && s.paused <= now
}

func (s *store) usage() (messages int, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetWindowsLocked(s.clock.Now().UnixNano(), math.MaxInt)
	return int(s.nodes.live), s.bytes + s.windows.size()
}
