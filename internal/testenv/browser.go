package testenv

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

const (
	chromiumKind   = "chromium"
	chromiumRemedy = "install Chromium and npm (on Debian: apt-get install chromium npm)"
)

// Chromium returns the path of the browser.
func Chromium(tb testing.TB) string {
	tb.Helper()
	Require(tb, checkRequire(os.Getenv(requireVar)))
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	Require(tb, &absentError{chromiumKind, chromiumRemedy})
	return ""
}

// NodeFile returns a file of a package of npm, as "axe-core", "4.14.1" and "axe.min.js". npm fetches
// the package once, and the file stays in the user's cache.
func NodeFile(tb testing.TB, name, version, file string) []byte {
	tb.Helper()
	data, err := nodeFile(name, version, file)
	Require(tb, err)
	return data
}

func nodeFile(name, version, file string) ([]byte, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("looking for a cache: %w", err)
	}
	kept := filepath.Join(cache, "delayq", name+"-"+version, file)
	if data, err := os.ReadFile(kept); err == nil {
		return data, nil
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return nil, &absentError{chromiumKind, chromiumRemedy}
	}
	dir, err := os.MkdirTemp("", "delayq-npm-")
	if err != nil {
		return nil, fmt.Errorf("fetching %s: %w", name, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if out, err := exec.Command(npm, "pack", name+"@"+version, "--silent", "--pack-destination", dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm pack %s: %w: %s", name, err, out)
	}
	data, err := unpacked(filepath.Join(dir, name+"-"+version+".tgz"), "package/"+file)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(kept), 0o755), os.WriteFile(kept, data, 0o644)); err != nil {
		return nil, fmt.Errorf("keeping %s: %w", name, err)
	}
	return data, nil
}

// unpacked reads one file of an archive.
func unpacked(archive, name string) ([]byte, error) {
	f, err := os.Open(archive)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", archive, err)
	}
	defer func() { _ = f.Close() }()
	zipped, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", archive, err)
	}
	for files := tar.NewReader(zipped); ; {
		head, err := files.Next()
		if err != nil {
			return nil, fmt.Errorf("looking for %s in %s: %w", name, archive, err)
		}
		if head.Name == name {
			return io.ReadAll(files)
		}
	}
}
