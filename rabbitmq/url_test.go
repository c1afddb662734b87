package rabbitmq_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
)

// TestBadURLs wants a typed error for each URL, without the password.
func TestBadURLs(t *testing.T) {
	const login = "rabbitmq://user:" + password + "@localhost"
	junk := filepath.Join(t.TempDir(), "junk")
	must(t, os.WriteFile(junk, []byte("no certificate"), 0o600))
	for text, allowed := range map[string]string{
		login + "/":                                   "rabbitmq://USER:PASSWORD@HOST:PORT/VHOST/QUEUE",
		login + "/a/b/c":                              "where the virtual host / is %2F or left out",
		login + "/q#x":                                "VHOST/QUEUE",
		login + "/q?colour=red":                       "one of buckets, classic",
		login + "/q?grain=1":                          "a duration",
		login + "/q?grain=1ms&grain=2ms":              "one value",
		login + "/q?grain=1us":                        "1ms to 1m, whole milliseconds",
		login + "/q?buckets=1s,x":                     "durations",
		login + "/q?buckets=0s":                       "1 to 100 delays",
		login + "/q?fixed=90000000h":                  "a duration",
		login + "/q?fixed=0s":                         "1ms to 10 years",
		login + "/q?fixed=1s&grain=2ms":               "one of them",
		login + "/q?classic=yes":                      "true or false",
		login + "/q?namespace=a.b":                    "letters, digits, - and _",
		login + "/q?hosts=a:1,/":                      "HOST or HOST:PORT",
		login + "/q?tls_ca=x":                         "rabbitmqs with TLS parameters",
		"amqp" + login[8:] + "/v":                     "one, since amqp:// names a store alone",
		"amqp" + login[8:] + "/a/b?queue=q":           "a slash in the virtual host's name is %2F",
		"amqp:///v?queue=q":                           "amqp://USER:PASSWORD@HOST:PORT/VHOST",
		"amqp" + login[8:] + "?queue=q&heartbeat=10":  "one of buckets, classic",
		"amqp" + login[8:] + "?queue=q&tls_ca=x":      "rabbitmqs with TLS parameters",
		"amqps" + login[8:] + "?queue=q&tls_cert=x":   "both, a certificate and its private key",
		"rabbitmqs" + login[8:] + "/q?tls_ca=" + junk: "a file with certificates in PEM",
		"rabbitmqs" + login[8:] + "/q?tls_cert=x":     "both, a certificate and its private key",
		"rabbitmqs" + login[8:] + "/q?tls_key=x":      "both, a certificate and its private key",
	} {
		err := openURL(t, text)
		if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), allowed) || strings.Contains(err.Error(), password) {
			t.Errorf("%s: %v; want it to say %q", text, err, allowed)
		}
	}
	wantError(t, openURL(t, "rabbitmqs"+login[8:]+"/q?tls_ca=/missing.pem"), "URL parameter tls_ca", "/missing.pem")
	wantError(t, openURL(t, "rabbitmqs"+login[8:]+"/q?tls_cert=/missing.pem&tls_key=/missing.key"), "URL parameter tls_cert", "/missing.pem")
}

func openURL(t *testing.T, text string) error {
	t.Helper()
	b, queue, err := backend.DefaultMux().Open(t.Context(), text)
	if err != nil {
		return err
	}
	defer func() { must(t, b.Close()) }()
	_, err = testenv.RetryOnBusyRabbit(deadline(t, patience), func() (backend.Queue, error) { return b.Open(t.Context(), queue, quiet()) })
	return err
}

// TestBadOptions gives New invalid options. Open returns the error.
func TestBadOptions(t *testing.T) {
	for want, opts := range map[string][]rabbitmq.Option{
		"the result of Namespace":   {nil},
		"1 to 32 letters":           {rabbitmq.Namespace("")},
		"whole milliseconds":        {rabbitmq.Grain(1500 * time.Microsecond)},
		"1 to 100 delays":           {rabbitmq.Buckets()},
		"1ms to 10 years":           {rabbitmq.Fixed(-time.Second)},
		"several of Grain, Buckets": {rabbitmq.Fixed(time.Second), rabbitmq.DelayedExchange()},
		"HOST or HOST:PORT":         {rabbitmq.Hosts("amqp://other")},
	} {
		_, err := rabbitmq.New("amqp://localhost", opts...).Open(t.Context(), "q", quiet())
		if !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("%v; want an invalid option", err)
		}
		wantError(t, err, want)
	}
	_, err := rabbitmq.New("http://user:"+password+"@localhost").Open(t.Context(), "q", quiet())
	wantError(t, err, "URL", "(hidden)")
}

// TestURL opens by a URL with options, and by a URL with a second host.
func TestURL(t *testing.T) {
	t.Parallel()
	server := testenv.SharedRabbitMQ(t)
	u, err := url.Parse(vhost(t))
	must(t, err)
	u.Scheme = "rabbitmq"
	u.Path, u.RawPath = u.Path+"/"+queueOf(t), ""
	dead := testenv.Proxy(t, server.Addr())
	dead.Refuse(true)
	for _, text := range []string{
		u.String() + "?namespace=other&grain=16ms",
		strings.TrimSuffix(vhost(t), "/") + "?queue=" + queueOf(t),
		strings.Replace(u.String(), server.Addr(), dead.Addr(), 1) + "?hosts=" + server.Addr(),
	} {
		if err := openURL(t, text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
