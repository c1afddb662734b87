package testenv

import (
	"net/url"
	"os"
	"testing"
)

func TestPostgres(t *testing.T) {
	In(t, All)
	s := Postgres(t, "synchronous_commit=off")
	at, err := url.Parse(s.URL())
	must(t, err)
	must(t, s.command("psql", "-h", at.Hostname(), "-p", at.Port(), "-U", "postgres", "-c", "CREATE TABLE t (n int)").Run())
	must(t, s.remove())
	if _, err := os.Stat(s.local.dir); !os.IsNotExist(err) {
		t.Errorf("its directory: %v", err)
	}
	if dial(at.Host) == nil {
		t.Error("it listens after its end")
	}
}
