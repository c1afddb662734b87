package zsetpoll

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
		"zsetpoll://host/orders?claims=script&poll=1s&prefix=mine", "zsetpoll://host/orders?claims=mover&poll=1ns", "zsetpoll://h/o?prefix={a}",
		"zsetpoll://h/o?prefix=%00", "zsetpoll://h/o?prefix=*&claims=arbitrate", "zsetpoll://:pw@h:1/o%2A?poll=-1h", "zsetpoll://h/o?poll=1e9h",
	)
}
