package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

// BenchmarkWorkerProcesses measures a burst that one or eight processes of the operating system
// drain: messages due at one instant, from then until none is left, 32 workers altogether, in
// msgs/s. It fails unless the processes have acknowledged each message once.
func BenchmarkWorkerProcesses(b *testing.B) {
	overRedis(b, func(b *testing.B, t target) {
		for _, n := range []int{1, 8} {
			b.Run("processes="+strconv.Itoa(n), func(b *testing.B) {
				drainBy(b, t, n, t.size(50_000, 2_000))
				load.OnePass(b)
			})
		}
	})
}

func drainBy(b *testing.B, t target, processes, messages int) {
	server := load.OwnRedis(b)
	store, _ := t.connect(b, server)
	q := open(b, store, "bench")
	due := time.Now().Add(window(4 * time.Second))
	load.PushBatches(b, q, load.Burst(messages, due).Messages(), delayq.MaxBatch, 1)
	var workers []*worker
	for range processes {
		workers = append(workers, startWorker(b, t.name, server.Addr(), 32/processes))
	}
	time.Sleep(time.Until(due))
	// polling, until the deadline
	for left := int64(messages); left > 0; time.Sleep(5 * time.Millisecond) {
		s, err := q.Stats(context.Background())
		load.Must(b, err)
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
	load.Must(b, err)
	out, err := cmd.StdoutPipe()
	load.Must(b, err)
	load.Must(b, cmd.Start())
	w := &worker{cmd, in, bufio.NewReader(out)}
	b.Cleanup(func() { _ = cmd.Process.Kill() })
	if line, err := w.out.ReadString('\n'); err != nil || line != "ready\n" {
		b.Fatalf("a worker said %q, %v", line, err)
	}
	return w
}

func (w *worker) stop(b *testing.B) (acked int) {
	load.Must(b, w.in.Close())
	line, err := w.out.ReadString('\n')
	load.Must(b, err)
	acked, err = strconv.Atoi(strings.TrimSpace(line))
	load.Must(b, err)
	load.Must(b, w.cmd.Wait())
	return acked
}

// work is a worker's main.
func work(spec string) error {
	var name, addr string
	var workers int
	if _, err := fmt.Sscan(spec, &name, &addr, &workers); err != nil {
		return fmt.Errorf("reading %s: %w", workerEnv, err)
	}
	var acked atomic.Int64
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
		q, err := delayq.New(ctx, "bench", delayq.WithBackend(t.onRedis(client)), load.Quiet)
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintln(os.Stdout, "ready")
		count := func(context.Context, *delayq.Delivery) error {
			acked.Add(1)
			return nil
		}
		if err := q.Consume(ctx, count, delayq.Workers(workers)); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintln(os.Stdout, acked.Load())
	return nil
}
