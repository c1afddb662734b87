package redisson

import (
	"context"
	"net/url"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/client"
)

func init() { backend.Register(name, openURL) }

// The values of the parameters format and index.
var (
	formatNames = map[string]MemberFormat{"v1": V1, "v2": V2, "both": Both}
	switches    = map[string]bool{"true": true, "false": false}
)

// openURL reads redisson://[USER:PASSWORD@]HOST[:PORT]/QUEUE[?codec=…&format=…&any_format=…&index=…&prefix=…&sweep=…]; package client has
// the parameters of the connection.
func openURL(ctx context.Context, u *url.URL) (backend.Backend, string, error) {
	target, opts, err := parseURL(u)
	if err != nil {
		return nil, "", err
	}
	client, err := target.Connect(ctx)
	if err != nil {
		return nil, "", err
	}
	return newBackend(client, newOptions(client, opts), true), target.Queue, nil
}

// OpenURL returns the backend that a URL names, with its queue's name: for who wants to [Backend.Inspect] it. The errors are those of
// delayq.Open.
func OpenURL(ctx context.Context, rawURL string) (b *Backend, queue string, err error) {
	opened, queue, err := backend.DefaultMux().Open(ctx, rawURL)
	if err != nil {
		return nil, "", err
	}
	b, ok := opened.(*Backend)
	if !ok {
		_ = opened.Close()
		return nil, "", backend.Invalid("URL", "(hidden)", "one that begins with redisson://")
	}
	return b, queue, nil
}

func parseURL(u *url.URL) (*client.Target, []Option, error) {
	var opts []Option
	add := func(set Option) string {
		opts = append(opts, set)
		var o options
		set(&o)
		return client.Allowed(o.err)
	}
	only := func(wanted bool, set func() Option) client.Param {
		return client.Choice(switches, func(on bool) string {
			if on == wanted {
				return add(set())
			}
			return ""
		})
	}
	target, err := client.Parse(u, client.Params{
		"codec": func(name string) string {
			c, err := CodecByName(name)
			if err != nil {
				return client.Allowed(err)
			}
			return add(WithCodec(c))
		},
		"format":     client.Choice(formatNames, func(f MemberFormat) string { return add(Format(f)) }),
		"any_format": only(true, AnyFormat),
		"index":      only(false, NoIndex),
		"prefix":     func(p string) string { return add(NamePrefix(p)) },
		"sweep":      client.Duration(func(d time.Duration) string { return add(Sweep(d)) }),
	})
	return target, opts, err
}
