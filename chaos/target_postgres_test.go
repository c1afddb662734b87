package chaos

import (
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/delayq/delayq/internal/testenv"
)

// postgresTarget is a server with its default durability, and proxies. Nothing that it has
// acknowledged may be lost.
func postgresTarget(t *testing.T) *target {
	t.Helper()
	// Each client has connections of its own.
	s := testenv.Postgres(t, "max_connections=300")
	p, toxic := testenv.Proxy(t, s.Addr()), newToxicProxy(t, s.Addr())
	at := func(host string) Endpoint { return Endpoint{Backend: "postgres", Addr: withHost(t, s.URL(), host)} }
	v := &target{
		name: "postgres", rate: 3000, drainTime: time.Minute, leftovers: remains, direct: at(s.Addr()), proxied: at(p.Addr()), poison: 2,
		opens:  []OpenFunc{at(s.Addr()).Open, at(p.Addr()).Open, at(toxic.Listen).Open},
		faults: slices.Concat(networkFaults(p, postgresGreeting), toxicFaults(toxic, postgresGreeting), postgresFaults(s, adminPool(t, s.URL()))),
	}
	b, err := v.opens[0](t.Context())
	must(t, err)
	defer func() { _ = b.Close() }()
	q, err := b.Open(t.Context(), queueName, quiet) // it makes the tables, before the first fault
	must(t, err)
	must(t, q.Close())
	return v
}

// adminPool has one connection for the test's own statements.
func adminPool(t *testing.T, url string) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(url)
	must(t, err)
	cfg.MaxConns = 1
	cfg.ConnConfig.RuntimeParams["application_name"] = adminName
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	must(t, err)
	t.Cleanup(pool.Close)
	return pool
}
