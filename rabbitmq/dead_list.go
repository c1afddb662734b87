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
	// pageBytes is how much of dead letters one page holds at most, but for a single large one, and how much is kept for the pages after it.
	pageBytes = 32 << 20

	// keepPages is for how long what was read for one page serves the pages after it.
	keepPages = 5 * time.Second
)

// ListDead is as in backend.Queue. The cursor is the time of death and the id of the last one. While it reads, others
// wait that list, redrive or delete dead letters of the queue. A page after the first comes from what was read for the one before, if the number of
// dead letters is the same.
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
	if l := q.listing.take(after); l != nil && len(l.letters) > 0 && (len(l.letters) > limit || !l.cut) {
		if n, err := q.countDead(ctx); err == nil && n == l.count {
			ls, next = q.listing.page(l, limit)
			return ls, next, nil
		}
	}
	l := &letters{after: after, read: time.Now()}
	err = q.exhume(ctx, l.add, func(_ *amqp.Channel, count int) (acked int) {
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

// countDead counts the dead letters that nobody has in hand.
func (q *queue) countDead(ctx context.Context) (int, error) {
	s, err := q.sub.session(ctx)
	if err != nil {
		return 0, err
	}
	return length(s.conn.Connection, q.names.dead(q.name))
}

// letters are dead letters beyond a cursor.
type letters struct {
	after   string
	letters []grave
	bytes   int
	cut     bool   // there are more
	last    string // beyond this they are left out; empty for none
	count   int    // of all that there were
	read    time.Time
}

// add takes a letter, and leaves out the latest deaths where it would be too much.
func (l *letters) add(g grave) {
	c := cursorOf(g)
	if c <= l.after {
		return
	}
	if l.last != "" && c > l.last {
		l.cut = true
		return
	}
	l.letters = append(l.letters, g)
	if l.bytes += sizeOf(g); l.bytes > 2*pageBytes {
		l.sort()
	}
}

// sort puts the letters in order and leaves out what is beyond pageBytes.
func (l *letters) sort() {
	slices.SortStableFunc(l.letters, byDeath)
	l.bytes = 0
	for i, g := range l.letters {
		if l.bytes += sizeOf(g); l.bytes > pageBytes && i > 0 {
			l.bytes -= sizeOf(g)
			clear(l.letters[i:])
			l.letters, l.cut, l.last = l.letters[:i], true, cursorOf(l.letters[i-1])
			return
		}
	}
}

// sizeOf is roughly what a letter takes.
func sizeOf(g grave) int {
	n := len(g.Body) + len(g.Reason) + len(g.DeadLetter.ID) + 200
	for k, v := range g.DeadLetter.Headers {
		n += len(k) + len(v)
	}
	return n
}

// A listing is what is kept of dead letters for the page after the last. It is safe for concurrent use.
type listing struct {
	mu    sync.Mutex
	rest  *letters
	timer *time.Timer // forgets it
}

// take takes out what is kept, if it is for that cursor.
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
	n := min(limit, len(l.letters))
	for _, g := range l.letters[:n] {
		ls = append(ls, g.DeadLetter)
	}
	if n == len(l.letters) && !l.cut {
		return ls, ""
	}
	next = cursorOf(l.letters[n-1])
	s.mu.Lock()
	defer s.mu.Unlock()
	l.letters, l.after = l.letters[n:], next
	s.rest = l
	if s.timer == nil {
		s.timer = time.AfterFunc(keepPages, s.forget)
	} else {
		s.timer.Reset(keepPages)
	}
	return ls, next
}

// close forgets all for good.
func (s *listing) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rest = nil; s.timer != nil {
		s.timer.Stop()
	}
}
