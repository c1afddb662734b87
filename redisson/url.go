package redisson

import (
	"context"
	"net/url"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/client"
	"github.com/delayq/delayq/internal/redis/setup"
)

func init() { backend.Register(name, openURL) }

// The values of the parameters format and index.
var (
	formatNames = map[string]MemberFormat{"v1": V1, "v2": V2, "both": Both}
	switches    = map[string]bool{"true": true, "false": false}
)

func openURL(ctx context.Context, u *url.URL) (backend.Backend, string, error) {
	c, opts, queue, err := setup.Open(ctx, u, parseURL)
	if err != nil {
		return nil, "", err
	}
	return newBackend(c, newOptions(c, opts), true), queue, nil
}

// OpenURL returns the backend that a URL names and its queue's name, for calls such as
// [Backend.Inspect]. The errors are those of delayq.Open.
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

// parseURL reads the parameters of this backend. Package client reads those of the connection.
func parseURL(u *url.URL) (*client.Target, []Option, error) {
	return setup.ParseURL(u, func(o *options) error { return o.err }, func(add func(Option) string) client.Params {
		only := func(wanted bool, set func() Option) client.Param {
			return client.Choice(switches, func(on bool) string {
				if on == wanted {
					return add(set())
				}
				return ""
			})
		}
		return client.Params{
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
		}
	})
}
