package redistest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
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
	ctx, cancel := context.WithTimeout(context.Background(), 4*Patience) // longer than a test
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

// A Claim is a message that a worker process has received.
type Claim struct {
	Body    string
	Attempt int
	Until   time.Time // the end of its lease
}

// startWorker starts a worker process. It prints its claims, one a line.
func startWorker(t testing.TB, server *testenv.RedisServer, mode, queue string, lease time.Duration) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	worker := exec.CommandContext(t.Context(), os.Args[0])
	worker.Stderr = os.Stderr
	worker.Env = append(os.Environ(), workerURL+"="+server.URL(), workerMode+"="+mode, workerQueue+"="+queue, workerLease+"="+lease.String())
	out, err := worker.StdoutPipe()
	Must(t, err, worker.Start())
	return worker, bufio.NewScanner(out)
}

func parseClaim(line string) (c Claim, err error) {
	var ms int64
	_, err = fmt.Sscanf(line, "%q %d %d", &c.Body, &c.Attempt, &ms)
	c.Until = time.UnixMilli(ms)
	return c, err
}

// StartWorkers starts n worker processes, which keep their leases. It calls claimed for each message
// that one of them receives, also concurrently, until stop, which kills them.
func StartWorkers(t testing.TB, server *testenv.RedisServer, mode, queue string, lease time.Duration, n int, claimed func(worker int, c Claim)) (stop func()) {
	t.Helper()
	var reading sync.WaitGroup
	var workers []*exec.Cmd
	for i := range n {
		worker, lines := startWorker(t, server, mode, queue, lease)
		workers = append(workers, worker)
		reading.Go(func() {
			for lines.Scan() {
				c, err := parseClaim(lines.Text())
				if err != nil {
					t.Errorf("a worker says %q", lines.Text())
					return
				}
				claimed(i, c)
			}
		})
	}
	return func() {
		for _, w := range workers {
			_ = w.Process.Kill()
		}
		reading.Wait()
		for _, w := range workers {
			_ = w.Wait() // it was killed
		}
	}
}

// KillWorker starts a worker process and kills it once it holds the n messages that push pushes. It
// returns when their leases end, by their bodies.
func KillWorker(t testing.TB, server *testenv.RedisServer, mode, queue string, lease time.Duration, push func(), n int) map[string]time.Time {
	t.Helper()
	worker, lines := startWorker(t, server, mode, queue, lease)
	push()
	until := make(map[string]time.Time)
	for len(until) < n && lines.Scan() {
		c, err := parseClaim(lines.Text())
		if err != nil || c.Attempt != 1 {
			t.Fatalf("the worker says %q", lines.Text())
		}
		until[c.Body] = c.Until
	}
	Must(t, worker.Process.Kill())
	_ = worker.Wait() // it was killed
	if len(until) != n {
		t.Fatalf("the worker held %d messages, want %d", len(until), n)
	}
	return until
}
