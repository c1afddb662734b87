package client

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
)

func parse(t *testing.T, rawURL string) (*Target, error) {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	return Parse(u, Params{"prefix": func(string) string { return "" }})
}

func TestParse(t *testing.T) {
	t.Parallel()
	type options = redis.UniversalOptions
	for rawURL, want := range map[string]Target{
		"zsetpoll://localhost/orders":           {Queue: "orders", Options: options{Addrs: []string{"localhost:6379"}}},
		"zsetpoll://127.0.0.1:7000/orders":      {Queue: "orders", Options: options{Addrs: []string{"127.0.0.1:7000"}}},
		"zsetpoll://[::1]/orders":               {Queue: "orders", Options: options{Addrs: []string{"[::1]:6379"}}},
		"redisson://host/a%2Fb":                 {Queue: "a/b", Options: options{Addrs: []string{"host:6379"}}},
		"redisson://host/%2F":                   {Queue: "/", Options: options{Addrs: []string{"host:6379"}}},
		"redisson://host/%252F":                 {Queue: "%2F", Options: options{Addrs: []string{"host:6379"}}},
		"zsetpoll://[::1]:7000/or%20ders":       {Queue: "or ders", Options: options{Addrs: []string{"[::1]:7000"}}},
		"zsetpoll://host/orders?cluster=false":  {Queue: "orders", Options: options{Addrs: []string{"host:6379"}}},
		"zsetpoll://host/orders?prefix=a&db=0":  {Queue: "orders", Options: options{Addrs: []string{"host:6379"}}},
		"zsetpoll:///orders?socket=/run/r.sock": {Queue: "orders", Options: options{Addrs: []string{"/run/r.sock"}}},
		"zsetpoll://:pw@/orders?socket=/r%20s":  {Queue: "orders", Options: options{Addrs: []string{"/r s"}, Password: "pw"}},
		"zsetpoll://:pw@host/orders":            {Queue: "orders", Options: options{Addrs: []string{"host:6379"}, Password: "pw"}},
		"zsetpoll://me:p%40%2F%3F%23@host/o?db=2": {Queue: "o", Options: options{
			Addrs: []string{"host:6379"}, Username: "me", Password: "p@/?#", DB: 2,
		}},
		"keyspace://h:1/o?cluster=true&addr=h2:2&addr=[::1]:3&addr=h4": {Queue: "o", Options: options{
			Addrs: []string{"h:1", "h2:2", "[::1]:3", "h4:6379"}, IsClusterMode: true,
		}},
		"keyspace://h/o?master=main&addr=h2&db=3&sentinel_user=s&sentinel_password=p%26": {Queue: "o", Options: options{
			Addrs: []string{"h:26379", "h2:26379"}, MasterName: "main", DB: 3, SentinelUsername: "s", SentinelPassword: "p&",
		}},
		"keyspace://h/o?pool_size=3&dial_timeout=1s&read_timeout=2s&write_timeout=500ms": {Queue: "o", Options: options{
			Addrs: []string{"h:6379"}, PoolSize: 3, DialTimeout: time.Second, ReadTimeout: 2 * time.Second, WriteTimeout: 500 * time.Millisecond,
		}},
	} {
		got, err := parse(t, rawURL)
		if err != nil {
			t.Errorf("%s: %v", rawURL, err)
		} else if got.Queue != want.Queue || !reflect.DeepEqual(got.Options, want.Options) {
			t.Errorf("%s:\ngot  %q %+v\nwant %q %+v", rawURL, got.Queue, got.Options, want.Queue, want.Options)
		}
	}
}

func TestParseTLS(t *testing.T) {
	t.Parallel()
	got, err := parse(t, "zsetpoll://host/o?tls=true&tls_server_name=other")
	if err != nil {
		t.Fatal(err)
	}
	if c := got.Options.TLSConfig; c.ServerName != "other" || c.InsecureSkipVerify {
		t.Errorf("got server name %q, insecure %t", c.ServerName, c.InsecureSkipVerify)
	}
	for rawURL, insecure := range map[string]bool{
		"zsetpoll://host/o?tls=true":                    false,
		"zsetpoll://host/o?tls=true&tls_insecure=false": false,
		"zsetpoll://host/o?tls=true&tls_insecure=true":  true,
	} {
		if got, err = parse(t, rawURL); err != nil || got.Options.TLSConfig.InsecureSkipVerify != insecure {
			t.Errorf("%s: insecure is not %t, or error %v", rawURL, insecure, err)
		}
	}
	if got, err = parse(t, "zsetpoll://host/o?tls=false"); err != nil || got.Options.TLSConfig != nil {
		t.Errorf("tls=false: %v, error %v", got.Options.TLSConfig, err)
	}
}

