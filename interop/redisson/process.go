package interop

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/delayq/delayq/internal/testenv"
)

// startTime bounds the start of a process. It takes about a second, on a busy machine many.
const startTime = 3 * time.Minute

// process is a Java process with a client of Redisson in it.
type process struct {
	*link
	version string
	dir     string // of its log
	program *testenv.Program
	read    chan struct{} // closed when its output is no longer read
}

func launch(version, addr string, set settings) (*process, error) {
	java, err := testenv.Java()
	if err != nil {
		return nil, err
	}
	build, err := built(version)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "delayq-java-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for Java: %w", err)
	}
	program, err := testenv.StartProgram(exec.Command(java, flags(build, addr, set)...), filepath.Join(dir, "java.log"))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p := &process{link: newLink(program.Input()), version: version, dir: dir, program: program, read: make(chan struct{})}
	return p, p.awaitReady()
}

func flags(build, addr string, set settings) []string {
	path := []string{filepath.Join(build, "interop.jar"), filepath.Join(build, "lib", "*")}
	// The virtual machine's own messages must not disturb the protocol.
	args := []string{"-XX:+DisplayVMOutputToStderr", "-Xmx512m", "-cp", strings.Join(path, string(os.PathListSeparator)), "interop.Main"}
	if set.cluster {
		args = append(args, "--cluster")
	}
	return append(args, addr)
}

// awaitReady returns when the client is connected. The process is gone when it fails.
func (p *process) awaitReady() error {
	greeting := make(chan string, 1)
	go p.listen(greeting)
	var err error
	select {
	case line := <-greeting:
		err = checkGreeting(line, p.version)
	case <-time.After(startTime):
		err = fmt.Errorf("it was not ready within %v", startTime)
	}
	if err == nil {
		return nil
	}
	closed := p.program.Close() // first, so that its log is whole
	log := p.program.Log()
	return fmt.Errorf("starting Redisson %s: %w\nThe end of its log:\n%s", p.version, errors.Join(err, closed, p.forgetLog()), log)
}

func (p *process) listen(greeting chan<- string) {
	defer close(p.read)
	from := bufio.NewReader(p.program.Output())
	line, err := from.ReadString('\n')
	greeting <- line
	if err != nil {
		p.end()
		return
	}
	p.link.read(from)
}

func checkGreeting(line, version string) error {
	if got, ok := strings.CutPrefix(strings.TrimSpace(line), "ready "); !ok || got != version {
		return fmt.Errorf("it said %q instead of ready %s", line, version)
	}
	return nil
}

// remove ends the process and forgets its log.
func (p *process) remove() error {
	return errors.Join(p.program.Close(), p.forgetLog())
}

func (p *process) forgetLog() error {
	<-p.read
	return os.RemoveAll(p.dir)
}
