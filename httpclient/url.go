package httpclient

import (
	"context"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/tlsfiles"
)

// The schemes say the protocol in front of HTTP: the scheme of a queue's URL is no site's.
const (
	plainScheme = "delayq+http"
	tlsScheme   = "delayq+https"
)

func init() {
	backend.Register(plainScheme, openURL)
	backend.Register(tlsScheme, openURL)
}

const allowedURL = "delayq+http://[TOKEN@]HOST[:PORT][/PATH]/QUEUE or delayq+https://…, percent-encoded"

func openURL(ctx context.Context, u *url.URL) (backend.Backend, string, error) {
	server, queue, opts, err := parseURL(u)
	if err != nil {
		return nil, "", err
	}
	b, err := Dial(ctx, server, opts...)
	if err != nil {
		return nil, "", err
	}
	return b, queue, nil
}

func parseURL(u *url.URL) (server, queue string, opts []Option, err error) {
	invalid := func(what string) error { return backend.Invalid(what, "(hidden)", allowedURL) }
	if u.Host == "" || u.Opaque != "" || u.Fragment != "" {
		return "", "", nil, invalid("delayq+http URL")
	}
	dir, last := path.Split(u.EscapedPath())
	if queue, err = url.PathUnescape(last); err != nil || queue == "" {
		return "", "", nil, invalid("delayq+http URL without a queue")
	}
	server = strings.TrimPrefix(u.Scheme, "delayq+") + "://" + u.Host + strings.TrimSuffix(dir, "/")
	if u.User != nil {
		if _, two := u.User.Password(); two {
			return "", "", nil, invalid("login of a delayq+http URL")
		}
		opts = append(opts, Token(u.User.Username()))
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "", "", nil, invalid("URL parameters")
	}
	more, err := urlOptions(query, u.Scheme == tlsScheme)
	return server, queue, append(opts, more...), err
}

func urlOptions(query url.Values, secure bool) (opts []Option, err error) {
	var files tlsfiles.Files
	for k, vs := range query {
		value := strings.Join(vs, ",") // given twice it is no value either
		switch k {
		case "wait", "timeout":
			d, err := time.ParseDuration(value)
			if err != nil {
				return nil, backend.Invalid("URL parameter "+k, value, "a duration, 1s to 10m")
			}
			if k == "wait" {
				opts = append(opts, Wait(d))
			} else {
				opts = append(opts, Timeout(d))
			}
		default:
			if !files.Set(k, value) {
				return nil, backend.Invalid("URL parameter", k, "wait, timeout, and tls_ca, tls_cert, tls_key or tls_server_name with delayq+https")
			}
		}
	}
	if files == (tlsfiles.Files{}) {
		return opts, nil
	}
	if !secure {
		return nil, backend.Invalid("URL parameters tls_…", "delayq+http", "them with delayq+https")
	}
	config, err := files.Config()
	return append(opts, HTTPClient(newClient(config))), err
}
