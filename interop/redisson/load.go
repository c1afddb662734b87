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
	Threads            int           // 0 is one
	Prefix             string        // values are prefix-0, prefix-1 and so on
}

// OfferMany makes many offers as fast as the threads can, and returns how long they took.
func (q *Queue) OfferMany(ctx context.Context, l Load) (time.Duration, error) {
	nanos, err := result[int64](q.ask(ctx, "offerMany", int64(l.Count), int64(l.Size),
		millis(l.MinDelay), millis(l.MaxDelay), int64(max(l.Threads, 1)), l.Prefix))
	return time.Duration(nanos), err
}
