package redistest

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/testenv"
)

// Rights reads the rights that a user needs from a page of the documentation: the rows of a table
// that begin with one of these modes.
func Rights(t *testing.T, page string, modes ...string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	Must(t, err)
	var all []string
	for _, mode := range modes {
		row := regexp.MustCompile("(?m)^\\| " + mode + " \\| `([^`]+)`").FindSubmatch(text)
		if row == nil {
			t.Fatalf("%s has no rights for %s", page, mode)
		}
		all = append(all, strings.Fields(string(row[1]))...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Without returns these rights without one.
func Without(rights []string, right string) []string {
	return slices.DeleteFunc(slices.Clone(rights), func(r string) bool { return r == right })
}

// Password is the password of each user.
const Password = "secret"

// User makes a user with these rights and no other, on these keys and channels, in the notation of
// ACL SETUSER. It returns a client of that user.
func User(t *testing.T, server *testenv.RedisServer, name string, rights []string, on ...string) *redis.Client {
	t.Helper()
	rule := []any{"acl", "setuser", name, "reset", "on", ">" + Password}
	for _, o := range on {
		rule = append(rule, o)
	}
	for _, r := range rights {
		rule = append(rule, "+"+r)
	}
	Must(t, server.Client(t).Do(t.Context(), rule...).Err())
	return server.Client(t, func(o *redis.Options) { o.Username, o.Password = name, Password })
}

// denials are parts of the errors that releases of Redis and Valkey return.
var denials = []string{"noperm", "can't run this command", "has no permissions"}

// Names reports whether an error says that a user lacks a right, and names the right.
func Names(err error, right string) bool {
	text := strings.ToLower(err.Error())
	return strings.Contains(text, strings.ToLower(right)) &&
		slices.ContainsFunc(denials, func(part string) bool { return strings.Contains(text, part) })
}
