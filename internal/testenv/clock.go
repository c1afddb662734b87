package testenv

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"
)

// clockSource is the library that shifts a server's clock. It has a directory of its own, since a
// Go package has C only with cgo.
//
//go:embed clocklib/clock.c
var clockSource string

// Clock is the wall clock of the Redis servers that are started on it (see OnClock): the machine's
// and a skew, which may change while they run. A server with a wrong clock stands for clients with
// wrong clocks. Its methods are safe for concurrent use.
type Clock struct {
	library string
	file    *os.File
	skew    atomic.Int64
}

// NewClock returns a clock that is skew ahead of the machine's, until tb ends. A C compiler makes
// the library that shifts it; the race detector needs one as well.
func NewClock(tb testing.TB, skew time.Duration) *Clock {
	tb.Helper()
	c, err := makeClock(tb.TempDir())
	Require(tb, err)
	tb.Cleanup(func() { _ = c.file.Close() }) // the test deletes the file
	if err := c.set(skew); err != nil {
		tb.Fatal(err)
	}
	return c
}

func makeClock(dir string) (*Clock, error) {
	source, skew := filepath.Join(dir, "clock.c"), filepath.Join(dir, "skew")
	if err := os.WriteFile(source, []byte(clockSource), 0o600); err != nil {
		return nil, fmt.Errorf("writing the library of a clock: %w", err)
	}
	library, err := compile(dir, source, "-DSKEW_FILE="+strconv.Quote(skew))
	if err != nil {
		return nil, err
	}
	file, err := os.Create(skew)
	if err != nil {
		return nil, fmt.Errorf("making the skew of a clock: %w", err)
	}
	return &Clock{library: library, file: file}, nil
}

// set takes effect on the servers at once: they map the file into their memory.
func (c *Clock) set(skew time.Duration) error {
	if _, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(skew)), 0); err != nil { //nolint:gosec // its bits
		return fmt.Errorf("setting a clock: %w", err)
	}
	c.skew.Store(int64(skew))
	return nil
}

// Set makes the clock jump to skew ahead of the machine's; behind it where that is negative.
// Servers use it from the return of Set on.
func (c *Clock) Set(tb testing.TB, skew time.Duration) {
	tb.Helper()
	if err := c.set(skew); err != nil {
		tb.Fatal(err)
	}
}

// Skew is how far the clock is ahead of the machine's.
func (c *Clock) Skew() time.Duration { return time.Duration(c.skew.Load()) }

// OnClock starts the server on a clock. It is a server of the test's own, as with Private.
func OnClock(c *Clock) Option { return under(c.library) }
