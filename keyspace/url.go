package keyspace

import (
	"context"
	"net/url"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redisstore"
	"github.com/delayq/delayq/internal/redisurl"
)

func init() { backend.Register("keyspace", openURL) }

// openURL reads keyspace://[USER:PASSWORD@]HOST[:PORT]/QUEUE[?prefix=…&sweep=…&wait_replicas=…&wait_disk=…]; package redisurl has the
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

func parseURL(u *url.URL) (*redisurl.Target, []Option, error) {
	var opts []Option
	add := func(set Option) string {
		opts = append(opts, set)
		var c redisstore.Config
		set(&c)
		return redisurl.Allowed(c.Err)
	}
	target, err := redisurl.Parse(u, redisurl.Params{
		"prefix": func(p string) string { return add(Prefix(p)) },

		"wait_disk":     redisstore.WaitParam(WaitDisk, add),
		"wait_replicas": redisstore.WaitParam(WaitReplicas, add),
		"sweep":         redisurl.Duration(func(d time.Duration) string { return add(Sweep(d)) }),
	})
	return target, opts, err
}

// owned makes Close close the client too.
func owned(c *redisstore.Config) { c.Owned = true }
