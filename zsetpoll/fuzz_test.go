package zsetpoll

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
		"zsetpoll://host/orders?claims=script&poll=1s&prefix=mine", "zsetpoll://host/orders?claims=mover&poll=1ns", "zsetpoll://h/o?prefix={a}",
		"zsetpoll://h/o?prefix=%00", "zsetpoll://h/o?prefix=*&claims=arbitrate", "zsetpoll://:pw@h:1/o%2A?poll=-1h", "zsetpoll://h/o?poll=1e9h",
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
