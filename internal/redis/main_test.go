// Package redis_test holds the tests that run over all backends on Redis.
package redis_test

import (
	"slices"
	"testing"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/redis/go-redis/v9"
)

func TestMain(m *testing.M) {
	redistest.Main(m, func(mode string, c redis.UniversalClient) backend.Backend {
		return stores[slices.IndexFunc(stores, func(s store) bool { return s.name == mode })].open(c)
	})
}

var (
	must   = redistest.Must
	await  = redistest.Await
	leases = redistest.Leases
)

// backends are those on Redis, by the scheme of their URLs.
var backends = []struct {
	scheme  string
	queries []string // of URLs that open it
	key     string   // a part of each key, with ?prefix=mine
}{
	{"zsetpoll", []string{"", "?claims=script", "?claims=arbitrate", "?claims=mover&poll=50ms", "?db=2&pool_size=4"}, "mine:{orders}:"},
	{"keyspace", []string{"", "?sweep=50ms", "?db=2&pool_size=4"}, "mine:{orders}:"},
	{"redisson", []string{
		"", "?codec=bytes&prefix=1:", "?codec=kryo5&format=v1&prefix=2:", "?codec=envelope&index=false&prefix=3:",
		"?codec=marshalling&format=both&any_format=true&sweep=50ms&prefix=4:", "?db=2&pool_size=4&index=true&any_format=false",
	}, "mineorders"},
}
