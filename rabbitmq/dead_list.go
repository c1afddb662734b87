package rabbitmq

import (
	"context"
	"slices"
	"sync"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

const (
	// pageBytes bounds a page, unless its only letter is larger, and the letters that are kept for
	// the pages after it.
	pageBytes = 32 << 20

	// keepPages is how long the letters read for one page are kept for the pages after it.
	keepPages = 5 * time.Second
)

// ListDead is as in backend.Queue. The cursor is the time of death and the id of the last
// letter. While it reads, other calls for the queue's dead letters wait. A page after the first
// comes from the letters read before, if there are still as many.
func (q *queue) ListDead(ctx context.Context, cursor string, limit int) (ls []backend.DeadLetter, next string, err error) {
	if err := q.open(ctx); err != nil {
		return nil, "", err
	}
	after, err := parseCursor(cursor)
	if err != nil {
		return nil, "", err
	}
	type page struct {
		ls   []backend.DeadLetter
		next string
	}
	got, err := within(ctx, func() (page, error) {
		ls, next, err := q.listAfter(ctx, after, limit)
		return page{ls, next}, err
	})
	return got.ls, got.next, err
}

// ListDeadIDs is as in backend.Queue. The broker passes on no message without its contents.
func (q *queue) ListDeadIDs(ctx context.Context, cursor string, limit int) ([]string, string, error) {
	return backend.DeadIDs(q.ListDead(ctx, cursor, limit))
}

func (q *queue) listAfter(ctx context.Context, after string, limit int) (ls []backend.DeadLetter, next string, err error) {
	if l := q.listing.take(after); l != nil && len(l.all) > 0 && (len(l.all) > limit || !l.cut) {
		if n, err := q.countDead(ctx); err == nil && n == l.count {
			ls, next = q.listing.page(l, limit)
			return ls, next, nil
		}
	}
	l := &letters{after: after, read: time.Now()}
	err = q.readDead(ctx, allDead, l.add, func(_ *amqp.Channel, count int) (acked int) {
		l.count = count
		return 0
	})
	if err != nil {
		return nil, "", err
	}
	l.sort()
	ls, next = q.listing.page(l, limit)
	return ls, next, nil
}

// countDead counts the dead letters that no call is reading.
func (q *queue) countDead(ctx context.Context) (int, error) {
	s, err := q.sub.session(ctx)
	if err != nil {
		return 0, err
	}
	return length(s.conn.Connection, q.names.dead(q.name))
}

// letters are dead letters beyond a cursor.
type letters struct {
	after string
	all   []*deadLetter
	bytes int
	cut   bool   // there are more
	last  string // cursor beyond which letters are left out; empty for none
	count int    // of all dead letters
	read  time.Time
}

// add takes a letter. It leaves out the latest deaths beyond twice pageBytes.
func (l *letters) add(d *deadLetter) {
	c := cursorOf(d)
	if c <= l.after {
		return
	}
	if l.last != "" && c > l.last {
		l.cut = true
		return
	}
	l.all = append(l.all, d)
	if l.bytes += sizeOf(d); l.bytes > 2*pageBytes {
		l.sort()
	}
}

// sort puts the letters in order and leaves out those beyond pageBytes.
func (l *letters) sort() {
	slices.SortStableFunc(l.all, byDeath)
	l.bytes = 0
	for i, d := range l.all {
		if l.bytes += sizeOf(d); l.bytes > pageBytes && i > 0 {
			l.bytes -= sizeOf(d)
			clear(l.all[i:])
			l.all, l.cut, l.last = l.all[:i], true, cursorOf(l.all[i-1])
			return
		}
	}
}

// sizeOf returns roughly how much memory a letter takes.
func sizeOf(d *deadLetter) int {
	n := len(d.body) + len(d.Reason) + len(d.id) + 200
	for k, v := range d.headers {
		n += len(k) + len(v)
	}
	return n
}

// A listing keeps dead letters for the page after the last one. It is safe for concurrent use.
type listing struct {
	mu    sync.Mutex
	rest  *letters
	timer *time.Timer // forgets it
}

// take removes the letters that are kept, and returns them if they follow that cursor.
func (s *listing) take(after string) *letters {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.rest
	if l == nil || l.after != after || after == "" || time.Since(l.read) > keepPages {
		return nil
	}
	s.rest = nil
	return l
}

func (s *listing) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = nil
}

// page returns the first letters, and keeps the others.
func (s *listing) page(l *letters, limit int) (ls []backend.DeadLetter, next string) {
	n := min(limit, len(l.all))
	for _, d := range l.all[:n] {
		ls = append(ls, d.DeadLetter)
	}
	if n == len(l.all) && !l.cut {
		return ls, ""
	}
	next = cursorOf(l.all[n-1])
	s.mu.Lock()
	defer s.mu.Unlock()
	l.all, l.after = l.all[n:], next
	s.rest = l
	if s.timer == nil {
		s.timer = time.AfterFunc(keepPages, s.forget)
	} else {
		s.timer.Reset(keepPages)
	}
	return ls, next
}

// close stops the timer.
func (s *listing) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rest = nil; s.timer != nil {
		s.timer.Stop()
	}
}
