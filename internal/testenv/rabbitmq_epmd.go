package testenv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// epmd tells Erlang nodes where they find one another. Erlang would start one that is never ended;
// this one is a process like any other, and the machine's own is not used.
type epmd struct {
	dir     string
	port    int
	process *process
}

func startEpmd() (*epmd, error) {
	dir, err := os.MkdirTemp("", "delayq-epmd-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for epmd: %w", err)
	}
	e := &epmd{dir: dir}
	if err := retryPorts(e.start); err != nil {
		return nil, errors.Join(fmt.Errorf("starting epmd: %w", err), os.RemoveAll(dir))
	}
	return e, nil
}

func (e *epmd) start() (err error) {
	if e.port, err = freePort(); err != nil {
		return err
	}
	return e.run(filepath.Join(e.dir, "epmd.log"))
}

func (e *epmd) run(log string) (err error) {
	cmd := exec.Command(findErlang("epmd"), "-port", strconv.Itoa(e.port), "-address", localhost)
	if e.process, err = startProcess(cmd, log); err != nil {
		return err
	}
	if err := await("epmd to reply", e.isUp); err != nil {
		return errors.Join(err, e.process.kill())
	}
	return nil
}

// isUp is the condition to await.
func (e *epmd) isUp() (final bool, err error) {
	err = askEpmd(e.port)
	if e.process.ended() {
		return true, fmt.Errorf("%w: epmd has ended: %s", errPortTaken, e.process.tail())
	}
	return false, err
}

// askEpmd asks for the names of the nodes. The reply begins with the port.
func askEpmd(port int) error {
	conn, err := net.DialTimeout("tcp", address(port), time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Second)) // of an open connection this cannot fail
	if _, err = conn.Write([]byte{0, 1, 'n'}); err != nil {
		return err
	}
	var answer uint32
	if err = binary.Read(conn, binary.BigEndian, &answer); err == nil && answer != uint32(port) {
		err = fmt.Errorf("it says %d instead of %d", answer, port)
	}
	return err
}

func (e *epmd) remove() error { return errors.Join(e.process.kill(), os.RemoveAll(e.dir)) }

// retryPorts tries again while other processes are faster to take a port.
func retryPorts(start func() error) (err error) {
	for range 10 {
		if err = start(); !errors.Is(err, errPortTaken) {
			break
		}
	}
	return err
}
