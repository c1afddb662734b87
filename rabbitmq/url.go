package rabbitmq

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/tlsfiles"
)

func init() {
	backend.Register("rabbitmq", openURL)
	backend.Register("rabbitmqs", openURL)
	backend.RegisterAlias("amqp", fromAMQP)
	backend.RegisterAlias("amqps", fromAMQP)
}

// fromAMQP translates an AMQP URI, amqp://[USER:PASSWORD@]HOST[:PORT][/VHOST], whose path is a
// virtual host. Without a path it is "/".
func fromAMQP(u *url.URL, queue string) (*url.URL, error) {
	vhost := strings.TrimPrefix(u.EscapedPath(), "/")
	if vhost == "" {
		vhost = "%2F"
	}
	if u.Host == "" || strings.Contains(vhost, "/") || strings.Contains(u.Path+u.Opaque, "@") {
		return nil, backend.Invalid("URL", hidden, u.Scheme+`://USER:PASSWORD@HOST:PORT/VHOST, where a slash in the virtual host's name is %2F; the queue's name is queue=NAME, or the option Named`)
	}
	native := *u
	native.Scheme = map[string]string{"amqp": "rabbitmq", "amqps": "rabbitmqs"}[u.Scheme]
	native.RawPath = "/" + vhost + "/" + url.PathEscape(queue)
	var err error
	if native.Path, err = url.PathUnescape(native.RawPath); err != nil {
		return nil, backend.Invalid("URL path", vhost, "percent-encoded text")
	}
	return &native, nil
}

// openURL reads rabbitmq://[USER:PASSWORD@]HOST[:PORT]/[VHOST/]QUEUE[?namespace=…&grain=…&…], with
// rabbitmqs:// for TLS.
func openURL(_ context.Context, u *url.URL) (backend.Backend, string, error) {
	broker, queue, err := splitPath(u)
	if err != nil {
		return nil, "", err
	}
	opts, err := readParams(u)
	if err != nil {
		return nil, "", err
	}
	return New(broker, opts...), queue, nil
}

const hidden = "(hidden)" // in place of text that may have a password

// splitPath splits a URL of this package into an AMQP URL and the queue's name.
func splitPath(u *url.URL) (broker, queue string, err error) {
	parts := strings.Split(strings.TrimPrefix(u.EscapedPath(), "/"), "/")
	if len(parts) == 1 {
		parts = []string{"%2F", parts[0]}
	}
	if len(parts) != 2 || parts[1] == "" || u.Host == "" || u.Fragment != "" || strings.Contains(u.Path+u.Opaque, "@") {
		return "", "", backend.Invalid("URL", hidden, u.Scheme+"://USER:PASSWORD@HOST:PORT/VHOST/QUEUE, where the virtual host / is %2F or left out")
	}
	if queue, err = url.PathUnescape(parts[1]); err != nil {
		return "", "", backend.Invalid("URL path", parts[1], "percent-encoded text")
	}
	scheme := map[string]string{"rabbitmq": "amqp", "rabbitmqs": "amqps"}[u.Scheme]
	login := ""
	if u.User != nil {
		login = u.User.String() + "@"
	}
	return fmt.Sprintf("%s://%s%s/%s", scheme, login, u.Host, parts[0]), queue, nil
}

// readParams returns the options of a URL's parameters.
func readParams(u *url.URL) (opts []Option, err error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, backend.Invalid("URL parameters", hidden, "NAME=VALUE&…, percent-encoded")
	}
	if passwordInQuery(u, query) {
		return nil, backend.Invalid("URL", hidden, "a user and password whose reserved characters, such as @ / ? # %, are percent-encoded")
	}
	var files tlsfiles.Files
	for name, values := range query {
		if len(values) > 1 {
			return nil, backend.Invalid("URL parameter "+name, strings.Join(values, " and "), "one value")
		}
		set, err := readParam(name, values[0], &files)
		if err != nil {
			return nil, err
		}
		opts = append(opts, set)
	}
	switch {
	case files == (tlsfiles.Files{}):
		return opts, nil
	case u.Scheme != "rabbitmqs":
		return nil, backend.Invalid("URL scheme", u.Scheme, "rabbitmqs with TLS parameters")
	}
	config, err := files.Config()
	return append(opts, TLS(config)), err
}

// passwordInQuery reports whether an unescaped reserved character seems to have moved a part of the
// password into the parameters.
func passwordInQuery(u *url.URL, query url.Values) bool {
	if !strings.Contains(u.RawQuery, "@") {
		return false
	}
	for name := range query {
		if !slices.Contains(paramNames, name) {
			return true
		}
	}
	return false
}

var paramNames = []string{"buckets", "classic", "delayed_exchange", "fixed", "grain", "hosts", "management", "namespace", "tls_ca", "tls_cert", "tls_key", "tls_server_name"}

func nothing(*options) {}

func readParam(name, value string, files *tlsfiles.Files) (Option, error) {
	switch name {
	case "namespace":
		return Namespace(value), nil
	case "hosts":
		return Hosts(strings.Split(value, ",")...), nil
	case "management":
		return Management(value), nil
	case "grain":
		return withDuration(name, value, Grain)
	case "fixed":
		return withDuration(name, value, Fixed)
	case "buckets":
		return readBuckets(value)
	case "classic":
		return withSwitch(name, value, Classic)
	case "delayed_exchange":
		return withSwitch(name, value, DelayedExchange)
	}
	if !files.Set(name, value) {
		return nil, backend.Invalid("URL parameter", name, "one of "+strings.Join(paramNames, ", "))
	}
	return nothing, nil
}

func withDuration(name, value string, option func(time.Duration) Option) (Option, error) {
	d, err := time.ParseDuration(value)
	if err != nil {
		return nil, backend.Invalid("URL parameter "+name, value, `a duration, such as "16ms"`)
	}
	return option(d), nil
}

func readBuckets(value string) (Option, error) {
	var ds []time.Duration
	for _, text := range strings.Split(value, ",") {
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, backend.Invalid("URL parameter buckets", value, `durations, as in "10s,1m,10m"`)
		}
		ds = append(ds, d)
	}
	return Buckets(ds...), nil
}

func withSwitch(name, value string, option func() Option) (Option, error) {
	on, err := strconv.ParseBool(value)
	switch {
	case err != nil || !slices.Contains([]string{"true", "false"}, value):
		return nil, backend.Invalid("URL parameter "+name, value, "true or false")
	case on:
		return option(), nil
	default:
		return nothing, nil
	}
}
