package testenv

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindJava(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("JAVA_HOME", "")
	for name, find := range map[string]func() (string, error){"java": Java, "javac": Maven} {
		path, err := find()
		if err == nil || !strings.Contains(err.Error(), "looking for "+name) || !skips("redis", err) || skips("java", err) {
			t.Errorf("found %q, %v", path, err)
		}
	}
	t.Setenv("JAVA_HOME", "/usr")
	if path, err := findJava("env"); path != "/usr/bin/env" {
		t.Errorf("env is at %q, %v; want it below JAVA_HOME", path, err)
	}
	t.Setenv(requireVar, "jawa")
	if _, err := findJava("env"); err == nil || !strings.Contains(err.Error(), `"jawa" is unknown`) {
		t.Errorf("an unknown requirement gives %v", err)
	}
}

func startShell(t *testing.T, script string) *Program {
	t.Helper()
	p, err := StartProgram(exec.Command("sh", "-c", script), filepath.Join(t.TempDir(), "log"))
	must(t, err)
	t.Cleanup(func() { must(t, p.Close()) })
	return p
}

func TestProgramOutputAfterItsEnd(t *testing.T) {
	p := startShell(t, "read line; echo log of $line >&2; echo $line and more")
	_, err := fmt.Fprintln(p.Input(), "said")
	must(t, err)
	// All of it arrives, though the program may have ended before it is read.
	<-p.process.done
	if out, err := io.ReadAll(p.Output()); string(out) != "said and more\n" || err != nil {
		t.Errorf("its output is %q, %v", out, err)
	}
	if log := p.Log(); log != "log of said\n" {
		t.Errorf("its log is %q", log)
	}
}

func TestPausedProgramGoesOn(t *testing.T) {
	p := startShell(t, "while read line; do echo $line; done")
	must(t, p.Pause())
	must(t, isStopped(p.Pid()))
	_, err := fmt.Fprintln(p.Input(), "said")
	must(t, err)
	must(t, p.Resume())
	if line, err := bufio.NewReader(p.Output()).ReadString('\n'); line != "said\n" || err != nil {
		t.Errorf("its output is %q, %v", line, err)
	}
	must(t, p.Kill())
	must(t, p.Kill()) // that it is dead already does no harm
	if !p.process.ended() {
		t.Error("it still runs")
	}
}

func TestProgramDoesNotStart(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ binary, log string }{{"/no/such/program", dir + "/log"}, {"sh", dir + "/no/log"}} {
		if _, err := StartProgram(exec.Command(c.binary), c.log); err == nil || !strings.Contains(err.Error(), "starting ") {
			t.Errorf("starting %s with the log %s gives %v", c.binary, c.log, err)
		}
	}
}
