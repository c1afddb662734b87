package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Under starts the server under a library (LD_PRELOAD), which is compiled of a file in C. It is a
// server of the test's own, as with Private.
func Under(tb testing.TB, source string) Option {
	tb.Helper()
	library, err := compile(tb.TempDir(), source)
	Require(tb, err)
	return under(library)
}

func under(library string) Option {
	return func(s *settings) { s.private, s.libraries = true, append(s.libraries, library) }
}

// compile makes a library of a file in C.
func compile(dir, source string, flags ...string) (library string, err error) {
	cc, err := exec.LookPath("cc")
	if err != nil || runtime.GOOS != "linux" {
		return "", &absentError{"redis", "running a server under a library needs Linux and a C compiler (on Debian: apt-get install gcc libc6-dev)"}
	}
	library = filepath.Join(dir, "library.so")
	args := append([]string{"-shared", "-fPIC", "-Wall", "-o", library, source}, flags...)
	if out, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("compiling %s: %w\n%s", filepath.Base(source), err, out)
	}
	return library, nil
}

// environment returns the environment of a server with its libraries. Without libraries it is nil,
// which is the environment of this process.
func (s *settings) environment() []string {
	if s.libraries == nil {
		return nil
	}
	return append(os.Environ(), "LD_PRELOAD="+strings.Join(s.libraries, ":"))
}
