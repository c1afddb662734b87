package peers

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq/bench/internal/load"
	"github.com/delayq/delayq/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// A redisServer is a load.Redis as a peer's server.
type redisServer struct{ load.Redis }

func ownRedis(tb testing.TB) redisServer {
	tb.Helper()
	return redisServer{load.OwnRedis(tb)}
}

func (s redisServer) clear(tb testing.TB) {
	tb.Helper()
	load.Must(tb, s.Control.FlushAll(context.Background()).Err())
}

func (s redisServer) weigh(tb testing.TB) weight { return weight{memory: s.Memory(tb)} }

func (s redisServer) spent(tb testing.TB) time.Duration { return s.Spent(tb) }

// trips counts how often the server has read from a connection, but for this call: commands that a
// script runs are none.
func (s redisServer) trips(tb testing.TB) float64 {
	tb.Helper()
	return s.Figure(tb, "stats", "total_reads_processed") - 1
}

// say prints the compared versions above the results, in benchstat's format: a server, and the
// modules of the clients.
func say(b *testing.B, server, version string, modules ...string) {
	b.Helper()
	file, err := os.ReadFile("go.mod")
	load.Must(b, err)
	configure(server, version)
	for required := range strings.Lines(string(file)) {
		words := strings.Fields(required)
		if len(words) == 2 && slices.Contains(modules, words[0]) {
			configure(words[0], words[1])
		}
	}
}

func configure(key string, value any) { _, _ = fmt.Fprintf(os.Stdout, "%s: %v\n", key, value) }

var described sync.Once

// describe prints the machine and the versions once.
func describe(b *testing.B) {
	b.Helper()
	described.Do(func() {
		configure("cores", runtime.NumCPU())
		if load, err := os.ReadFile("/proc/loadavg"); err == nil {
			configure("load", strings.Join(strings.Fields(string(load))[:3], " "))
		}
		say(b, "redis", redisVersion(b),
			"github.com/hibiken/asynq", "github.com/redis/go-redis/v9", "github.com/beanstalkd/go-beanstalk",
			"github.com/nats-io/nats-server/v2", "github.com/nats-io/nats.go",
			"github.com/riverqueue/river", "github.com/vgarvardt/gue/v5", "github.com/jackc/pgx/v5", "maragu.dev/goqite", "github.com/mikestefanello/backlite", "github.com/ncruces/go-sqlite3", "github.com/rabbitmq/amqp091-go")
		if binary, err := testenv.FindBeanstalkd(); err == nil {
			configure("beanstalkd", versionOf(binary, "-v"))
		}
		if bin, err := testenv.FindPostgres(); err == nil {
			configure("postgres", versionOf(filepath.Join(bin, "postgres"), "-V"))
		}
		configure("redisson", redissonRelease)
	})
}

func redisVersion(b *testing.B) string {
	b.Helper()
	info, err := load.OwnRedis(b).Control.InfoMap(context.Background(), "server").Result()
	load.Must(b, err)
	return info["Server"]["redis_version"]
}

// schemaOf reads the statements that a module has its users run.
func schemaOf(tb testing.TB, module, file string) string {
	tb.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	load.Must(tb, err)
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), file))
	load.Must(tb, err)
	return string(text)
}

func versionOf(binary, flag string) string {
	said, err := exec.Command(binary, flag).CombinedOutput()
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(said))
}