func TestParseRejects(t *testing.T) {
	t.Parallel()
	const params = "one of addr, cluster, db, dial_timeout, master, pool_size, prefix, read_timeout, sentinel_password, sentinel_user, " +
		"socket, tls, tls_ca, tls_cert, tls_insecure, tls_key, tls_server_name, write_timeout"
	const host = `HOST[:PORT], as in zsetpoll://localhost:6379/orders`
	const path = `the queue's name, as in zsetpoll://localhost:6379/orders; a database is db=N`
	const user = `invalid URL user "(hidden)": allowed is USER:PASSWORD@, or :PASSWORD@ for the default user`
	const durations = "a duration more than 0, as 500ms or 2s"
	for rawURL, want := range map[string]string{
		"zsetpoll:orders":                    `invalid URL host "": allowed is ` + host,
		"zsetpoll:///orders":                 `invalid URL host "": allowed is ` + host,
		"zsetpoll://me:pw@/orders":           `invalid URL host "": allowed is ` + host,
		"zsetpoll://:6379/orders":            `invalid URL host ":6379": allowed is ` + host,
		"zsetpoll://host:/orders":            `invalid URL host "host:": allowed is ` + host,
		"zsetpoll://host:0/orders":           `invalid URL host "host:0": allowed is ` + host,
		"zsetpoll://host:65536/orders":       `invalid URL host "host:65536": allowed is ` + host,
		"zsetpoll://a,b/orders?cluster=true": `invalid URL host "a,b": allowed is one HOST[:PORT], and further ones as addr=HOST:PORT`,
		"zsetpoll://host/o?socket=/s":        `invalid URL host "host": allowed is none with socket=PATH`,
		"zsetpoll://host":                    `invalid URL path "": allowed is ` + path,
		"zsetpoll://host/":                   `invalid URL path "/": allowed is ` + path,
		"zsetpoll://host/2/orders":           `invalid URL path "/2/orders": allowed is ` + path + `; a slash in a name is %2F, where the backend takes one`,
		"zsetpoll://host/o#2":                `invalid URL fragment "2": allowed is none`,
		"zsetpoll://me@host/o":               user,
		"zsetpoll://me:@host/o":              user,
		"zsetpoll://host/o?a=1;b=2":          `invalid URL parameters "(hidden)": allowed is NAME=VALUE&…, percent-encoded`,
		"zsetpoll://host/o?bd=2":             `invalid URL parameter "bd": allowed is ` + params,
		"zsetpoll://host/o?poll":             `invalid URL parameter "poll": allowed is ` + params,
		"zsetpoll://host/o?DB=2":             `invalid URL parameter "DB": allowed is ` + params,

		"zsetpoll://host/o?db=1&db=2":               `invalid URL parameter db "1 and 2": allowed is one value`,
		"zsetpoll://host/o?db=-1":                   `invalid URL parameter db "-1": allowed is a number, 0 or more`,
		"zsetpoll://host/o?db=":                     `invalid URL parameter db "": allowed is a number, 0 or more`,
		"zsetpoll://host/o?db=99999999999999999999": `invalid URL parameter db "99999999999999999999": allowed is a number, 0 or more`,
		"zsetpoll://host/o?pool_size=0":             `invalid URL parameter pool_size "0": allowed is a number, 1 to 100000`,
		"zsetpoll://host/o?pool_size=100001":        `invalid URL parameter pool_size "100001": allowed is a number, 1 to 100000`,
		"zsetpoll://host/o?read_timeout=5":          `invalid URL parameter read_timeout "5": allowed is ` + durations,
		"zsetpoll://host/o?dial_timeout=0s":         `invalid URL parameter dial_timeout "0s": allowed is ` + durations,
		"zsetpoll://host/o?write_timeout=-1s":       `invalid URL parameter write_timeout "-1s": allowed is ` + durations,
		"zsetpoll://host/o?tls=yes":                 `invalid URL parameter tls "yes": allowed is true or false`,
		"zsetpoll://host/o?cluster":                 `invalid URL parameter cluster "": allowed is true or false`,
		"zsetpoll://host/o?master=":                 `invalid URL parameter master "": allowed is a text that is not empty`,
		"zsetpoll:///o?socket=run/s":                `invalid URL parameter socket "run/s": allowed is an absolute path`,

		"zsetpoll://h/o?cluster=true&master=m":     `invalid URL parameter master "m": allowed is master=NAME or cluster=true, not both`,
		"zsetpoll://h/o?cluster=true&db=0":         `invalid URL parameter db "0": allowed is no db with cluster=true: a Cluster has only database 0`,
		"zsetpoll://h/o?addr=h2":                   `invalid URL parameter addr "h2": allowed is addr with cluster=true or master=NAME only`,
		"zsetpoll://h/o?cluster=true&addr=h2:x":    `invalid URL parameter addr "h2:x": allowed is HOST[:PORT]`,
		"zsetpoll://h/o?cluster=true&addr=::1":     `invalid URL parameter addr "::1": allowed is HOST[:PORT]`,
		"zsetpoll://h/o?cluster=true&addr=":        `invalid URL parameter addr "": allowed is HOST[:PORT]`,
		"zsetpoll://h/o?cluster=true&addr=a:b@c:1": `invalid URL parameter addr "(hidden)@c:1": allowed is HOST[:PORT]`,
		"zsetpoll://h/o?sentinel_user=u":           `invalid URL parameter sentinel_user "u": allowed is sentinel_user with master=NAME only`,
		"zsetpoll://h/o?master=m&sentinel_user=u":  `invalid URL parameter sentinel_user "u": allowed is sentinel_user with sentinel_password only`,
		"zsetpoll://h/o?sentinel_password=pw":      `invalid URL parameter sentinel_password "(hidden)": allowed is sentinel_password with master=NAME only`,
		"zsetpoll:///o?socket=/s&cluster=true":     `invalid URL parameter socket "/s": allowed is a socket of a single server, without cluster=true and master=NAME`,
		"zsetpoll:///o?socket=/s&tls=true":         `invalid URL parameter socket "/s": allowed is a socket without tls=true`,

		"zsetpoll://h/o?tls_insecure=true":          `invalid URL parameter tls_insecure "true": allowed is tls_insecure with tls=true only`,
		"zsetpoll://h/o?tls_ca=/ca":                 `invalid URL parameter tls_ca "/ca": allowed is tls_ca with tls=true only`,
		"zsetpoll://h/o?tls=false&tls_ca=/ca":       `invalid URL parameter tls_ca "/ca": allowed is tls_ca with tls=true only`,
		"zsetpoll://h/o?tls_server_name=n":          `invalid URL parameter tls_server_name "n": allowed is tls_server_name with tls=true only`,
		"zsetpoll://h/o?tls=true&tls_cert=/c":       `invalid URL parameter tls_cert "/c": allowed is tls_cert and tls_key together`,
		"zsetpoll://h/o?tls=true&tls_key=/k":        `invalid URL parameter tls_key "/k": allowed is tls_cert and tls_key together`,
		"zsetpoll://h/o?tls_cert=/c&tls_key=/k":     `invalid URL parameter tls_cert "/c": allowed is tls_cert with tls=true only`,
		"zsetpoll://h/o?tls=true&tls_ca=/none/ca":   `invalid URL parameter tls_ca "/none/ca": allowed is a PEM file that can be read: open /none/ca: no such file or directory`,
		"zsetpoll://h/o?tls=true&tls_ca=/dev/zero":  `invalid URL parameter tls_ca "/dev/zero": allowed is a PEM file that can be read: /dev/zero is no regular file`,
		"zsetpoll://h/o?tls=true&tls_ca=url.go":     `invalid URL parameter tls_ca "url.go": allowed is a file with certificates in PEM`,
		"zsetpoll://h/o?tls=true&tls_ca=a&tls_ca=b": `invalid URL parameter tls_ca "a and b": allowed is one value`,
		"zsetpoll://h/o?tls=true&tls_insecure=true&tls_ca=/ca": `invalid URL parameter tls_ca "/ca": allowed is ` +
			`tls_ca or tls_insecure=true, not both`,
		"zsetpoll://h/o?tls=true&tls_insecure=true&tls_server_name=n": `invalid URL parameter tls_server_name "n": allowed is ` +
			`tls_server_name or tls_insecure=true, not both`,
		"zsetpoll://h/o?tls=true&tls_cert=/none/c&tls_key=/none/k": `invalid URL parameter tls_cert "/none/c": allowed is ` +
			`a PEM file that can be read, with its key in tls_key: open /none/c: no such file or directory`,
	} {
		_, err := parse(t, rawURL)
		if !errors.Is(err, backend.ErrInvalid) || err.Error() != want {
			t.Errorf("%s:\ngot  %v\nwant %s", rawURL, err, want)
		}
	}
}

