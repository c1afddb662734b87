package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
)

const pgbouncerKind = "pgbouncer"

// FindPgBouncer finds the program, which only tests of postgres need. Its error is for Require.
func FindPgBouncer() (string, error) {
	if err := checkRequire(os.Getenv(requireVar)); err != nil {
		return "", err
	}
	if binary := findServer("pgbouncer"); binary != "" {
		return binary, nil
	}
	return "", &absentError{pgbouncerKind, "install PgBouncer (on Debian: apt-get install pgbouncer)"}
}

// PgBouncerServer is a test's handle on a PgBouncer of its own.
type PgBouncerServer struct{ local }

// PgBouncer starts a connection pooler in front of a server, which ends with the test. mode is its
// pool_mode, such as "transaction".
func PgBouncer(tb testing.TB, behind *PostgresServer, mode string) *PgBouncerServer {
	tb.Helper()
	binary, err := FindPgBouncer()
	Require(tb, err)
	s, err := launchPgBouncer(binary, behind, mode)
	return own(tb, s, err)
}

// Eight connections to the server for each database are fewer than the clients have.
const pgbouncerConfig = `[databases]
* = host=%s port=%d user=postgres
[pgbouncer]
listen_addr = %s
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = %s
max_client_conn = 2000
default_pool_size = 8
ignore_startup_parameters = extra_float_digits
`

func launchPgBouncer(binary string, behind *PostgresServer, mode string) (*PgBouncerServer, error) {
	l, err := newLocal("pgbouncer")
	if err != nil {
		return nil, err
	}
	s := &PgBouncerServer{l}
	return s, s.launch(func() (err error) {
		if s.port, err = freePort(); err != nil {
			return err
		}
		file := s.file("pgbouncer.ini")
		text := fmt.Sprintf(pgbouncerConfig, localhost, behind.local.port, localhost, s.port, mode)
		if err := errors.Join(os.WriteFile(file, []byte(text), 0o644), os.Chmod(s.dir, 0o755)); err != nil { //nolint:gosec // it runs as another user than root
			return err
		}
		argv := append(slices.Clone(behind.asUser), binary, file)
		return s.run(exec.Command(argv[0], argv[1:]...), func() error { return dial(s.addr()) }, "Address already in use")
	})
}

// URL is where the database of the name postgres is.
func (s *PgBouncerServer) URL() string {
	return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", s.addr())
}
