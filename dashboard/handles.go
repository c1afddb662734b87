package dashboard

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/delayq/delayq"
)

const (
	openLimit  = 10 * time.Second
	namesFor   = 5 * time.Second  // a list of names is used for that long
	partFor    = 30 * time.Second // and one that lacks some, whose sources may be slow to fail again
	handlesFor = 5 * time.Minute  // a handle that nobody uses stays open for that long
)

var errNoQueue = errors.New("there is no such queue")

// handles keeps the queues open that somebody looks at.
type handles struct {
	source Source
	list   flight[listing]

	mu     sync.Mutex
	last   listing
	open   map[string]*handle
	closed bool
}

// listing is what the source has listed.
type listing struct {
	names []string // sorted
	lacks error    // why there are more queues than these
	at    time.Time
}

func (l listing) fresh() bool {
	if l.lacks != nil {
		return time.Since(l.at) < partFor
	}
	return !l.at.IsZero() && time.Since(l.at) < namesFor
}

// handle is a queue that is being opened, or open, or failed to open.
type handle struct {
	opening flight[delayq.Queue]
	queue   delayq.Queue // nil until it is open
	users   int
	used    time.Time
}

func newHandles(s Source) *handles { return &handles{source: s, open: make(map[string]*handle)} }

// all returns the names of all queues. They may be some seconds old.
func (hs *handles) all(ctx context.Context) (listing, error) {
	hs.mu.Lock()
	last := hs.last
	hs.mu.Unlock()
	if last.fresh() {
		return last, nil
	}
	return hs.list.do(ctx, openLimit, func(ctx context.Context) (listing, error) {
		names, err := hs.source.List(ctx)
		if err != nil && len(names) == 0 {
			return listing{}, err
		}
		names = slices.Clone(names)
		slices.Sort(names)
		hs.mu.Lock()
		defer hs.mu.Unlock()
		hs.last = listing{names, err, time.Now()}
		return hs.last, nil
	})
}

// has returns an error for a name that the source does not list: errNoQueue, or why the source
// cannot tell.
func (hs *handles) has(ctx context.Context, name string) error {
	l, err := hs.all(ctx)
	if err != nil {
		return err
	}
	if _, found := slices.BinarySearch(l.names, name); found {
		return nil
	}
	if l.lacks != nil {
		return l.lacks
	}
	return errNoQueue
}

// use returns an open queue, and what the caller calls when it is done with it. Only names that the
// source lists are opened: opening makes a queue on some stores.
func (hs *handles) use(ctx context.Context, name string) (delayq.Queue, func(), error) {
	if err := hs.has(ctx, name); err != nil {
		return nil, nil, err
	}
	hs.mu.Lock()
	if hs.closed {
		hs.mu.Unlock()
		return nil, nil, delayq.ErrClosed
	}
	stale := hs.staleLocked()
	h := hs.open[name]
	if h == nil {
		h = &handle{}
		hs.open[name] = h
	}
	h.users++
	h.used = time.Now()
	q := h.queue
	hs.mu.Unlock()
	var err error
	for _, old := range stale {
		go func() { _ = old.Close() }() // which may wait for its store
	}
	if q == nil {
		q, err = h.opening.do(ctx, openLimit, func(ctx context.Context) (delayq.Queue, error) { return hs.opened(ctx, h, name) })
	}
	if err != nil {
		hs.release(h)
		return nil, nil, err
	}
	return q, func() { hs.release(h) }, nil
}

func (hs *handles) opened(ctx context.Context, h *handle, name string) (delayq.Queue, error) {
	hs.mu.Lock()
	q := h.queue // another caller was faster
	hs.mu.Unlock()
	if q != nil {
		return q, nil
	}
	q, err := hs.source.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.closed || hs.open[name] != h {
		go func() { _ = q.Close() }()
		return nil, delayq.ErrClosed
	}
	h.queue = q
	return q, nil
}

func (hs *handles) release(h *handle) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h.users--
	h.used = time.Now()
}

// staleLocked takes the handles out that nobody has used for some time.
func (hs *handles) staleLocked() (stale []delayq.Queue) {
	for name, h := range hs.open {
		if h.users == 0 && time.Since(h.used) > handlesFor {
			delete(hs.open, name)
			if h.queue != nil {
				stale = append(stale, h.queue)
			}
		}
	}
	return stale
}

func (hs *handles) close() error {
	hs.mu.Lock()
	hs.closed = true
	var open []delayq.Queue
	for _, h := range hs.open {
		if h.queue != nil {
			open = append(open, h.queue)
		}
	}
	clear(hs.open)
	hs.mu.Unlock()
	var err error
	for _, q := range open {
		err = errors.Join(err, q.Close())
	}
	return err
}
