package peers

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// A redisServer is empty and does nothing else. It has no disk to wait for.
type redisServer struct {
	*testenv.RedisServer
	client *redis.Client
}

func ownRedis(b *testing.B) redisServer {
	b.Helper()
	s := testenv.Redis(b, testenv.Directive("appendonly", "no"))
	return redisServer{s, s.Client(b)}
}

func (s redisServer) clear(b *testing.B) {
	b.Helper()
	must(b, s.client.FlushAll(context.Background()).Err())
}

// say puts what is compared above the results, as benchstat reads it: a server, and the modules of the clients.
func say(b *testing.B, server, version string, modules ...string) {
	b.Helper()
	file, err := os.ReadFile("go.mod")
	must(b, err)
	said := fmt.Sprintf("%s: %s\n", server, version)
	for required := range strings.Lines(string(file)) {
		words := strings.Fields(required)
		if len(words) == 2 && slices.Contains(modules, words[0]) {
			said += fmt.Sprintf("%s: %s\n", words[0], words[1])
		}
	}
	_, _ = fmt.Fprint(os.Stdout, said)
}

func sayRedis(b *testing.B) {
	b.Helper()
	info, err := ownRedis(b).client.InfoMap(context.Background(), "server").Result()
	must(b, err)
	say(b, "redis", info["Server"]["redis_version"], "github.com/hibiken/asynq", "github.com/redis/go-redis/v9")
}
