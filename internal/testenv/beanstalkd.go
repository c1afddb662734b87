package testenv

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
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
type BeanstalkdServer struct{ local }

// A Binlog is where a beanstalkd keeps jobs besides its memory.
type Binlog int

// Binlogs.
const (
	NoBinlog     Binlog = iota
	LateBinlog          // files that it syncs every 50 ms, as it does by default
	SyncedBinlog        // files that it syncs at each write
)

// Beanstalkd starts a server that ends with the test.
func Beanstalkd(tb testing.TB, binlog Binlog) *BeanstalkdServer {
	tb.Helper()
	binary, err := FindBeanstalkd()
	Require(tb, err)
	s, err := launchBeanstalkd(binary, binlog)
	return own(tb, s, err)
}

func launchBeanstalkd(binary string, binlog Binlog) (*BeanstalkdServer, error) {
	l, err := newLocal("beanstalkd")
	if err != nil {
		return nil, err
	}
	s := &BeanstalkdServer{l}
	return s, s.launch(func() (err error) {
		if s.port, err = freePort(); err != nil {
			return err
		}
		args := []string{"-l", localhost, "-p", strconv.Itoa(s.port)}
		if binlog != NoBinlog {
			args = append(args, "-b", s.Dir())
		}
		if binlog == SyncedBinlog {
			args = append(args, "-f", "0")
		}
		return s.run(exec.Command(binary, args...), func() error { return dial(s.Addr()) }, "Address already in use")
	})
}

// Addr is the server's host and port.
func (s *BeanstalkdServer) Addr() string { return s.addr() }

// Pid is the server's process id.
func (s *BeanstalkdServer) Pid() int { return s.pid }

// Dir is where it keeps its binlog.
func (s *BeanstalkdServer) Dir() string { return s.dir }
