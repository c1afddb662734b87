package testenv

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"testing"
)

const orphanVar = "DELAYQ_TEST_ORPHANS"

// TestOrphans is the victim of the tests below.
func TestOrphans(t *testing.T) {
	switch os.Getenv(orphanVar) {
	case "redis":
		paused := Redis(t, Private())
		paused.Pause()
		for _, s := range []*RedisServer{paused, Redis(t, Private()), SharedRedis(t)} {
			say(t, s.Addr())
		}
	case "rabbitmq":
		RabbitMQ(t, PrivateRabbit()).Pause()
		SharedRabbitMQ(t)
		must(t, rabbitAsleep(t).begin()) // Erlang starts helpers while a broker starts
	default:
		t.Skip("runs in a process of its own, to be killed")
	}
	say(t, "ready")
	select {}
}

func say(t *testing.T, line string) {
	t.Helper()
	_, err := os.Stdout.WriteString(line + "\n")
	must(t, err)
}

// TestKilledTestLeavesNoRedis looks for ports: Redis overwrites the environment of its process.
func TestKilledTestLeavesNoRedis(t *testing.T) {
	addrs := killVictim(t, "redis", t.TempDir(), 1)
	if len(addrs) != 3 {
		t.Fatalf("servers %v; want 3", addrs)
	}
	for _, addr := range addrs {
		must(t, await("the server "+addr+" to end", func() (bool, error) {
			if err := dial(addr); err == nil { // a paused server takes connections, too
				return false, errors.New("it listens")
			}
			return false, nil
		}))
	}
}

func TestKilledTestLeavesNoRabbit(t *testing.T) {
	heavy(t)
	mustHaveRabbit(t)
	dir := t.TempDir()
	killVictim(t, "rabbitmq", dir, 7) // the test, and three brokers with an epmd each
	awaitNoProcesses(t, dir)
}

// killVictim kills a test with servers, and returns its output.
func killVictim(t *testing.T, kind, dir string, processes int) (said []string) {
	t.Helper()
	victim := exec.Command(os.Args[0], "-test.run=^TestOrphans$", "-test.timeout=30m")
	victim.Env = append(os.Environ(), orphanVar+"="+kind, redisURLVar+"=", rabbitURLVar+"=", "TMPDIR="+dir)
	out, err := victim.StdoutPipe()
	must(t, err)
	must(t, victim.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		said = append(said, lines.Text())
	}
	running := processesOf(t, dir)
	must(t, errors.Join(victim.Process.Kill(), lines.Err()))
	_ = victim.Wait() // it was killed
	if len(running) < processes {
		t.Errorf("running were %q; want %d; output %q", running, processes, said)
	}
	return said
}