func TestParseRejectsAFileWithoutKey(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pem")
	if err := os.WriteFile(file, []byte("-----BEGIN NONSENSE-----\n-----END NONSENSE-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, param := range []string{"&tls_ca=" + file, "&tls_cert=" + file + "&tls_key=" + file} {
		// a long one is cut
		if _, err := parse(t, "zsetpoll://h/o?tls=true"+param); !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), file[:min(len(file), 40)]) {
			t.Errorf("%s: %v", param, err)
		}
	}
}

// The passwords here begin with digits where they would otherwise be an invalid port, which the mux
// rejects.
func TestParseKeepsPasswordsOutOfErrors(t *testing.T) {
	t.Parallel()
	for _, rawURL := range []string{
		"zsetpoll://me:hunter2@host/",
		"zsetpoll://me:hunter2@host/o?db=x",
		"zsetpoll://me:hunter2@host/o?x=y",
		"zsetpoll://me:hunter2@host:0/o",
		"zsetpoll://me:hunter2@a,b/o",
		"zsetpoll://me:hunter2@host/a/b",
		"zsetpoll://hunter2@host/o",
		"zsetpoll:me:hunter2@host/o",
		"zsetpoll://me:12?hunter2@host/o",
		"zsetpoll://me:12?hunter2&x=y@host/o",
		"zsetpoll://me:12?a=b&hunter2=y@host/o",
		"zsetpoll://me:12?db=hunter2@host/o",
		"zsetpoll://me:12#hunter2@host/o",
		"zsetpoll://me:12/hunter2@host/o",
		"zsetpoll://me:12?%zzhunter2@host/o",
		"zsetpoll://host/o?sentinel_password=hunter2",
		"zsetpoll://host/o?master=m&sentinel_password=a&sentinel_password=hunter2",
		"zsetpoll://host/o?master=m&sentinel_password=a&hunter2",
		"zsetpoll://host/o?master=m&sentinel_password=a&hunter2=b",
		"zsetpoll://host/o?master=m&sentinel_password=a;hunter2",
		"zsetpoll://host/o?cluster=true&addr=me:hunter2@host2:x",
		"zsetpoll://host/o?addr=me:hunter2@host2:1",
		"zsetpoll://host/o?addr=me:hunter2@host2:1&master=m",
	} {
		_, err := parse(t, rawURL)
		if err == nil {
			t.Errorf("%s: no error", rawURL)
		} else if strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v", rawURL, err)
		}
	}
}

