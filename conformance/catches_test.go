package conformance_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/conformance/broken"
	"github.com/delayq/delayq/memory"
)

// judging is a harness of memory with a fault, in virtual time, with little patience: a fault that
// stops deliveries takes all of it.
func judging(f broken.Fault) conformance.Harness {
	return conformance.Harness{
		New: func(context.Context) (backend.Backend, func(), error) {
			return f.Wrap(broken.Transactional(memory.New())), nil, nil
		},
		Begin: func(_ context.Context, b backend.Backend) (conformance.Transaction, error) {
			return begin(unwrap(b)), nil
		},
		BeginElsewhere: func(context.Context, backend.Backend) (conformance.Transaction, error) {
			return begin(broken.Transactional(memory.New())), nil
		},
		Limited: func(context.Context) (backend.Backend, func(), error) {
			return f.Wrap(broken.Transactional(memory.New(memory.MaxMessages(fewMessages)))), nil, nil
		},
		LimitedTo: fewMessages,
		Leftovers: func(ctx context.Context, b backend.Backend) ([]string, error) {
			return memoryLeftovers(ctx, unwrap(unwrap(b)))
		},
		Virtual:  true,
		Patience: 300 * time.Millisecond,
	}
}

func unwrap(b backend.Backend) backend.Backend {
	return b.(interface{ Unwrap() backend.Backend }).Unwrap()
}

func begin(b backend.Backend) conformance.Transaction {
	tx := broken.Begin(b)
	return conformance.Transaction{Tx: tx, Commit: tx.Commit, Rollback: tx.Rollback}
}

// TestTransactional has the store that the faults of transactions are made of keep the rules.
func TestTransactional(t *testing.T) {
	t.Parallel()
	h := judging(broken.Fault{})
	h.Patience = patience
	for _, c := range conformance.Checks() {
		if strings.HasPrefix(c.Name, "transaction") || c.Name == "wake-up-by-commit" || c.Name == "features" {
			wantOutcome(t, h, c.Name, conformance.Kept)
		}
	}
}

// TestSuiteCatches runs the check that is named for the broken rule on each broken backend.
func TestSuiteCatches(t *testing.T) {
	for _, f := range broken.Faults() {
		t.Run(f.Name, func(t *testing.T) {
			err := conformance.Verify(t.Context(), judging(f), f.Rule)
			var v *conformance.Violation
			if !errors.As(err, &v) {
				t.Fatalf("check %s did not catch a backend that %s: %v", f.Rule, f.Name, err)
			}
			t.Logf("caught by %s: %s", v.Check, firstLine(v.Detail))
		})
	}
}

const raceVar = "DELAYQ_TEST_RACE"

// TestRaceDetectorCatches runs the check of a count that is read without its lock in a process of
// its own, which the race detector fails.
func TestRaceDetectorCatches(t *testing.T) {
	f := broken.Unlocked()
	if os.Getenv(raceVar) != "" {
		t.Log(conformance.Verify(t.Context(), judging(f), f.Rule))
		return
	}
	if info, ok := debug.ReadBuildInfo(); !ok || !slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("needs -race: without the detector nothing reports the race; make test has it")
	}
	// One run in many has an order of the two goroutines in which the detector sees no race.
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v", "-test.count=100", "-test.failfast")
	child.Env = append(os.Environ(), raceVar+"=1")
	out, err := child.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "(*queue).Stats") || !strings.Contains(string(out), "DATA RACE") {
		t.Errorf("check %s did not catch a backend that %s: %v\n%s", f.Rule, f.Name, err, out)
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// TestEveryCheckCatches wants a broken backend for each check.
func TestEveryCheckCatches(t *testing.T) {
	caught := make(map[string]bool)
	for _, f := range broken.Faults() {
		caught[f.Rule] = true
	}
	for _, c := range conformance.Checks() {
		if !caught[c.Name] {
			t.Errorf("no broken backend is caught by check %s", c.Name)
		}
	}
}
