package load

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/testenv"
)

// Redis is a server that is empty and does nothing else. It has no disk to wait for.
type Redis struct {
	*testenv.RedisServer
	Control *redis.Client // for calls outside the load
}

// OwnRedis starts a server, which ends with the benchmark.
func OwnRedis(tb testing.TB) Redis {
	tb.Helper()
	s := testenv.Redis(tb, testenv.Directive("appendonly", "no"))
	return Redis{s, s.Client(tb)}
}

// Memory is the server's used_memory, in bytes.
func (s Redis) Memory(tb testing.TB) int64 {
	tb.Helper()
	return int64(s.Figure(tb, "memory", "used_memory"))
}

// Spent is the processor time of the server so far.
func (s Redis) Spent(tb testing.TB) time.Duration {
	tb.Helper()
	seconds := s.Figure(tb, "cpu", "used_cpu_user") + s.Figure(tb, "cpu", "used_cpu_sys")
	return time.Duration(seconds * float64(time.Second))
}

// Figure returns a number of INFO.
func (s Redis) Figure(tb testing.TB, section, name string) float64 {
	tb.Helper()
	info, err := s.Control.InfoMap(context.Background(), section).Result()
	Must(tb, err)
	for _, figures := range info {
		if text, ok := figures[name]; ok {
			n, err := strconv.ParseFloat(text, 64)
			Must(tb, err)
			return n
		}
	}
	tb.Fatalf("the server does not tell its %s", name)
	return 0
}
