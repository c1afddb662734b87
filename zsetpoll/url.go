package zsetpoll

import (
	"context"
	"net/url"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/client"
	"github.com/delayq/delayq/internal/redis/setup"
)

func init() {
	backend.Register("zsetpoll", openURL)
	for _, scheme := range []string{"redis", "rediss", "unix"} {
		backend.RegisterAlias(scheme, func(u *url.URL, queue string) (*url.URL, error) { return client.Native(u, "zsetpoll", queue) })
	}
}

// modes are the values of the parameter claims.
var modes = map[string]Mode{"script": Script, "arbitrate": Arbitrate, "mover": Mover}

func openURL(ctx context.Context, u *url.URL) (backend.Backend, string, error) {
	c, opts, name, err := setup.Open(ctx, u, parseURL)
	if err != nil {
		return nil, "", err
	}
	return New(c, append(opts, owned)...), name, nil
}

// parseURL reads the parameters of this backend. Package client reads those of the connection.
func parseURL(u *url.URL) (*client.Target, []Option, error) {
	return setup.ParseURL(u, func(c *setup.Config) error { return c.Err }, func(add func(Option) string) client.Params {
		return client.Params{
			"claims":        client.Choice(modes, func(m Mode) string { return add(Claims(m)) }),
			"poll":          client.Duration(func(d time.Duration) string { return add(Poll(d)) }),
			"prefix":        func(p string) string { return add(Prefix(p)) },
			"shards":        client.Number(func(n int) string { return add(Shards(n)) }),
			"wait_disk":     setup.Wait(add, WaitDisk),
			"wait_replicas": setup.Wait(add, WaitReplicas),
		}
	})
}

// owned makes Close close the client too.
func owned(c *setup.Config) { c.Owned = true }
