package rabbitmq_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

var (
	attemptRuns     = flag.Int("attempts.runs", 1, "how often TestFirstHandOutIsAttemptOne runs, idle and under load")
	attemptMessages = flag.Int("attempts.messages", 500, "how many messages a run has")
)

// workerVar is the environment variable that makes the test binary a worker process. It has the
// broker's URL and the queue.
const workerVar = "DELAYQ_RABBITMQ_WORKER"

type workerJob struct {
	URL   string
	Queue string
}

// A handOut is a worker process's report of one message.
type handOut struct {
	ID      string
	Attempt int
}

// TestFirstHandOutIsAttemptOne has four processes consume, which start, pause and stop at random.
// Every message is handed out once, as attempt 1. No unseen message becomes a dead letter. A broker
// that stands still, as on a busy machine, may count attempts.
func TestFirstHandOutIsAttemptOne(t *testing.T) {
	for run := range *attemptRuns {
		t.Run(fmt.Sprintf("idle %d", run), func(t *testing.T) { firstHandOuts(t, false) })
		t.Run(fmt.Sprintf("under load %d", run), func(t *testing.T) {
			testenv.In(t, testenv.All)
			firstHandOuts(t, true)
		})
	}
}

func firstHandOuts(t *testing.T, loaded bool) {
	const processes = 4
	url := shared(t) // before the deadline: starting the broker takes long
	ctx := deadline(t, patience)
	b := newBackend(t, url)
	queue := queueOf(t)
	q := openOn(t, b, queue)
	if loaded {
		defer loadBroker(t, b)()
	}
	reports := make(chan handOut, 1000)
	var stops []func()
	for range processes {
		stops = append(stops, startWorker(t, workerJob{url, queue}, reports))
	}
	pause := make(chan time.Duration, 1)
	go func() { pause <- pushSteadily(ctx, t, q, *attemptMessages) }()
	seen, counted := make(map[string]int), 0
	dead := "delayq.v1.dead." + queue
	ch := channel(t, url)
	for len(seen)+ready(t, ch, dead) < *attemptMessages {
		select {
		case r := <-reports:
			seen[r.ID]++
			if seen[r.ID] != 1 {
				t.Errorf("message %s came with attempt %d, hand-out %d", r.ID, r.Attempt, seen[r.ID])
			}
			if r.Attempt != 1 {
				counted++
			}
		case <-time.After(100 * time.Millisecond): // to look for dead letters
		case <-ctx.Done():
			t.Fatalf("%d of %d messages were handed out", len(seen), *attemptMessages)
		}
	}
	for _, stop := range stops {
		stop()
	}
	unseen, longest := ready(t, ch, dead), <-pause
	if counted+unseen > 0 && longest < withoutFillers {
		t.Errorf("of %d messages %d came with another attempt than 1, and %d are dead letters that no handler has seen; the longest pause between pushes was %v",
			*attemptMessages, counted, unseen, longest)
	}
}

// pushSteadily pushes n messages in a few seconds, every other one with a delay. It returns the
// longest time from one push to the next.
func pushSteadily(ctx context.Context, t *testing.T, q backend.Queue, n int) (longest time.Duration) {
	last := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	const each = 4
	for i := 0; i < n && ctx.Err() == nil; i += each {
		<-tick.C
		var ms []backend.Message
		for j := i; j < min(i+each, n); j++ {
			ms = append(ms, message(fmt.Sprint(j), time.Duration(j%2)*rand.N(30*time.Millisecond))...)
		}
		if err := errors.Join(q.Schedule(ctx, ms)...); err != nil {
			t.Errorf("pushing: %v", err)
		}
		longest, last = max(longest, time.Since(last)), time.Now()
	}
	return longest
}

// loadBroker keeps the broker busy with another queue until stop is called.
func loadBroker(t *testing.T, b *rabbitmq.Backend) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	q := openOn(t, b, queueOf(t)+".load")
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for round := 0; ctx.Err() == nil; round++ { // no more than the broker delivers
				_ = q.Schedule(ctx, batch(fmt.Sprint(i, round), 100, 0)) // the last of them fails
				for got := 0; got < 100 && ctx.Err() == nil; {
					ds, _ := q.Receive(ctx, 100, time.Minute)
					got += len(ds)
					_ = q.Ack(ctx, leases(ds))
				}
			}
		})
	}
	return func() { cancel(); all.Wait() }
}

// startWorker starts a process that consumes. stop ends it.
func startWorker(t *testing.T, job workerJob, reports chan<- handOut) (stop func()) {
	t.Helper()
	text, err := json.Marshal(job)
	must(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerVar+"="+string(text))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var r handOut
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				t.Errorf("a worker wrote %q: %v", lines.Text(), err)
			}
			reports <- r
		}
	})
	return func() {
		_ = in.Close()
		reading.Wait()
		if err := cmd.Wait(); err != nil {
			t.Errorf("a worker: %v", err)
		}
	}
}

// work is the main function of a worker process. Until its input ends, it opens the queue,
// consumes, pauses and closes, for random times.
func work(in io.Reader, out io.Writer) error {
	var job workerJob
	if err := json.Unmarshal([]byte(os.Getenv(workerVar)), &job); err != nil {
		return fmt.Errorf("reading %s: %w", workerVar, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { _, _ = io.Copy(io.Discard, in); cancel() }()
	b := rabbitmq.New(job.URL)
	defer func() { _ = b.Close() }()
	var mu sync.Mutex
	handler := func(_ context.Context, d *delayq.Delivery) error {
		time.Sleep(rand.N(3 * time.Millisecond)) // as a real handler takes some time
		mu.Lock()
		defer mu.Unlock()
		return json.NewEncoder(out).Encode(handOut{d.ID, d.Attempt})
	}
	for ctx.Err() == nil {
		if err := workAWhile(ctx, b, job.Queue, handler); err != nil {
			return err
		}
	}
	return nil
}

func workAWhile(ctx context.Context, b *rabbitmq.Backend, name string, handler delayq.Handler) error {
	q, err := delayq.New(ctx, name, delayq.WithBackend(b), delayq.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was stopped before it had begun
		}
		return err
	}
	for range rand.N(3) + 1 {
		consuming, stop := context.WithTimeout(ctx, rand.N(300*time.Millisecond))
		pausing := time.AfterFunc(rand.N(200*time.Millisecond), func() {
			q.Pause()
			time.AfterFunc(rand.N(50*time.Millisecond), q.Resume)
		})
		err = q.Consume(consuming, handler, delayq.Workers(1+rand.N(32)), delayq.MaxAttempts(1))
		pausing.Stop()
		q.Resume()
		stop()
		if err != nil {
			return err
		}
		select {
		case <-time.After(rand.N(100 * time.Millisecond)):
		case <-ctx.Done():
		}
	}
	return q.Close()
}
