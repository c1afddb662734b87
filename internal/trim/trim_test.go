package trim_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/trim"
)

// looks counts the steps that a Trimmer makes, each with the given outcome.
func looks(n *atomic.Int32, err error) trim.Config {
	return trim.Config{
		Keep: backend.Retention{MaxCount: 1000},
		Step: func(context.Context, backend.Retention) (int, bool, error) { n.Add(1); return 0, false, err },
		Run:  func(ctx context.Context, loop func(context.Context) error) error { return loop(ctx) },
		Log:  slog.New(slog.DiscardHandler),
	}
}

func TestAllLeavesTheStoreAsMuchTimeAsItTakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, steps := time.Now(), 0
		n, err := trim.All(t.Context(), func(context.Context, backend.Retention) (int, bool, error) {
			time.Sleep(time.Second)
			steps++
			return 7, steps < 3, nil
		}, backend.Retention{})
		if took := time.Since(began); n != 21 || err != nil || took != 5*time.Second {
			t.Errorf("deleted %d in %v, err %v, want 21 in 5s", n, took, err)
		}
	})
}

func TestAllReturnsWhatItDeletedWithAnError(t *testing.T) {
	broken, steps := errors.New("broken"), 0
	n, err := trim.All(t.Context(), func(context.Context, backend.Retention) (int, bool, error) {
		if steps++; steps == 2 {
			return 1, true, broken
		}
		return 4, true, nil
	}, backend.Retention{})
	if n != 5 || !errors.Is(err, broken) {
		t.Errorf("deleted %d, err %v, want 5 and the error of the step", n, err)
	}
}

func TestAllEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	n, err := trim.All(ctx, func(context.Context, backend.Retention) (int, bool, error) {
		time.Sleep(time.Millisecond)
		cancel()
		return 3, true, nil
	}, backend.Retention{})
	if n < 3 || !errors.Is(err, context.Canceled) {
		t.Errorf("deleted %d, err %v, want 3 or more and context.Canceled", n, err)
	}
}

func TestTrimmerLooksAtFirstAndEveryTenMinutes(t *testing.T) {
	for name, err := range map[string]error{"succeeds": nil, "fails": errors.New("broken")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n atomic.Int32
				trimmer := trim.New(looks(&n, err))
				defer trimmer.Close()
				sleep(time.Hour)
				if n.Load() != 0 {
					t.Fatalf("%d looks before Begin", n.Load())
				}
				trimmer.Begin()
				sleep(11 * time.Second)
				if n.Load() != 1 {
					t.Fatalf("%d looks in the first 11 s, want 1", n.Load())
				}
				if sleep(time.Hour); n.Load() < 5 || n.Load() > 8 {
					t.Errorf("%d looks in an hour, want about 6", n.Load())
				}
			})
		})
	}
}

func TestTrimmerLooksAtOnceAfterManyDeaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		trimmer := trim.New(looks(&n, nil))
		defer trimmer.Close()
		if trimmer.Died(9); !idle() || n.Load() != 0 {
			t.Fatalf("%d looks after 9 deaths of 1000 letters, want none yet", n.Load())
		}
		if trimmer.Died(1); !idle() || n.Load() != 1 {
			t.Fatalf("%d looks after 10 deaths, want 1", n.Load())
		}
		if trimmer.Died(9); !idle() || n.Load() != 1 {
			t.Errorf("%d looks, want the count to begin anew after a look", n.Load())
		}
	})
}

func TestTrimmerEndsWithItsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int32
		trimmer := trim.New(looks(&n, backend.ErrClosed))
		trimmer.Begin()
		if sleep(time.Hour); n.Load() != 1 {
			t.Errorf("%d looks at a closed store, want 1", n.Load())
		}
		trimmer.Close()
		trimmer.Died(1000)
		if sleep(time.Hour); n.Load() != 1 {
			t.Errorf("%d looks after Close, want no more", n.Load()-1)
		}
	})
}

func TestNilTrimmerDoesNothing(*testing.T) {
	var trimmer *trim.Trimmer
	trimmer.Died(1)
	trimmer.Close()
}

func sleep(d time.Duration) { time.Sleep(d); synctest.Wait() }

// idle waits until all that is due at once has run.
func idle() bool { sleep(0); return true }
