package bench

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// BenchmarkPendingBytes measures what a pending message of 100 bytes, with an id that the library
// made, costs the server, in used_memory per message; goal for zsetpoll 330 B/pending.
func BenchmarkPendingBytes(b *testing.B) {
	overRedis(b, func(b *testing.B, t target) {
		server := ownRedis(b)
		store, _ := t.connect(b, server)
		q, client := open(b, store, "bench"), server.Client(b)
		pending := t.size(100_000, 10_000)
		due := farAhead(time.Now())
		cancelAll(b, q, fill(b, q, 1, due)) // loads the scripts, which do not count
		before := usedMemory(b, client)
		fill(b, q, pending, due)
		b.ReportMetric(float64(usedMemory(b, client)-before)/float64(pending), "B/pending")
		b.ReportMetric(0, "ns/op") // means nothing here
	})
}

func usedMemory(b *testing.B, c *redis.Client) int {
	b.Helper()
	info, err := c.Info(context.Background(), "memory").Result()
	must(b, err)
	_, after, _ := strings.Cut(info, "\r\nused_memory:")
	digits, _, _ := strings.Cut(after, "\r\n")
	n, err := strconv.Atoi(digits)
	must(b, err)
	return n
}
