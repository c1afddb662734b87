package interop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/delayq/delayq/internal/testenv"
)

// buildTime is long, for the first build of a release fetches it.
const buildTime = 10 * time.Minute

// builds has a build of the Java program for each release of Redisson: once in a process, and not at
// all if the program is there and its sources have not changed. Processes that build at the same
// time wait for each other.
var builds = func() map[string]func() (string, error) {
	all := make(map[string]func() (string, error))
	for _, version := range Versions() {
		all[version] = sync.OnceValues(func() (string, error) { return buildLocked(version) })
	}
	return all
}()

// built returns the directory of the program for a release, one of [Versions].
func built(version string) (string, error) {
	build := builds[version]
	if build == nil {
		return "", fmt.Errorf("there is no program for Redisson %s; releases are %q", version, Versions())
	}
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
