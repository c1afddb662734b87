package testenv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// local is a server that was started here, on a port of its own and in a directory of its own.
type local struct {
	*process // nil before the first start
	name     string
	dir      string
	port     int
}

var errPortTaken = errors.New("another process took the port")

// newLocal makes the directory of a server that has not been started.
func newLocal(name string) (local, error) {
	dir, err := os.MkdirTemp("", "delayq-"+name+"-")
	if err != nil {
		return local{}, fmt.Errorf("making a directory for %s: %w", name, err)
	}
	return local{name: name, dir: dir}, nil
}

// launch starts a server for the first time, and removes it where that fails. It tries again while
// other processes are faster to take a port.
func (l *local) launch(start func() error) (err error) {
	for range 10 {
		if err = start(); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		return errors.Join(err, l.remove())
	}
	return nil
}

// run starts the server, and returns when it is up. A server that ends with one of the complaints in
// its log has not got its port.
func (l *local) run(cmd *exec.Cmd, isUp func() error, complaints ...string) error {
	if err := l.spawn(cmd); err != nil {
		return err
	}
	return l.awaitUp(patience, isUp, complaints...)
}

func (l *local) spawn(cmd *exec.Cmd) (err error) {
	l.process, err = startProcess(cmd, l.file(l.name+".log"))
	return err
}

func (l *local) awaitUp(limit time.Duration, isUp func() error, complaints ...string) error {
	err := awaitFor(limit, l.name+" to reply", func() (bool, error) {
		if l.ended() {
			return true, errors.New("it has ended")
		}
		return false, isUp()
	})
	if err == nil {
		return nil
	}
	ended := l.ended()
	err = errors.Join(err, l.kill())
	log := l.complaint()
	if ended && slices.ContainsFunc(complaints, func(c string) bool { return strings.Contains(log, c) }) {
		err = errors.Join(errPortTaken, err)
	}
	return fmt.Errorf("starting %s on port %d: %w\nFrom its log:\n%s", l.name, l.port, err, log)
}

// complaint returns the log from a broker's first error on, since pages of consequences follow the
// cause, or else the end of the log.
func (l *local) complaint() string {
	const most = 4000
	log, err := os.ReadFile(l.log)
	if err != nil {
		return err.Error()
	}
	log = log[min(int(l.from), len(log)):]
	if first := bytes.Index(log, []byte("[error]")); first >= 0 {
		return string(log[first:min(first+most, len(log))])
	}
	return l.tail()
}

func (l *local) file(name string) string { return filepath.Join(l.dir, name) }

func (l *local) addr() string { return address(l.port) }

// remove ends the server and deletes its data.
func (l *local) remove() error {
	if l.process != nil {
		if err := l.kill(); err != nil {
			return err
		}
	}
	// A program of the server may outlive it for a moment, and write a file: once a minute a broker starts an Erlang,
	// in a session of its own, that makes a cookie where there is none.
	return await("its directory to go", func() (bool, error) { return false, os.RemoveAll(l.dir) })
}
