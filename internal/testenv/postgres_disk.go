package testenv

import (
	"os"
	"os/exec"
	"testing"
)

// SmallDisk mounts a disk of a size such as "16m", for a tablespace of the server, and returns where.
// resize gives it another size. Only root may mount: the test of others is skipped.
func (s *PostgresServer) SmallDisk(tb testing.TB, size string) (dir string, resize func(size string)) {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("only root may mount a small disk")
	}
	mount := func(args ...string) {
		if said, err := exec.Command("mount", args...).CombinedOutput(); err != nil {
			tb.Fatalf("mounting a small disk: %v\n%s", err, said)
		}
	}
	dir = s.local.file("disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		tb.Fatal(err)
	}
	mount("-t", "tmpfs", "-o", "mode=700,size="+size, "tmpfs", dir)
	tb.Cleanup(func() { mustStop(tb, exec.Command("umount", "--lazy", dir).Run()) }) // the server ends after it
	if err := exec.Command("chown", "--reference="+s.local.dir, dir).Run(); err != nil {
		tb.Fatalf("giving PostgreSQL a small disk: %v", err)
	}
	return dir, func(size string) { mount("-o", "remount,size="+size, dir) }
}
