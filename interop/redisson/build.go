package interop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/testenv"
)

// buildTime is long, for the first build of a release fetches it.
const buildTime = 10 * time.Minute

var builds struct {
	sync.Mutex
	byVersion map[string]func() (string, error)
}

// Build builds the Java program for a release of Redisson, and returns the directory it is in. It
// does so once in a process, and not at all if the program is there and its sources have not
// changed. Processes that build at the same time wait for each other. Any goroutine may call it.
func Build(tb testing.TB, version string) string {
	tb.Helper()
	dir, err := built(version)
	testenv.Require(tb, err)
	return dir
}

func built(version string) (string, error) {
	builds.Lock()
	if builds.byVersion == nil {
		builds.byVersion = make(map[string]func() (string, error))
	}
	build := builds.byVersion[version]
	if build == nil {
		build = sync.OnceValues(func() (string, error) { return buildLocked(version) })
		builds.byVersion[version] = build
	}
	builds.Unlock()
	return build()
}

// buildLocked keeps other processes from building any release meanwhile: Maven's own repository
// cannot be used by two processes at a time.
func buildLocked(version string) (_ string, err error) {
	root, err := sourceRoot()
	if err != nil {
		return "", err
	}
	target := filepath.Join(root, "target")
	if err := os.MkdirAll(target, 0o750); err != nil {
		return "", fmt.Errorf("building for Redisson %s: %w", version, err)
	}
	unlock, err := lock(filepath.Join(target, "lock"))
	if err != nil {
		return "", fmt.Errorf("building for Redisson %s: %w", version, err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	dir := filepath.Join(target, version)
	return dir, buildIfStale(root, dir, version)
}

func buildIfStale(root, dir, version string) error {
	want, err := fingerprint(root)
	if err != nil {
		return fmt.Errorf("reading the sources of the Java program: %w", err)
	}
	stamp := filepath.Join(dir, "stamp")
	if got, err := os.ReadFile(stamp); err == nil && string(got) == want {
		return nil
	}
	if err := runMaven(root, version); err != nil {
		return err
	}
	return os.WriteFile(stamp, []byte(want), 0o600)
}

func runMaven(root, version string) error {
	mvn, err := testenv.Maven()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, mvn, "-q", "-B", "-Dstyle.color=never", "-Dredisson.version="+version, "package")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building for Redisson %s with Maven: %w\n%s", version, err, out)
	}
	return nil
}
