package load

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	interop "github.com/delayq/delayq/interop/redisson"
)

// Java is an RDelayedQueue of real Redisson, in a JVM with one client, on a server of its own. The
// delayed queue has no settings to tune. A value that is taken is gone, without an acknowledgement.
type Java struct {
	Redis
	*interop.Queue
	JVM *interop.JVM
}

// OpenJava starts a release of Redisson.
func OpenJava(tb testing.TB, release string) Java {
	tb.Helper()
	server := OwnRedis(tb)
	jvm := interop.Start(tb, release, server.Addr())
	return Java{server, jvm.Queue("bench", interop.WithCodec(interop.String)), jvm}
}

// Offer offers messages of the usual size, and returns how long that took.
func (j Java) Offer(tb testing.TB, l interop.Load) time.Duration {
	tb.Helper()
	l.Size = BodySize
	took, err := j.OfferMany(context.Background(), l)
	Must(tb, err)
	return took
}

// OfferPlan offers at a pace, with the delays of a plan but in another order. A due time, which
// Java cuts to milliseconds, counts from the moment of the push.
func (j Java) OfferPlan(tb testing.TB, threads int) (n int) {
	tb.Helper()
	n = len(Plan(time.Now()).Due)
	j.Offer(tb, interop.Load{
		Count: n, MinDelay: LeastDelay(), MaxDelay: 3 * LeastDelay(), Threads: threads,
		Rate: int(time.Second / Interval), Prefix: "late", Stamped: true,
	})
	return n
}

// Workers has threads take messages, until stop.
func (j Java) Workers(tb testing.TB) (c *interop.Consumer, stop func()) {
	tb.Helper()
	c, err := j.Consume(context.Background(), Workers)
	Must(tb, err)
	return c, func() { Must(tb, c.Stop(context.Background())) }
}

// LateInJava returns how late values came, until there are n of them or the deadline has passed.
func LateInJava(
	tb testing.TB, c *interop.Consumer, n int, deadline time.Time, due func(text string) (time.Time, bool),
) (late []time.Duration) {
	tb.Helper()
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	for len(late) < n {
		r, err := c.Next(ctx)
		if ctx.Err() != nil {
			break
		}
		Must(tb, err)
		Must(tb, r.Err)
		text, _ := r.Value.(string)
		if d, ok := due(text); ok {
			late = append(late, r.At.Sub(d))
		}
	}
	return late
}

// Stamp reads when a stamped value is due.
func Stamp(text string) (due time.Time, ok bool) {
	_, ms, _ := strings.Cut(strings.TrimRight(text, "."), "@")
	n, err := strconv.ParseInt(ms, 10, 64)
	return time.UnixMilli(n), err == nil
}
