package rabbitmq

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
)

func init() {
	backend.Register("rabbitmq", openURL)
	backend.Register("rabbitmqs", openURL)
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

// splitPath splits a URL of ours into an AMQP URL and the queue's name.
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
	if spilled(u, query) {
		return nil, backend.Invalid("URL", hidden, "a user and password whose reserved characters, such as @ / ? # %, are percent-encoded")
	}
	var ca tlsFiles
	for name, values := range query {
		if len(values) > 1 {
			return nil, backend.Invalid("URL parameter "+name, strings.Join(values, " and "), "one value")
		}
		set, err := readParam(name, values[0], &ca)
		if err != nil {
			return nil, err
		}
		opts = append(opts, set)
	}
	if ca == (tlsFiles{}) {
		return opts, nil
	}
	if u.Scheme != "rabbitmqs" {
		return nil, backend.Invalid("URL scheme", u.Scheme, "rabbitmqs with TLS parameters")
	}
	config, err := ca.config()
	return append(opts, TLS(config)), err
}

// spilled reports whether a part of a password with an unescaped reserved character seems to be
// among the parameters.
func spilled(u *url.URL, query url.Values) bool {
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

func readParam(name, value string, files *tlsFiles) (Option, error) {
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
	case "tls_ca":
		files.ca = value
	case "tls_cert":
		files.cert = value
	case "tls_key":
		files.key = value
	case "tls_server_name":
		files.serverName = value
	default:
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

// tlsFiles are a URL's parameters about TLS.
type tlsFiles struct{ ca, cert, key, serverName string }

func (f tlsFiles) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.serverName} // the host's, if empty
	if f.ca != "" {
		pem, err := readPEM(f.ca)
		if err != nil {
			return nil, fmt.Errorf("reading tls_ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, backend.Invalid("URL parameter tls_ca", f.ca, "a file of PEM certificates")
		}
	}
	if f.cert == "" && f.key == "" {
		return c, nil
	}
	if f.cert == "" || f.key == "" {
		return nil, backend.Invalid("URL parameters", "one of tls_cert and tls_key", "both, a certificate and its private key, or none")
	}
	cert, errCert := readPEM(f.cert)
	key, err := readPEM(f.key)
	if err = errors.Join(errCert, err); err == nil {
		c.Certificates = make([]tls.Certificate, 1)
		c.Certificates[0], err = tls.X509KeyPair(cert, key)
	}
	if err != nil {
		return nil, fmt.Errorf("reading tls_cert and tls_key: %w", err)
	}
	return c, nil
}

// largestPEM is ten times the size of a file with all public authorities.
const largestPEM = 4 << 20

// readPEM reads a file of at most largestPEM. It rejects devices and pipes: reading them may never
// end.
func readPEM(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil: // ReadFile has the better error
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	case info.Size() > largestPEM:
		return nil, fmt.Errorf("%s has %d bytes, more than %d", path, info.Size(), largestPEM)
	}
	return os.ReadFile(path)
}
