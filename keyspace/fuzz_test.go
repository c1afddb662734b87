package keyspace

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/redis/redistest"
)

func FuzzURL(f *testing.F) {
	redistest.FuzzURL(f, parseURL, func(c redis.UniversalClient, opts []Option) error {
		b := New(c, opts...).queues
		if b.Poll <= 0 {
			return errors.New("no sleep")
		}
		return b.Err
	},
		"keyspace://host/orders?sweep=1s&prefix=mine", "keyspace://host/orders?sweep=1ns", "keyspace://h/o?prefix={a}",
		"keyspace://h/o?prefix=%00", "keyspace://h/o?prefix=%2A&sweep=1m1ns", "keyspace://:pw@h:1/o%2A?sweep=-1h", "keyspace://h/o?sweep=1e9h",
	)
}
