package testenv

import (
	"fmt"
	"testing"
)

// Replica starts a server that follows this one, and only reads until [PostgresServer.Promote]. It
// ends with the test.
func (s *PostgresServer) Replica(tb testing.TB) *PostgresServer {
	tb.Helper()
	r, err := launchPostgres(s.bin, nil, func(r *PostgresServer) error {
		cmd := r.command("pg_basebackup", "-D", r.data(), "-d", s.URL(), "--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream")
		if said, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("copying PostgreSQL: %w\n%s", err, said)
		}
		return nil
	})
	return own(tb, r, err)
}

// Promote makes a replica a server of its own, which takes writes when it returns.
func (s *PostgresServer) Promote(tb testing.TB) {
	tb.Helper()
	if said, err := s.command("pg_ctl", "promote", "-D", s.data(), "-w", "-t", "60").CombinedOutput(); err != nil {
		tb.Fatalf("promoting PostgreSQL: %v\n%s", err, said)
	}
}
