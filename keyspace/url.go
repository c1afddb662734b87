package keyspace

import (
	"context"
	"net/url"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/client"
	"github.com/delayq/delayq/internal/redis/store"
)

func init() { backend.Register("keyspace", openURL) }

// openURL reads keyspace://[USER:PASSWORD@]HOST[:PORT]/QUEUE[?prefix=…&sweep=…&wait_replicas=…&wait_disk=…]; package client has the
// parameters of the connection. The events are those of the client's own database.
func openURL(ctx context.Context, u *url.URL) (backend.Backend, string, error) {
	target, opts, err := parseURL(u)
	if err != nil {
		return nil, "", err
	}
	client, err := target.Connect(ctx)
	if err != nil {
		return nil, "", err
	}
	return New(client, append(opts, owned)...), target.Queue, nil
}

func parseURL(u *url.URL) (*client.Target, []Option, error) {
	var opts []Option
	add := func(set Option) string {
		opts = append(opts, set)
		var c store.Config
		set(&c)
		return client.Allowed(c.Err)
	}
	target, err := client.Parse(u, client.Params{
		"prefix": func(p string) string { return add(Prefix(p)) },

		"wait_disk":     store.WaitParam(WaitDisk, add),
		"wait_replicas": store.WaitParam(WaitReplicas, add),
		"sweep":         client.Duration(func(d time.Duration) string { return add(Sweep(d)) }),
	})
	return target, opts, err
}

// owned makes Close close the client too.
func owned(c *store.Config) { c.Owned = true }
