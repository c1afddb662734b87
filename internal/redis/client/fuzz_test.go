package client

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
)

// FuzzParse reads URLs as a user may have typed them: each is rejected with a typed error, or names
// a queue and gives options that the client library takes.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"zsetpoll://host/orders", "zsetpoll://me:p%40%2F@[::1]:7000/or%20ders?db=2&prefix=a", "zsetpoll:///o?socket=/run/r.sock",
		"keyspace://h:1/o?cluster=true&addr=h2:2&addr=[::1]:3", "keyspace://h/o?master=main&sentinel_user=s&sentinel_password=p%26",
		"zsetpoll://h/o?pool_size=9223372036854775807", "zsetpoll://h/o?pool_size=3&dial_timeout=1s&read_timeout=2s&write_timeout=500ms",
		"zsetpoll://host/o?tls=true&tls_server_name=x&tls_insecure=true", "zsetpoll://h/o?tls=true&tls_ca=/dev/zero", "zsetpoll:host/o",
		"zsetpoll://h/%00", "zsetpoll://h/a%2Fb", "zsetpoll://a,b/o", "zsetpoll://h/o#x", "zsetpoll://h/o?%zz", "zsetpoll://h/o?db=1;db=2",
		"redisson://:@h/o", "redisson://u:@h/o", "//h/o", "zsetpoll://[::1%25eth0]/o", "zsetpoll://h/o?addr=x&addr=\x00",
		"redis://", "redis://me:p%40@h:6380/2?pool_size=3", "rediss://h?skip_verify=true", "unix://me:p@/run/r.sock?db=2", "redis://h/0?master_name=m&addr=h2",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil {
			t.Skip("the parser of package url rejects it")
		}
		target, err := parseAny(u)
		if err == nil {
			target.mustBeUsable(t)
		} else if !errors.Is(err, backend.ErrInvalid) {
			t.Fatalf("%q is rejected with %v, which is no InvalidError", text, err)
		}
	})
}

// parseAny also reads the schemes that are translated.
func parseAny(u *url.URL) (*Target, error) {
	if slices.Contains([]string{"redis", "rediss", "unix"}, u.Scheme) {
		var err error
		if u, err = Native(u, "zsetpoll", "a/b"); err != nil {
			return nil, err
		}
	}
	return Parse(u, Params{"prefix": func(string) string { return "" }})
}

func (t *Target) mustBeUsable(tb testing.TB) {
	tb.Helper()
	o := t.clientOptions()
	if t.Queue == "" || len(o.Addrs) == 0 || slices.Contains(o.Addrs, "") {
		tb.Fatalf("queue %q at %q", t.Queue, o.Addrs)
	}
	if t.tls != (o.TLSConfig != nil) {
		tb.Fatalf("TLS asked for: %t, set up: %v", t.tls, o.TLSConfig)
	}
	if o.TLSConfig != nil && o.TLSConfig.InsecureSkipVerify != t.insecure {
		tb.Fatal("TLS without verification was not asked for")
	}
	client := redis.NewUniversalClient(o) // which dials no server yet
	if err := client.Close(); err != nil {
		tb.Fatal(err)
	}
}

// token is a text that no error may show. No error contains it by itself.
const token = "Zq7tokenqZ"

// FuzzPassword writes a password into a URL without escaping. Its reserved characters end the user,
// the host or the path too early, and no error shows the secret. It leaves out texts that read as
// NAME=VALUE, which are parameters and not part of a password.
func FuzzPassword(f *testing.F) {
	for _, around := range [][2]string{
		{"", ""}, {"%40", "%2F"}, {"12/", ""}, {"12?", ""}, {"12#", ""}, {"#", "?"}, {"?x&", ""}, {"12/?", "&db"}, {"a@b/", ""}, {"@", "/"}, {"%", ""},
		{"[", "]"}, {"12/a/", ""}, {"12;", ""}, {" ", ""}, {"\x7f", ""}, {"12,", ""}, {"12\\", ""}, {"/?#@", "@#?/"},
		{"@?", ""}, {"a@?b&", "&c"},
	} {
		f.Add(around[0], around[1], "/orders?db=x")
		f.Add(around[0], around[1], "/a/b?sentinel_password=x&colour=red")
		f.Add(around[0], around[1], "?cluster=true")
	}
	f.Fuzz(func(t *testing.T, before, after, rest string) {
		if strings.Contains(before, "=") {
			t.Skip("a parameter and its value")
		}
		for _, scheme := range []string{"zsetpoll", "redis", "rediss", "unix"} {
			u, err := url.Parse(scheme + "://user:" + before + token + after + "@localhost" + rest)
			if err != nil {
				t.Skip("package backend hides all of it")
			}
			if _, err := parseAny(u); err != nil && strings.Contains(err.Error(), token) {
				t.Fatalf("%s: %v", u, err)
			}
		}
	})
}
