package zsetpoll

import (
	"context"
	"net/url"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/client"
	"github.com/delayq/delayq/internal/redis/store"
)

func init() { backend.Register("zsetpoll", openURL) }

// modes are the values of the parameter claims.
var modes = map[string]Mode{"script": Script, "arbitrate": Arbitrate, "mover": Mover}

// openURL reads zsetpoll://[USER:PASSWORD@]HOST[:PORT]/QUEUE[?claims=…&poll=…&prefix=…&wait_replicas=…&wait_disk=…]; package client has the
// parameters of the connection.
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
		var o options
		set(&o)
		return client.Allowed(o.Err)
	}
	target, err := client.Parse(u, client.Params{
		"claims": client.Choice(modes, func(m Mode) string { return add(Claims(m)) }),
		"poll":   client.Duration(func(d time.Duration) string { return add(Poll(d)) }),
		"prefix": func(p string) string { return add(Prefix(p)) },

		"wait_disk":     store.WaitParam(WaitDisk, add),
		"wait_replicas": store.WaitParam(WaitReplicas, add),
	})
	return target, opts, err
}

// owned makes Close close the client too.
func owned(o *options) { o.Owned = true }
