package interop

import (
	"context"
	"time"
)

// Load is many offers.
type Load struct {
	Count              int           // how many
	Size               int           // of a value, in characters; a shorter one is padded with dots
	MinDelay, MaxDelay time.Duration // delays are spread evenly between the two
	Due                time.Time     // all are due then instead, within a few milliseconds
	// offers a second, if the threads can; 0 is as many as they can
	Rate    int
	Threads int    // 0 is one
	Prefix  string // values are prefix-0, prefix-1 and so on
	// values go on with @ and when they are due, in ms, or a little earlier
	Stamped bool
}

// OfferMany makes many offers as fast as the threads can, and returns how long they took.
func (q *Queue) OfferMany(ctx context.Context, l Load) (time.Duration, error) {
	nanos, err := result[int64](q.ask(ctx, "offerMany", int64(l.Count), int64(l.Size),
		millis(l.MinDelay), millis(l.MaxDelay), int64(max(l.Threads, 1)), l.Prefix, l.Stamped, l.dueMillis(), int64(l.Rate)))
	return time.Duration(nanos), err
}

// dueMillis is 0 where delays are given.
func (l Load) dueMillis() int64 {
	if l.Due.IsZero() {
		return 0
	}
	return l.Due.UnixMilli()
}
