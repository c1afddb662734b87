package testenv

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bufio"
	"io"
)

// request sends a text and returns the first line of the reply.
func request(t *testing.T, addr, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	must(t, err)
	defer func() { must(t, conn.Close()) }()
	_, err = io.WriteString(conn, text)
	must(t, err)
	reply, err := bufio.NewReader(conn).ReadString('\n')
	must(t, err)
	return strings.TrimSpace(reply)
}

func TestBeanstalkd(t *testing.T) {
	In(t, All)
	for _, binlog := range []Binlog{NoBinlog, LateBinlog, SyncedBinlog} {
		s := Beanstalkd(t, binlog)
		if reply := request(t, s.Addr(), "put 0 60 60 3\r\nabc\r\n"); reply != "INSERTED 1" {
			t.Errorf("it replies %q", reply)
		}
		if logs, _ := filepath.Glob(filepath.Join(s.Dir(), "binlog.*")); len(logs) > 0 != (binlog != NoBinlog) {
			t.Errorf("with a binlog %v it has %v", binlog, logs)
		}
		must(t, s.remove())
		if _, err := os.Stat(s.Dir()); !os.IsNotExist(err) {
			t.Errorf("its directory: %v", err)
		}
		if dial(s.Addr()) == nil {
			t.Error("it listens after its end")
		}
	}
}

func TestProgramsOfBenchmarksAreRequired(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for kind, find := range map[string]func() (string, error){"beanstalkd": FindBeanstalkd, "postgres": FindPostgres} {
		t.Setenv(requireVar, "redis,"+kind)
		if _, err := find(); err != nil && skips("redis,"+kind, err) {
			t.Errorf("a run that requires %s skips: %v", kind, err)
		}
		t.Setenv(requireVar, "redis,"+kind+"x")
		if _, err := find(); err == nil || !strings.Contains(err.Error(), "is unknown") {
			t.Errorf("an unknown requirement gives %v", err)
		}
	}
}
