package setup

import (
	"errors"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/client"
	"github.com/delayq/delayq/internal/redis/script"
)

type option func(*Config)

func prefix(p string) option { return func(c *Config) { c.SetPrefix(p) } }

func wait(n int, within time.Duration) option {
	return func(c *Config) { c.SetConfirm("Wait", script.Confirmation{Replicas: n, Within: within}) }
}

func parse(t *testing.T, rawURL string) (*client.Target, []option, error) {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	return ParseURL(u, func(c *Config) error { return c.Err }, func(add func(option) string) client.Params {
		return client.Params{"prefix": func(p string) string { return add(prefix(p)) }, "wait": Wait(add, wait)}
	})
}

func TestParseURL(t *testing.T) {
	t.Parallel()
	target, opts, err := parse(t, "test://localhost/orders?prefix=p&wait=2,500ms&db=3")
	if err != nil || target.Queue != "orders" || target.Options.DB != 3 {
		t.Fatalf("got %+v, %v", target, err)
	}
	c := Default("test", nil)
	if err := errors.Join(Apply(&c, opts, "test", "an option"), c.Err); err != nil {
		t.Fatal(err)
	}
	if want := (script.Confirmation{Replicas: 2, Within: 500 * time.Millisecond}); c.Prefix != "p" || !reflect.DeepEqual(c.Confirm, want) {
		t.Errorf("got %q, %+v", c.Prefix, c.Confirm)
	}
}

// The error of an option names the parameter, with the values that the option allows.
func TestParseURLRejects(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"prefix=a{b}": "invalid URL parameter prefix \"a{b}\": allowed is 1 to 64 bytes without braces",
		"wait=2":      "invalid URL parameter wait \"2\": allowed is how many replicas and for how long, as \"1,500ms\"",
		"wait=0,1s":   "invalid URL parameter wait \"0,1s\": allowed is 1 to 100; for WaitDisk also 0",
		"wait=1,1h":   "invalid URL parameter wait \"1,1h\": allowed is 1ms to 1m",
	} {
		if _, _, err := parse(t, "test://localhost/orders?"+query); !errors.Is(err, backend.ErrInvalid) || err.Error() != want {
			t.Errorf("%s: %v, want %s", query, err, want)
		}
	}
}

func TestApplyRejectsNil(t *testing.T) {
	t.Parallel()
	c := Default("test", nil)
	err := Apply(&c, []option{nil, prefix("p")}, "test", "the result of Prefix")
	if want := "invalid test option <nil>: allowed is the result of Prefix"; err == nil || err.Error() != want || c.Prefix != "p" {
		t.Errorf("got %v and prefix %q, want %s", err, c.Prefix, want)
	}
}
