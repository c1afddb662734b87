package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
)

// BenchmarkWorkerProcesses measures a burst that one or eight processes of the operating system
// drain: messages due at one instant, from then until none is left, 32 workers altogether, in
// msgs/s. It fails unless the processes have acknowledged each message once.
func BenchmarkWorkerProcesses(b *testing.B) {
	overRedis(b, func(b *testing.B, t target) {
		for _, n := range []int{1, 8} {
			b.Run("processes="+strconv.Itoa(n), func(b *testing.B) {
				drainBy(b, t, n, t.size(50_000, 2_000))
				b.ReportMetric(0, "ns/op") // means nothing here
			})
		}
	})
}

func drainBy(b *testing.B, t target, processes, messages int) {
	server := ownRedis(b)
	store, _ := t.connect(b, server)
	q := open(b, store, "bench")
	due := time.Now().Add(window(4 * time.Second))
	for start := 0; start < messages; start += 1000 {
		ms := make([]delayq.Message, min(1000, messages-start))
		for i := range ms {
			ms[i] = delayq.Message{Body: make([]byte, 100), Due: due}
		}
		_, err := q.PushBatch(context.Background(), ms)
		must(b, err)
	}
	var workers []*worker
	for range processes {
		workers = append(workers, startWorker(b, t.name, server.Addr(), 32/processes))
	}
	time.Sleep(time.Until(due))
	for left := int64(messages); left > 0; time.Sleep(5 * time.Millisecond) { // polling, until the deadline
		s, err := q.Stats(context.Background())
		must(b, err)
		if left = s.Scheduled + s.Ready + s.InFlight; left > 0 && time.Since(due) > drainWithin {
			b.Fatalf("%d messages of %d are left after %v", left, messages, drainWithin)
		}
	}
	b.ReportMetric(float64(messages)/time.Since(due).Seconds(), "msgs/s")
	acked := 0
	for _, w := range workers {
		acked += w.stop(b)
	}
	if acked != messages {
		b.Fatalf("the processes acknowledged %d messages of %d", acked, messages)
	}
}

// drainWithin only matters when messages are stuck.
const drainWithin = 2 * time.Minute

// workerEnv tells the test binary to be a worker: target, address, workers.
const workerEnv = "DELAYQ_BENCH_WORKER"

// A worker is a process that consumes until its standard input ends, and then says how much it did.
type worker struct {
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Reader
}

func startWorker(b *testing.B, target, addr string, workers int) *worker {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", workerEnv, target, addr, workers))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(b, err)
	out, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	w := &worker{cmd, in, bufio.NewReader(out)}
	b.Cleanup(func() { _ = cmd.Process.Kill() })
	if line, err := w.out.ReadString('\n'); err != nil || line != "ready\n" {
		b.Fatalf("a worker said %q, %v", line, err)
	}
	return w
}

func (w *worker) stop(b *testing.B) (acked int) {
	must(b, w.in.Close())
	line, err := w.out.ReadString('\n')
	must(b, err)
	acked, err = strconv.Atoi(strings.TrimSpace(line))
	must(b, err)
	must(b, w.cmd.Wait())
	return acked
}

// work is a worker's main.
func work(spec string) error {
	var name, addr string
	var workers int
	if _, err := fmt.Sscan(spec, &name, &addr, &workers); err != nil {
		return fmt.Errorf("reading %s: %w", workerEnv, err)
	}
	var acked counter
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	for _, t := range targets {
		if t.name != name {
			continue
		}
		client := redis.NewClient(&redis.Options{Addr: addr})
		q, err := delayq.New(ctx, "bench", delayq.WithBackend(t.onRedis(client)), delayq.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(os.Stdout, "ready")
		if err := q.Consume(ctx, acked.add, delayq.Workers(workers)); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintln(os.Stdout, acked.n.Load())
	return nil
}

// counter is a handler that counts.
type counter struct{ n atomic.Int64 }

func (c *counter) add(context.Context, *delayq.Delivery) error {
	c.n.Add(1)
	return nil
}
