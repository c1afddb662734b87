package redistest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

// The variables that make the test binary a worker that keeps its leases until it is killed.
const (
	workerURL   = "DELAYQ_TEST_WORKER_URL"
	workerMode  = "DELAYQ_TEST_WORKER_MODE"
	workerQueue = "DELAYQ_TEST_WORKER_QUEUE"
	workerLease = "DELAYQ_TEST_WORKER_LEASE"
)

// Main runs a package's tests, or the worker that KillWorker starts. open returns a backend in a
// mode that the tests name.
func Main(m *testing.M, open func(mode string, client redis.UniversalClient) backend.Backend) {
	if os.Getenv(workerURL) == "" {
		testenv.Main(m)
		return
	}
	fmt.Fprintln(os.Stderr, "worker:", work(open))
	os.Exit(1)
}

func work(open func(string, redis.UniversalClient) backend.Backend) error {
	opt, err := redis.ParseURL(os.Getenv(workerURL))
	if err != nil {
		return err
	}
	lease, err := time.ParseDuration(os.Getenv(workerLease))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	q, err := open(os.Getenv(workerMode), redis.NewClient(opt)).Open(ctx, os.Getenv(workerQueue), Silent())
	if err != nil {
		return err
	}
	for {
		ds, err := q.Receive(ctx, 100, lease)
		if err != nil {
			return err
		}
		for _, d := range ds {
			if _, err := fmt.Fprintf(os.Stdout, "%q %d %d\n", d.Body, d.Attempt, d.Until.UnixMilli()); err != nil {
				return err
			}
		}
	}
}

// KillWorker starts a worker process and kills it once it holds the n messages that push pushes. It
// returns when their leases end, by their bodies.
func KillWorker(t testing.TB, server *testenv.RedisServer, mode, queue string, lease time.Duration, push func(), n int) map[string]time.Time {
	t.Helper()
	worker := exec.CommandContext(t.Context(), os.Args[0])
	worker.Stderr = os.Stderr
	worker.Env = append(os.Environ(), workerURL+"="+server.URL(), workerMode+"="+mode, workerQueue+"="+queue, workerLease+"="+lease.String())
	out, err := worker.StdoutPipe()
	Must(t, err, worker.Start())
	push()
	until := make(map[string]time.Time)
	for lines := bufio.NewScanner(out); len(until) < n && lines.Scan(); {
		var body string
		var attempt int
		var ms int64
		if _, err := fmt.Sscanf(lines.Text(), "%q %d %d", &body, &attempt, &ms); err != nil || attempt != 1 {
			t.Fatalf("the worker says %q", lines.Text())
		}
		until[body] = time.UnixMilli(ms)
	}
	Must(t, worker.Process.Kill())
	_ = worker.Wait() // it was killed
	if len(until) != n {
		t.Fatalf("the worker held %d messages, want %d", len(until), n)
	}
	return until
}
