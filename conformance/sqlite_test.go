package conformance_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/sqlite"
)

// sqliteBackends run each check on a file of its own. Attach opens the file a second time, with
// connections of its own, as another process does.
func sqliteBackends(t *testing.T) map[string]conformance.Harness {
	t.Helper()
	dir := t.TempDir()
	var files atomic.Int64
	var paths sync.Map // of the backends that New made
	open := func(context.Context) (backend.Backend, func(), error) {
		path := filepath.Join(dir, strconv.FormatInt(files.Add(1), 10), "delay.db")
		b := sqlite.New(path)
		paths.Store(b, path)
		return b, func() { _ = os.RemoveAll(filepath.Dir(path)) }, os.Mkdir(filepath.Dir(path), 0o755)
	}
	h := conformance.Harness{
		New: open,
		Attach: func(_ context.Context, b backend.Backend) (backend.Backend, func(), error) {
			path, _ := paths.Load(b)
			return sqlite.New(path.(string)), nil, nil
		},
		Leftovers: func(ctx context.Context, b backend.Backend) ([]string, error) {
			queues, err := b.(*sqlite.Backend).Queues(ctx)
			if err != nil {
				return nil, err
			}
			return b.(*sqlite.Backend).Remains(ctx, queues...)
		},
		Virtual: true,
		Quiet:   10 * time.Millisecond,
	}
	realtime := h
	realtime.Virtual, realtime.Quiet, realtime.Tick = false, 0, 400*time.Millisecond // each call may wait for the disk
	return map[string]conformance.Harness{"sqlite": h, "sqlite-realtime": realtime}
}
