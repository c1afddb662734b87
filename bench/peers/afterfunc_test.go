package peers

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/bench/internal/load"
)

// bareTimers is a Go program without any queue: a timer a message, in this process, whose end loses
// all of them. It is the floor of lateness.
type bareTimers struct {
	due chan []byte
	*flow
}

func openAfterFunc(testing.TB) system { return bareTimers{make(chan []byte), new(flow)} }

func (t bareTimers) start(m delayq.Message) *time.Timer {
	t.came(1)
	return time.AfterFunc(time.Until(m.Due), func() { t.due <- m.Body })
}

func (t bareTimers) push(_ context.Context, m delayq.Message) error {
	t.start(m)
	return nil
}

func (t bareTimers) pushAll(_ context.Context, ms []delayq.Message) error {
	for _, m := range ms {
		t.start(m)
	}
	return nil
}

func (t bareTimers) pushToCancel(
	_ context.Context, m delayq.Message,
) (func(context.Context) error, error) { //nolint:unparam // a canceller
	timer := t.start(m)
	return func(context.Context) error {
		timer.Stop()
		t.came(-1)
		return nil
	}, nil
}

func (t bareTimers) consume(_ testing.TB, handle func(body []byte)) (stop func()) {
	var all sync.WaitGroup
	end := make(chan struct{})
	for range load.Workers {
		all.Go(func() { t.work(t.counting(handle), end) })
	}
	return func() {
		close(end)
		all.Wait()
	}
}

func (t bareTimers) work(handle func(body []byte), end <-chan struct{}) {
	for {
		select {
		case body := <-t.due:
			handle(body)
		case <-end:
			return
		}
	}
}

func (t bareTimers) left(context.Context) (int64, error) { return t.count.Load(), nil }

func (t bareTimers) weigh(testing.TB) weight { return weight{memory: heap()} }

// heap is the heap in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse)
}
