package testenv

import (
	"bufio"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const orphanVar = "DELAYQ_TEST_ORPHANS"

// TestOrphans is the victim of TestKilledTestLeavesNoServer.
func TestOrphans(t *testing.T) {
	if os.Getenv(orphanVar) == "" {
		t.Skip("runs in a process of its own, to be killed")
	}
	paused := Redis(t, Private())
	paused.Pause()
	for _, s := range []*RedisServer{paused, Redis(t, Private()), SharedRedis(t)} {
		say(t, "server "+s.Addr())
	}
	say(t, "ready")
	select {}
}

func say(t *testing.T, line string) {
	t.Helper()
	_, err := os.Stdout.WriteString(line + "\n")
	must(t, err)
}

func TestKilledTestLeavesNoServer(t *testing.T) {
	victim := exec.Command(os.Args[0], "-test.run=^TestOrphans$", "-test.timeout=60s")
	victim.Env = append(os.Environ(), orphanVar+"=1", redisURLVar+"=", "TMPDIR="+t.TempDir())
	out, err := victim.StdoutPipe()
	must(t, err)
	must(t, victim.Start())
	var addrs []string
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
		if addr, ok := strings.CutPrefix(lines.Text(), "server "); ok {
			addrs = append(addrs, addr)
		}
	}
	must(t, victim.Process.Kill())
	_ = victim.Wait() // it was killed
	if len(addrs) != 3 {
		t.Fatalf("servers %v; want 3", addrs)
	}
	for _, addr := range addrs {
		must(t, await("the server "+addr+" to end", func() (bool, error) {
			conn, err := net.Dial("tcp", addr) // a paused server takes connections, too
			if err == nil {
				return false, errors.Join(errors.New("it listens"), conn.Close())
			}
			return false, nil
		}))
	}
}
