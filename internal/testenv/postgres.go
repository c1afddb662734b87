package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

const postgresKind = "postgres"

// FindPostgres finds the directory of the programs of PostgreSQL, which only benchmarks need. Its
// error is for Require.
func FindPostgres() (bin string, err error) {
	if err := checkRequire(os.Getenv(requireVar)); err != nil {
		return "", err
	}
	installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is a good one
	slices.Reverse(installed)
	if path, err := exec.LookPath("initdb"); err == nil {
		installed = append(installed, filepath.Dir(path))
	}
	for _, bin := range installed {
		if _, err := exec.LookPath(filepath.Join(bin, "initdb")); err == nil {
			return bin, nil
		}
	}
	return "", &absentError{postgresKind, "install PostgreSQL (on Debian: apt-get install postgresql)"}
}

// PostgresServer is a test's handle on a PostgreSQL of its own, with a superuser and a database of
// the name postgres.
type PostgresServer struct {
	process  *process
	bin, dir string
	port     int
	asUser   []string // a prefix that runs a command as another user than root
}

// Postgres starts a server that ends with the test, with settings such as "synchronous_commit=off"
// besides its defaults.
func Postgres(tb testing.TB, set ...string) *PostgresServer {
	tb.Helper()
	bin, err := FindPostgres()
	mustStart(tb, err)
	s, err := launchPostgres(bin, set)
	mustStart(tb, err)
	tb.Cleanup(func() { mustStop(tb, s.remove()) })
	return s
}

func launchPostgres(bin string, set []string) (*PostgresServer, error) {
	dir, err := os.MkdirTemp("", "delayq-postgres-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for PostgreSQL: %w", err)
	}
	s := &PostgresServer{bin: bin, dir: dir}
	if err := errors.Join(s.stepDown(), s.initialize()); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.start(set); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// stepDown finds a user to be, since PostgreSQL refuses to run as root.
func (s *PostgresServer) stepDown() error {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		return fmt.Errorf("looking for a user to run PostgreSQL: %w", err)
	}
	// Becoming another user makes the kernel forget that the process is to die with its parent.
	s.asUser = []string{"setpriv", "--reuid", u.Uid, "--regid", u.Gid, "--clear-groups", "--pdeathsig", "KILL"}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return fmt.Errorf("looking for a user to run PostgreSQL: %w", err)
	}
	return os.Chown(s.dir, uid, -1)
}

func (s *PostgresServer) command(program string, args ...string) *exec.Cmd {
	argv := append(slices.Clone(s.asUser), filepath.Join(s.bin, program))
	argv = append(argv, args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = s.dir
	return cmd
}

func (s *PostgresServer) initialize() error {
	cmd := s.command("initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "-N", "--no-locale", "-E", "UTF8")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initializing PostgreSQL: %w\n%s", err, said)
	}
	return nil
}

func (s *PostgresServer) data() string { return filepath.Join(s.dir, "data") }

// start returns when the server accepts connections.
func (s *PostgresServer) start(set []string) (err error) {
	if s.port, err = freePort(); err != nil {
		return err
	}
	args := []string{"-D", s.data(), "-h", localhost, "-p", strconv.Itoa(s.port), "-k", s.dir}
	for _, setting := range set {
		args = append(args, "-c", setting)
	}
	if s.process, err = startProcess(s.command("postgres", args...), filepath.Join(s.dir, "postgres.log")); err != nil {
		return err
	}
	if err = await("PostgreSQL to accept connections", s.isUp); err != nil {
		return fmt.Errorf("%w\nThe end of its log:\n%s", errors.Join(err, s.process.kill()), s.process.tail())
	}
	return nil
}

// isUp is the condition to await.
func (s *PostgresServer) isUp() (final bool, err error) {
	if s.process.ended() {
		return true, errors.New("it has ended")
	}
	return false, s.command("pg_isready", "-q", "-h", localhost, "-p", strconv.Itoa(s.port)).Run()
}

// URL is where the server is.
func (s *PostgresServer) URL() string {
	return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", address(s.port))
}

// Pid is the process id of the server's first process, the parent of the others.
func (s *PostgresServer) Pid() int { return s.process.pid }

// remove has the server end by itself, for it leaves shared memory when it is killed.
func (s *PostgresServer) remove() error {
	if !s.process.ended() {
		_ = s.command("pg_ctl", "stop", "-D", s.data(), "-m", "immediate", "-t", "20").Run() // else it is killed
	}
	if err := s.process.kill(); err != nil {
		return err
	}
	return os.RemoveAll(s.dir)
}
