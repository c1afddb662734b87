package testenv

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"testing"
)

const rabbitOrphanVar = "DELAYQ_TEST_RABBIT_ORPHANS"

// TestRabbitOrphans is the victim of TestKilledTestLeavesNoRabbit.
func TestRabbitOrphans(t *testing.T) {
	if os.Getenv(rabbitOrphanVar) == "" {
		t.Skip("runs in a process of its own, to be killed")
	}
	RabbitMQ(t, PrivateRabbit()).Pause()
	SharedRabbitMQ(t)
	_, err := launchUnready()
	must(t, err)
	say(t, "ready")
	select {}
}

// launchUnready returns while a broker is starting: Erlang starts helpers then.
func launchUnready() (*localRabbit, error) {
	e, err := startEpmd()
	if err != nil {
		return nil, err
	}
	r, err := newLocalRabbit(e, newRabbitSecrets(), rabbitSettings{})
	if err != nil {
		return nil, err
	}
	return r, r.spawn()
}

func TestKilledTestLeavesNoRabbit(t *testing.T) {
	heavy(t)
	mustHaveRabbit(t)
	dir := t.TempDir()
	victim := exec.Command(os.Args[0], "-test.run=^TestRabbitOrphans$", "-test.timeout=110s")
	victim.Env = append(os.Environ(), rabbitOrphanVar+"=1", rabbitURLVar+"=", "TMPDIR="+dir)
	out, err := victim.StdoutPipe()
	must(t, err)
	must(t, victim.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		t.Log(lines.Text())
	}
	running := processesOf(t, dir)
	must(t, errors.Join(victim.Process.Kill(), lines.Err()))
	_ = victim.Wait()     // it was killed
	if len(running) < 7 { // the test, and three brokers with an epmd each
		t.Errorf("running were %q", running)
	}
	awaitNoProcesses(t, dir)
}
