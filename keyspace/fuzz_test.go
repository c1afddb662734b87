package keyspace

import (
	"errors"
	"net/url"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
)

// FuzzURL wants each URL rejected with a typed error, or options that New takes.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"keyspace://host/orders?sweep=1s&prefix=mine", "keyspace://host/orders?sweep=1ns", "keyspace://h/o?prefix={a}",
		"keyspace://h/o?prefix=%00", "keyspace://h/o?prefix=%2A&sweep=1m1ns", "keyspace://:pw@h:1/o%2A?sweep=-1h", "keyspace://h/o?sweep=1e9h",
	} {
		f.Add(seed)
	}
	client := redis.NewClient(&redis.Options{Addr: "localhost:1"}) // never dialled
	f.Cleanup(func() { _ = client.Close() })
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil {
			t.Skip("the parser of package url rejects it")
		}
		target, opts, err := parseURL(u)
		if err != nil {
			if !errors.Is(err, backend.ErrInvalid) {
				t.Fatalf("%q is rejected with %v", text, err)
			}
			return
		}
		if b := New(client, opts...).queues; b.Err != nil || b.Poll <= 0 || target.Queue == "" {
			t.Fatalf("%q gives queue %q, a sleep of %v, error %v", text, target.Queue, b.Poll, b.Err)
		}
	})
}
