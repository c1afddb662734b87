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
	"sync"
	"testing"
)

const postgresKind = "postgres"

// FindPostgres finds the directory of the programs of PostgreSQL, for tests of postgres and benchmarks.
// Its error is for Require.
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
	local  local
	bin    string
	asUser []string // a prefix that runs a command as another user than root
	set    []string // settings
}

// Postgres starts a server that ends with the test, with settings such as "synchronous_commit=off"
// besides its defaults.
func Postgres(tb testing.TB, set ...string) *PostgresServer {
	tb.Helper()
	bin, err := FindPostgres()
	Require(tb, err)
	s, err := launchPostgres(bin, set, (*PostgresServer).initialize)
	return own(tb, s, err)
}

func launchPostgres(bin string, set []string, fill func(*PostgresServer) error) (*PostgresServer, error) {
	l, err := newLocal("postgres")
	if err != nil {
		return nil, err
	}
	s := &PostgresServer{local: l, bin: bin, set: set}
	if err := errors.Join(s.chooseUser(), fill(s)); err != nil {
		return nil, errors.Join(err, s.local.remove())
	}
	return s, s.local.launch(func() (err error) {
		if s.local.port, err = freePort(); err != nil {
			return err
		}
		return s.start()
	})
}

// chooseUser finds a user to be, since PostgreSQL does not run as root.
func (s *PostgresServer) chooseUser() error {
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
	// When a process becomes another user, the kernel no longer ends it with its parent.
	s.asUser = []string{"setpriv", "--reuid", u.Uid, "--regid", u.Gid, "--clear-groups", "--pdeathsig", "KILL"}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return fmt.Errorf("looking for a user to run PostgreSQL: %w", err)
	}
	return os.Chown(s.local.dir, uid, -1)
}

func (s *PostgresServer) command(program string, args ...string) *exec.Cmd {
	argv := append(slices.Clone(s.asUser), filepath.Join(s.bin, program))
	argv = append(argv, args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = s.local.dir
	return cmd
}

func (s *PostgresServer) initialize() error {
	cmd := s.command("initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "-N", "--no-locale", "-E", "UTF8")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initializing PostgreSQL: %w\n%s", err, said)
	}
	return nil
}

func (s *PostgresServer) data() string { return s.local.file("data") }

// start returns when the server accepts connections.
func (s *PostgresServer) start() error {
	at := []string{"-h", localhost, "-p", strconv.Itoa(s.local.port)}
	args := append([]string{"-D", s.data(), "-k", s.local.dir}, at...)
	for _, setting := range s.set {
		args = append(args, "-c", setting)
	}
	return s.local.run(s.command("postgres", args...), func() error {
		return s.command("pg_isready", append(at, "-q")...).Run()
	}, "Address already in use")
}

// URL is where the server is.
func (s *PostgresServer) URL() string {
	return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", s.local.addr())
}

// Addr is the server's host and port.
func (s *PostgresServer) Addr() string { return s.local.addr() }

// Pid is the process id of the server's first process, the parent of the others.
func (s *PostgresServer) Pid() int { return s.local.pid }

// Kill ends all processes of the server at once, as a crash does.
func (s *PostgresServer) Kill(tb testing.TB) {
	tb.Helper()
	all, err := s.halt()
	for _, pid := range all {
		err = errors.Join(err, killProcess(pid))
	}
	if err := errors.Join(err, s.local.kill()); err != nil {
		tb.Fatalf("killing PostgreSQL: %v", err)
	}
	if err := await("the processes of PostgreSQL to end", func() (bool, error) {
		for _, pid := range all {
			if isRunning(pid) {
				return false, fmt.Errorf("process %d runs", pid)
			}
		}
		return true, nil
	}); err != nil {
		tb.Fatal(err)
	}
}

// Stop ends the server with "pg_ctl stop", in a mode of that: "fast" rolls back what is open and makes
// a checkpoint, and "immediate" is a crash, after which the next start recovers.
func (s *PostgresServer) Stop(tb testing.TB, mode string) {
	tb.Helper()
	said, err := s.command("pg_ctl", "stop", "-D", s.data(), "-m", mode, "-t", "60").CombinedOutput()
	if err == nil {
		err = await("PostgreSQL to end", func() (bool, error) { return s.local.ended(), nil })
	}
	if err != nil {
		tb.Fatalf("stopping PostgreSQL: %v\n%s", err, said)
	}
}

// Restart starts a server that was killed or stopped, at its old address. It returns when it accepts connections.
func (s *PostgresServer) Restart(tb testing.TB) {
	tb.Helper()
	if err := s.start(); err != nil {
		tb.Fatalf("restarting PostgreSQL: %v", err)
	}
}

// Pause stops all processes of the server, which then accepts connections and says nothing, until
// the returned function lets it go on.
func (s *PostgresServer) Pause(tb testing.TB) (resume func()) {
	tb.Helper()
	stopped, err := s.halt()
	if err != nil {
		tb.Fatalf("pausing PostgreSQL: %v", err)
	}
	return sync.OnceFunc(func() {
		for _, pid := range stopped {
			_ = continueProcess(pid) // it may have been killed meanwhile
		}
		_ = s.local.resume()
	})
}

// halt stops the server's processes, and returns those of them that lead process groups of their
// own.
func (s *PostgresServer) halt() (children []int, err error) {
	if err := s.local.pause(); err != nil { // it starts no more of them
		return nil, err
	}
	children, err = childrenOf(s.local.pid)
	for _, pid := range children {
		err = errors.Join(err, stopProcess(pid))
	}
	return children, err
}

// remove lets the server end by itself, since it leaves shared memory when it is killed.
func (s *PostgresServer) remove() error {
	if !s.local.ended() {
		// if this fails, it is killed
		_ = s.command("pg_ctl", "stop", "-D", s.data(), "-m", "immediate", "-t", "20").Run()
	}
	return s.local.remove()
}
