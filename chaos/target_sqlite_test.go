package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/sqlite"
)

// sqliteTarget is a file that this process and others share. The clients of a process share a
// backend, as in a service; this one has two.
func sqliteTarget(t *testing.T) *target {
	t.Helper()
	v := onFile(t, "sqlite", 3000)
	v.opens = []OpenFunc{sharing(t, v.direct.Open), sharing(t, v.direct.Open)}
	v.faults, v.poison = append(v.faults, sqliteFaults(t, v.direct.Addr)...), 2
	return v
}

// sqliteKilledTarget is a file that only other processes have open. When all are killed, nobody is
// left who knows what the file's log holds: the next one recovers it.
func sqliteKilledTarget(t *testing.T) *target {
	t.Helper()
	v := onFile(t, "sqlite, all killed", 4000)
	v.opens, v.outside = []OpenFunc{v.direct.Open}, true
	v.tear = func(i *injection) int { return tornLog(i, v.direct.Addr+"-wal") }
	return v
}

func onFile(t *testing.T, name string, rate float64) *target {
	t.Helper()
	at := Endpoint{Backend: "sqlite", Addr: filepath.Join(t.TempDir(), "delay.db")}
	return &target{
		name: name, rate: rate, drainTime: time.Minute, direct: at, proxied: at, oneLock: true,
		leftovers: func(ctx context.Context, b backend.Backend) ([]string, error) {
			left, err := remains(ctx, b)
			if err != nil {
				return nil, err
			}
			damage, err := damaged(ctx, at.Addr)
			return append(left, damage...), err
		},
	}
}

// damaged returns what SQLite finds wrong with a file.
func damaged(ctx context.Context, path string) (found []string, err error) {
	b := sqlite.New(path)
	defer func() { _ = b.Close() }()
	e, err := b.Examine(ctx)
	for _, f := range e.Findings {
		if f.Severity > admin.Note {
			found = append(found, fmt.Sprintf("%s: %s", f.About, f.Text))
		}
	}
	return found, err
}
