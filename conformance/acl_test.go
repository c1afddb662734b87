package conformance_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/zsetpoll"
)

// rightsOf reads what docs/redis.md says that a user has to be allowed, by mode.
func rightsOf(t *testing.T, mode string) []string {
	t.Helper()
	page, err := os.ReadFile("../docs/redis.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| ` + mode + ` \| ` + "`([^`]+)`").FindSubmatch(page)
	if row == nil {
		t.Fatalf("docs/redis.md has no rights for %s", mode)
	}
	rights := strings.Fields(string(row[1]))
	if mode != "all" {
		rights = append(rightsOf(t, "all"), rights...)
	}
	return rights
}

// aclModes are the ways to run on a server of Redis.
var aclModes = map[string]func(redis.UniversalClient, string) backend.Backend{
	"zsetpoll": func(c redis.UniversalClient, prefix string) backend.Backend {
		return zsetpoll.New(c, zsetpoll.Prefix(prefix))
	},
	"zsetpoll-arbitrate": func(c redis.UniversalClient, prefix string) backend.Backend {
		return zsetpoll.New(c, zsetpoll.Prefix(prefix), zsetpoll.Claims(zsetpoll.Arbitrate))
	},
	"zsetpoll-mover": func(c redis.UniversalClient, prefix string) backend.Backend {
		return zsetpoll.New(c, zsetpoll.Prefix(prefix), zsetpoll.Claims(zsetpoll.Mover))
	},
	"keyspace": func(c redis.UniversalClient, prefix string) backend.Backend {
		return keyspace.New(c, keyspace.Prefix(prefix), keyspace.Sweep(200*time.Millisecond))
	},
}

// allow gives a user these rights and no other, on keys and channels of the suite.
func allow(t *testing.T, server *testenv.RedisServer, rights ...string) {
	t.Helper()
	rule := []any{"acl", "setuser", "worker", "reset", "on", ">secret", "~conformance-*", "&conformance-*", "&__key*__:*"}
	for _, r := range rights {
		rule = append(rule, "+"+r)
	}
	if err := server.Client(t).Do(t.Context(), rule...).Err(); err != nil {
		t.Fatal(err)
	}
}

// asWorker are the options of that user.
func asWorker(server *testenv.RedisServer) *redis.Options {
	o := server.Options()
	o.Username, o.Password = "worker", "secret"
	return o
}

// TestRights runs the suite as a user who may do what docs/redis.md says and nothing else.
func TestRights(t *testing.T) {
	for mode, open := range aclModes {
		t.Run(mode, func(t *testing.T) {
			server := testenv.Redis(t, testenv.Private())
			allow(t, server, rightsOf(t, mode)...)
			h := redisHarness(func() redis.UniversalClient { return redis.NewClient(asWorker(server)) }, open)
			h.Leftovers = nil // KEYS is not for workers
			conformance.Run(t, h)
			if os.Getenv("RS_STATS") != "" {
				info, _ := server.Client(t).Info(context.Background(), "commandstats").Result()
				var names []string
				for _, m := range regexp.MustCompile(`cmdstat_([^:]+):`).FindAllStringSubmatch(info, -1) {
					names = append(names, m[1])
				}
				slices.Sort(names)
				fmt.Println(mode, strings.Join(names, " "))
			}
		})
	}
}
