package peers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/testenv"
	interop "github.com/delayq/delayq/interop/redisson"
)

const redissonRelease = "4.7.0"

func lacksJava() error {
	_, java := testenv.Java()
	_, maven := testenv.Maven()
	return errors.Join(java, maven)
}

// redissonJava is an RDelayedQueue of real Redisson, in a JVM with one client. The delayed queue
// has no settings to tune. Messages are pushed, taken and timed in Java, by threads where others
// have goroutines; a value that is taken is gone, without an acknowledgement.
type redissonJava struct {
	redisServer
	queue *interop.Queue
}

func openRedissonJava(tb testing.TB) system {
	tb.Helper()
	server := ownRedis(tb)
	jvm := interop.Start(tb, redissonRelease, server.Addr())
	return redissonJava{server, jvm.Queue("bench", interop.WithCodec(interop.String))}
}

func (s redissonJava) push(context.Context, message) error { return errors.ErrUnsupported }

func (s redissonJava) pushAll(context.Context, []message) error { return errors.ErrUnsupported }

func (s redissonJava) consume(tb testing.TB, _ func([]byte)) (stop func()) {
	tb.Fatal(errors.ErrUnsupported)
	return nil
}

// left reads the keys of both its queues.
func (s redissonJava) left(ctx context.Context) (int64, error) {
	waiting, err := s.client.ZCard(ctx, "redisson_delay_queue_timeout:{bench}").Result()
	if err != nil {
		return 0, fmt.Errorf("counting values: %w", err)
	}
	ready, err := s.client.LLen(ctx, "bench").Result()
	return waiting + ready, err
}

func (s redissonJava) pushMany(tb testing.TB, n, threads int) {
	tb.Helper()
	s.offer(tb, interop.Load{Count: n, MinDelay: time.Hour, MaxDelay: 24 * time.Hour, Threads: threads, Prefix: "push"})
}

func (s redissonJava) offer(tb testing.TB, l interop.Load) {
	tb.Helper()
	l.Size = bodySize
	_, err := s.queue.OfferMany(context.Background(), l)
	must(tb, err)
}

// drainMany gives up when Java has had its time, and counts the messages that have come until then.
func (s redissonJava) drainMany(tb testing.TB, n int, due time.Time) (_ burst, inTime bool) {
	tb.Helper()
	s.offer(tb, interop.Load{Count: n, Due: due, Threads: 64, Prefix: "burst"})
	if time.Now().After(due) {
		return burst{}, false
	}
	late := s.take(tb, n, javaPatience, due, func(string) (time.Time, bool) { return due, true })
	b := burst{outcome: outcome{late: late}, unfinished: n - len(late)}
	if len(late) > 0 {
		b.timed(due, due.Add(slices.Min(late)), due.Add(slices.Max(late)))
	}
	return b, true
}

// javaPatience bounds a burst, of which the whole would take minutes.
const javaPatience = 6 * time.Second

// take returns how late values came that Java takes from now on, until there are n of them, or
// until a time after an instant has passed.
func (s redissonJava) take(
	tb testing.TB, n int, patience time.Duration, after time.Time, due func(text string) (time.Time, bool),
) (late []time.Duration) {
	tb.Helper()
	consumer, err := s.queue.Consume(context.Background(), workers)
	must(tb, err)
	defer func() { must(tb, consumer.Stop(context.Background())) }()
	ctx, cancel := context.WithDeadline(context.Background(), after.Add(patience))
	defer cancel()
	for len(late) < n {
		r, err := consumer.Next(ctx)
		if ctx.Err() != nil {
			break
		}
		must(tb, err)
		must(tb, r.Err)
		text, _ := r.Value.(string)
		if d, ok := due(text); ok {
			late = append(late, r.At.Sub(d))
		}
	}
	return late
}

// lateMany offers at a pace, with the delays of the plan but in another order. A due time, which
// Java cuts to milliseconds, counts from the moment of the push. There are enough threads to keep
// the pace.
func (s redissonJava) lateMany(tb testing.TB) outcome {
	tb.Helper()
	p := plan(time.Now())
	n, least := len(p.due), leastDelay()
	offered := make(chan error, 1)
	go func() {
		_, err := s.queue.OfferMany(context.Background(), interop.Load{
			Count: n, Size: bodySize, MinDelay: least, MaxDelay: 3 * least, Threads: latePushers,
			Rate: int(time.Second / lateInterval), Prefix: "late", Stamped: true,
		})
		offered <- err
	}()
	late := s.take(tb, n, patience, p.due[n-1], stamp)
	must(tb, <-offered)
	return outcome{late: late, lost: n - len(late)}
}

// stamp reads when a stamped value is due.
func stamp(text string) (time.Time, bool) {
	_, ms, _ := strings.Cut(strings.TrimRight(text, "."), "@")
	n, err := strconv.ParseInt(ms, 10, 64)
	return time.UnixMilli(n), err == nil
}

// cancelSome cancels no more than 30, for each of them is looked for from one end.
func (s redissonJava) cancelSome(tb testing.TB, pending, n int) time.Duration {
	tb.Helper()
	s.offer(tb, interop.Load{Count: pending, MinDelay: time.Hour, MaxDelay: 24 * time.Hour, Threads: 64, Prefix: "cancel"})
	n = min(n, 30)
	start := time.Now()
	for i := range n {
		value := fmt.Sprint("cancel-", i*(pending/n))
		value += strings.Repeat(".", bodySize-len(value))
		removed, err := s.queue.Remove(context.Background(), value)
		must(tb, err)
		if !removed {
			tb.Fatalf("Redisson does not find %s", value)
		}
	}
	return time.Since(start) / time.Duration(n)
}
