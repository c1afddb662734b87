package interop

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/delayq/delayq/internal/testenv"
)

func TestBuildIsFresh(t *testing.T) {
	testenv.In(t, testenv.All)
	dir, err := built(newest)
	testenv.Require(t, err)
	jar := filepath.Join(dir, "interop.jar")
	before := got(os.Stat(jar))(t)
	again := got(buildLocked(newest))(t)
	if after := got(os.Stat(jar))(t); again != dir || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("built again in %s, at %v and %v", again, before.ModTime(), after.ModTime())
	}
}

func TestFingerprint(t *testing.T) {
	root := t.TempDir()
	source := filepath.Join(root, "src", "A.java")
	must(t, os.Mkdir(filepath.Dir(source), 0o700))
	seen := map[string]bool{}
	for _, files := range [][2]string{{"pom", "class A"}, {"pom", "class B"}, {"pom2", "class B"}, {"pom", "class A"}} {
		must(t, os.WriteFile(filepath.Join(root, "pom.xml"), []byte(files[0]), 0o600))
		must(t, os.WriteFile(source, []byte(files[1]), 0o600))
		seen[got(fingerprint(root))(t)] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d fingerprints of 3 sources", len(seen))
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "lock")
	unlock := got(lock(name))(t)
	second := make(chan error, 1)
	go func() {
		unlock, err := lock(name)
		if err == nil {
			err = unlock()
		}
		second <- err
	}()
	select {
	case err := <-second:
		t.Fatalf("a second one got the lock: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	must(t, unlock())
	must(t, <-second)
}
