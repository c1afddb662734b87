package conformance_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/memory"
)

var update = flag.Bool("update", false, "write the golden files of skips anew")

// backends returns harnesses of all backends in the tree, in virtual and in real time where a
// backend can run in both.
func backends(t *testing.T) map[string]conformance.Harness {
	t.Helper()
	hs := map[string]conformance.Harness{
		"memory": {New: newMemory, Limited: limitedMemory, LimitedTo: fewMessages, Leftovers: memoryLeftovers, Virtual: true},
		"memory-realtime": {
			New: newMemory, Limited: limitedMemory, LimitedTo: fewMessages, Leftovers: memoryLeftovers,
			Tick: 60 * time.Millisecond, Quiet: 10 * time.Millisecond,
		},
		"coarse":            {New: newCoarse, Attach: attachCoarse, Leftovers: coarseLeftovers, Virtual: true},
		"coarse-realtime":   {New: newCoarse, Attach: attachCoarse, Leftovers: coarseLeftovers, Tick: 60 * time.Millisecond, Quiet: 10 * time.Millisecond},
		"numbered":          {New: newNumbered, Attach: attachNumbered, Leftovers: numberedLeftovers, Virtual: true},
		"numbered-realtime": {New: newNumbered, Attach: attachNumbered, Leftovers: numberedLeftovers, Tick: 60 * time.Millisecond, Quiet: 10 * time.Millisecond},
	}
	maps.Copy(hs, redisBackends(t))
	maps.Copy(hs, rabbitBackends(t))
	maps.Copy(hs, sqliteBackends(t))
	maps.Copy(hs, postgresBackends(t))
	maps.Copy(hs, httpBackends(t))
	return hs
}

func newMemory(context.Context) (backend.Backend, func(), error) { return memory.New(), nil, nil }

const fewMessages = 100

func limitedMemory(context.Context) (backend.Backend, func(), error) {
	return memory.New(memory.MaxMessages(fewMessages)), nil, nil
}

// TestFullInBytes runs the check of full queues on one that counts bytes.
func TestFullInBytes(t *testing.T) {
	h := conformance.Harness{
		New: newMemory, Leftovers: memoryLeftovers, Virtual: true,
		Limited: func(context.Context) (backend.Backend, func(), error) {
			return memory.New(memory.MaxBytes(5000)), nil, nil
		},
	}
	if err := conformance.Verify(t.Context(), h, "full"); err != nil {
		t.Error(err)
	}
}

func memoryLeftovers(_ context.Context, b backend.Backend) ([]string, error) {
	messages, bytes := b.(*memory.Backend).Usage()
	if messages == 0 && bytes == 0 {
		return nil, nil
	}
	return []string{fmt.Sprintf("%d messages of %d bytes", messages, bytes)}, nil
}

// patience bounds the wait for an event: it only matters when something is broken, or the machine
// is busy.
const patience = 3 * time.Minute

// defaultModes are the backends whose checks run in the tier testenv.Default.
var defaultModes = []string{"memory", "zsetpoll", "keyspace", "redisson-both", "rabbitmq", "sqlite", "postgres"}

// TestConformance runs the checks that must be alone, one backend after another, and then all others
// at the same time: most of them wait.
func TestConformance(t *testing.T) {
	all := backends(t)
	for _, name := range defaultModes {
		if _, ok := all[name]; !ok {
			t.Errorf("no backend is called %s", name)
		}
	}
	for name, h := range all {
		t.Run(name, func(t *testing.T) {
			if !slices.Contains(defaultModes, name) {
				testenv.In(t, testenv.All)
			}
			pinSkips(t, name, h)
			h.Parallel, h.Patience = true, patience
			if !h.Virtual { // a busy machine; where time is virtual, a lost wake-up cannot hide behind a poll
				h.Slack = max(h.Slack, 5*time.Second)
			}
			conformance.RunSome(t, h, func(c conformance.Check) bool { return c.Alone })
			t.Parallel()
			conformance.RunSome(t, h, func(c conformance.Check) bool { return !c.Alone })
		})
	}
	t.Parallel() // beside the other tests of the package
}

// pinSkips compares the skipped checks with a golden file, so that a lost capability cannot hide as
// a skip.
func pinSkips(t *testing.T, name string, h conformance.Harness) {
	t.Helper()
	skips, err := conformance.Skips(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, s := range skips {
		fmt.Fprintf(&got, "%s: %s\n", s.Check, s.Reason)
	}
	golden := filepath.Join("testdata", "skips", name+".golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v; run the test with -update and look at what it skips", err)
	}
	if got.String() != string(want) {
		t.Errorf("the skipped checks have changed; if that is right, run with -update\ngot:\n%s\nwant:\n%s", got.String(), want)
	}
}
