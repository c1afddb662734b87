package testenv

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const beanstalkdKind = "beanstalkd"

// FindBeanstalkd finds the program, which only benchmarks need. Its error is for Require.
func FindBeanstalkd() (string, error) {
	if err := checkRequire(os.Getenv(requireVar)); err != nil {
		return "", err
	}
	if binary := findServer("beanstalkd"); binary != "" {
		return binary, nil
	}
	return "", &absentError{beanstalkdKind, "install beanstalkd (on Debian: apt-get install beanstalkd)"}
}

// BeanstalkdServer is a test's handle on a beanstalkd of its own.
type BeanstalkdServer struct {
	process *process
	dir     string
	port    int
}

// Beanstalkd starts a server that ends with the test. It keeps jobs in memory, and with a binlog in
// files, too.
func Beanstalkd(tb testing.TB, binlog bool) *BeanstalkdServer {
	tb.Helper()
	binary, err := FindBeanstalkd()
	mustStart(tb, err)
	s, err := launchBeanstalkd(binary, binlog)
	mustStart(tb, err)
	tb.Cleanup(func() { mustStop(tb, s.remove()) })
	return s
}

func launchBeanstalkd(binary string, binlog bool) (*BeanstalkdServer, error) {
	dir, err := os.MkdirTemp("", "delayq-beanstalkd-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for beanstalkd: %w", err)
	}
	s := &BeanstalkdServer{dir: dir}
	for range 10 {
		if err = s.start(binary, binlog); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// start returns when the server takes connections.
func (s *BeanstalkdServer) start(binary string, binlog bool) (err error) {
	if s.port, err = freePort(); err != nil {
		return err
	}
	args := []string{"-l", localhost, "-p", strconv.Itoa(s.port)}
	if binlog {
		args = append(args, "-b", s.dir)
	}
	if s.process, err = startProcess(exec.Command(binary, args...), filepath.Join(s.dir, "beanstalkd.log")); err != nil {
		return err
	}
	err = await("beanstalkd to take connections", s.listens)
	if err == nil {
		return nil
	}
	err = errors.Join(err, s.process.kill())
	log := s.process.tail()
	if strings.Contains(log, "Address already in use") {
		err = errors.Join(errPortTaken, err)
	}
	return fmt.Errorf("starting beanstalkd on port %d: %w\nThe end of its log:\n%s", s.port, err, log)
}

// listens is the condition to await. A server that did not get its port ends at once.
func (s *BeanstalkdServer) listens() (final bool, err error) {
	if s.process.ended() {
		return true, errors.New("it has ended")
	}
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return false, err
	}
	return false, conn.Close()
}

// Addr is the server's host and port.
func (s *BeanstalkdServer) Addr() string { return address(s.port) }

// Pid is the server's process id.
func (s *BeanstalkdServer) Pid() int { return s.process.pid }

// Dir is where it keeps its binlog.
func (s *BeanstalkdServer) Dir() string { return s.dir }

func (s *BeanstalkdServer) remove() error {
	if err := s.process.kill(); err != nil {
		return err
	}
	return os.RemoveAll(s.dir)
}