func TestBackendParams(t *testing.T) {
	t.Parallel()
	var chosen int
	var waited time.Duration
	own := Params{
		"mode": Choice(map[string]int{"one": 1, "two": 2}, func(n int) string { chosen = n; return "" }),
		"wait": Duration(func(d time.Duration) string {
			if d > time.Second {
				return "less"
			}
			waited = d
			return ""
		}),
	}
	for query, want := range map[string]string{
		"mode=three": `invalid URL parameter mode "three": allowed is one of one, two`,
		"wait=x":     `invalid URL parameter wait "x": allowed is a duration more than 0, as 500ms or 2s`,
		"wait=2s":    `invalid URL parameter wait "2s": allowed is less`,
		"prefix=x":   `invalid URL parameter "prefix": allowed is one of addr, `,
	} {
		_, err := Parse(&url.URL{Scheme: "x", Host: "h", Path: "/q", RawQuery: query}, own)
		if !errors.Is(err, backend.ErrInvalid) || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", query, err, want)
		}
	}
	_, err := Parse(&url.URL{Scheme: "x", Host: "h", Path: "/q", RawQuery: "mode=two&wait=5ms"}, own)
	if err != nil || chosen != 2 || waited != 5*time.Millisecond {
		t.Errorf("got %d and %s, error %v", chosen, waited, err)
	}
}
