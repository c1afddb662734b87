package chaos_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// preload has the servers that this test starts run under a library, which it compiles.
func preload(t *testing.T, source string) {
	t.Helper()
	server, err := exec.LookPath("redis-server")
	if err != nil || runtime.GOOS != "linux" {
		lacks(t, "redis-server on Linux") // another system has no LD_PRELOAD; make installs the server
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		lacks(t, "a C compiler") // make installs one, for the race detector
	}
	dir := t.TempDir()
	lib := filepath.Join(dir, "preloaded.so")
	build := exec.CommandContext(t.Context(), cc, "-shared", "-fPIC", "-Wall", "-o", lib, source)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	script := fmt.Sprintf("#!/bin/sh\nLD_PRELOAD=%s exec %s \"$@\"\n", lib, server)
	must(t, os.WriteFile(filepath.Join(dir, "redis-server"), []byte(script), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// lacks skips the test, or fails it where Redis is required.
func lacks(t *testing.T, what string) {
	t.Helper()
	if strings.Contains(os.Getenv("DELAYQ_REQUIRE"), "redis") {
		t.Fatalf("running a server under a library needs %s", what)
	}
	t.Skipf("running a server under a library needs %s", what)
}
