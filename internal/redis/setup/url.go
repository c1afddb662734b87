package setup

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/redis/client"
)

// A Parser reads a URL of a backend, and returns the options that its parameters stand for.
type Parser[Option any] func(*url.URL) (*client.Target, []Option, error)

// Open connects to what a URL names. It returns the client, the options and the queue's name.
func Open[Option any](ctx context.Context, u *url.URL, parse Parser[Option]) (redis.UniversalClient, []Option, string, error) {
	target, opts, err := parse(u)
	if err != nil {
		return nil, nil, "", err
	}
	c, err := target.Connect(ctx)
	if err != nil {
		return nil, nil, "", err
	}
	return c, opts, target.Queue, nil
}

// ParseURL reads a URL. add gets the options of the backend's own parameters, and returns the
// allowed values where a value is bad. errOf returns the error that the options have left in the
// settings.
func ParseURL[C any, Option ~func(*C)](
	u *url.URL, errOf func(*C) error, params func(add func(Option) (allowed string)) client.Params,
) (*client.Target, []Option, error) {
	var opts []Option
	target, err := client.Parse(u, params(func(set Option) string {
		opts = append(opts, set)
		c := new(C)
		set(c)
		return client.Allowed(errOf(c))
	}))
	return target, opts, err
}

// Wait reads a parameter "REPLICAS,DURATION" for an option of both.
func Wait[Option any](add func(Option) (allowed string), option func(int, time.Duration) Option) client.Param {
	return func(value string) string {
		count, within, _ := strings.Cut(value, ",")
		n, err := strconv.Atoi(count)
		d, err2 := time.ParseDuration(within)
		if err != nil || err2 != nil {
			return `how many replicas and for how long, as "1,500ms"`
		}
		return add(option(n, d))
	}
}
