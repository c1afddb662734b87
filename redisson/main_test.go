package redisson_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

func TestMain(m *testing.M) {
	runHelper()
	testenv.Main(m)
}

// patience bounds every wait for an event that must happen; it only matters when something is
// broken.
const patience = 20 * time.Second

// grace is how long after a lease's end Java may take the message.
const grace = 2 * time.Second

// formats are the layouts that are written.
var formats = []redisson.MemberFormat{redisson.V1, redisson.V2, redisson.Both}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// wants checks that each of some outcomes is an error that matches.
func wants(t *testing.T, errs []error, want error) {
	t.Helper()
	if len(errs) == 0 {
		t.Errorf("all went well, want %v", want)
	}
	for _, err := range errs {
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

// await asks until the condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", patience, what)
		}
		time.Sleep(time.Millisecond)
	}
}

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func leases(ds []backend.Delivery) []backend.Lease {
	ls := make([]backend.Lease, len(ds))
	for i := range ds {
		ls[i] = ds[i].Lease()
	}
	return ls
}

func bodies(ds []backend.Delivery) []string {
	texts := make([]string, len(ds))
	for i, d := range ds {
		texts[i] = string(d.Body)
	}
	return texts
}
