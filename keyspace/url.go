package keyspace

import (
	"context"
	"net/url"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/client"
	"github.com/delayq/delayq/internal/redis/setup"
)

func init() { backend.Register("keyspace", openURL) }

// openURL opens a queue whose expiry events are those of the client's own database.
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
			"prefix":        func(p string) string { return add(Prefix(p)) },
			"shards":        client.Number(func(n int) string { return add(Shards(n)) }),
			"sweep":         client.Duration(func(d time.Duration) string { return add(Sweep(d)) }),
			"wait_disk":     setup.Wait(add, WaitDisk),
			"wait_replicas": setup.Wait(add, WaitReplicas),
		}
	})
}

// owned makes Close close the client too.
func owned(c *setup.Config) { c.Owned = true }
