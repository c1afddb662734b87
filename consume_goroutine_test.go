package delayq_test

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/queuetest"
	"github.com/delayq/delayq/sqlite"
)

// Goroutines handle one message after the other, and no more of them wait than there are workers,
// though more acks were under way. It runs alone, since it counts the goroutines of the process.
func TestGoroutinesOfWorkers(t *testing.T) {
	const workers, messages = 2, 200
	b := sqlite.New(filepath.Join(t.TempDir(), "delay.db"))
	q, err := delayq.New(t.Context(), "orders", delayq.WithBackend(b), delayq.WithLogger(queuetest.Silent))
	queuetest.Must(t, err)
	defer func() { queuetest.Must(t, q.Close()); queuetest.Must(t, b.Close()) }()
	_, err = q.PushBatch(t.Context(), make([]delayq.Message, messages))
	queuetest.Must(t, err)

	var mu sync.Mutex
	seen := make(map[string]bool) // goroutines
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- q.Consume(ctx, func(context.Context, *delayq.Delivery) error {
			mu.Lock()
			defer mu.Unlock()
			name, _, _ := strings.Cut(stacks(64, false), " [")
			seen[name] = true
			return nil
		}, delayq.Workers(workers))
	}()
	waiting, end := 0, time.Now().Add(5*time.Minute) // hundreds of commits
	for acked := false; !acked || waiting > workers; {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines wait for messages of %d workers", waiting, workers)
		}
		time.Sleep(5 * time.Millisecond) // between two looks; the condition ends the wait
		s := queuetest.Stats(t, q)
		acked = s.Ready+s.InFlight == 0
		waiting = strings.Count(stacks(1<<20, true), "consumer.(*consumer).work(")
	}
	stop()
	queuetest.Must(t, <-ended)
	if len(seen) == messages { // how many depends on how many acks a commit ends at once
		t.Error("no goroutine has handled a second message")
	}
}

func stacks(size int, all bool) string {
	buf := make([]byte, size)
	return string(buf[:runtime.Stack(buf, all)])
}
