package zsetpoll

import (
	"context"
	"net/url"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redisstore"
	"github.com/delayq/delayq/internal/redisurl"
)

func init() { backend.Register("zsetpoll", openURL) }

// modes are the values of the parameter claims.
var modes = map[string]Mode{"script": Script, "arbitrate": Arbitrate, "mover": Mover}

// openURL reads zsetpoll://[USER:PASSWORD@]HOST[:PORT]/QUEUE[?claims=…&poll=…&prefix=…&wait_replicas=…&wait_disk=…]; package redisurl has the
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

func parseURL(u *url.URL) (*redisurl.Target, []Option, error) {
	var opts []Option
	add := func(set Option) string {
		opts = append(opts, set)
		var o options
		set(&o)
		return redisurl.Allowed(o.Err)
	}
	target, err := redisurl.Parse(u, redisurl.Params{
		"claims": redisurl.Choice(modes, func(m Mode) string { return add(Claims(m)) }),
		"poll":   redisurl.Duration(func(d time.Duration) string { return add(Poll(d)) }),
		"prefix": func(p string) string { return add(Prefix(p)) },

		"wait_disk":     redisstore.WaitParam(WaitDisk, add),
		"wait_replicas": redisstore.WaitParam(WaitReplicas, add),
	})
	return target, opts, err
}

// owned makes Close close the client too.
func owned(o *options) { o.Owned = true }
