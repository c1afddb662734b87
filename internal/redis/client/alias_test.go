package client

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
)

// native translates a URL for the queue a/b, whose name needs encoding.
func native(t *testing.T, rawURL string) (*Target, error) {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	own, err := Native(u, "zsetpoll", "a/b")
	if err != nil {
		return nil, err
	}
	// as it would be read from a text
	return parse(t, own.String())
}

// TestNativeMeansWhatTheClientLibraryReads compares with the client library's own parser.
func TestNativeMeansWhatTheClientLibraryReads(t *testing.T) {
	t.Parallel()
	for _, rawURL := range []string{
		"redis://",
		"redis://:6380",
		"redis://host",
		"redis://host:6380/",
		"redis://host/0",
		"redis://host:6380/7",
		"redis://host?db=7",
		"redis://[::1]:6380/1",
		"redis://user:p%40ss@host:6380/0",
		"redis://:pass@host",
		"redis://:@host",
		"rediss://:pass@host:6380/2",
		"rediss://host?skip_verify=true",
		"redis://host/1?pool_size=7&read_timeout=2s&write_timeout=3s&dial_timeout=4s",
		"unix:///run/redis.sock",
		"unix://user:pass@/run/redis%20one.sock?db=4",
	} {
		want, err := redis.ParseURL(rawURL)
		if err != nil {
			t.Fatalf("%s: %v", rawURL, err)
		}
		got, err := native(t, rawURL)
		if err != nil {
			t.Errorf("%s: %v", rawURL, err)
			continue
		}
		o := got.Options
		if got.Queue != "a/b" || len(o.Addrs) != 1 || o.Addrs[0] != want.Addr || o.DB != want.DB ||
			o.Username != want.Username || o.Password != want.Password || o.PoolSize != want.PoolSize ||
			o.ReadTimeout != want.ReadTimeout || o.WriteTimeout != want.WriteTimeout || o.DialTimeout != want.DialTimeout {
			t.Errorf("%s: got queue %q and %+v, want %+v", rawURL, got.Queue, o, want)
		}
		if (o.TLSConfig != nil) != (want.TLSConfig != nil) || o.TLSConfig != nil && o.TLSConfig.InsecureSkipVerify != want.TLSConfig.InsecureSkipVerify {
			t.Errorf("%s: TLS is %+v, want %+v", rawURL, o.TLSConfig, want.TLSConfig)
		}
	}
}

func TestNativeSentinelAndCluster(t *testing.T) {
	t.Parallel()
	const failover = "redis://one:26380/3?master_name=main&addr=two:26381"
	want, err := redis.ParseFailoverURL(failover)
	if err != nil {
		t.Fatal(err)
	}
	got, err := native(t, failover)
	if err != nil {
		t.Fatal(err)
	}
	o := got.Options
	if o.MasterName != want.MasterName || strings.Join(o.Addrs, " ") != strings.Join(want.SentinelAddrs, " ") || o.DB != want.DB {
		t.Errorf("got %+v, want %+v", o, want)
	}

	got, err = native(t, "rediss://one:7000/0?cluster=true&addr=two:7001")
	if err != nil || !got.Options.IsClusterMode || strings.Join(got.Options.Addrs, " ") != "one:7000 two:7001" || got.Options.TLSConfig == nil {
		t.Errorf("got %+v, error %v", got, err)
	}
}

func TestNativeRejects(t *testing.T) {
	t.Parallel()
	const spilled = `invalid URL "(hidden)": allowed is a user and password whose reserved characters, such as @ / ? # %, are percent-encoded`
	for rawURL, want := range map[string]string{
		"redis://host/orders":              `invalid URL path "/orders": allowed is a database's number, as in "/0"; the queue's name is queue=NAME, or the option Named`,
		"redis://host/-1":                  `invalid URL path "/-1": allowed is a database's number`,
		"redis://host/0/orders":            `invalid URL path "/0/orders": allowed is a database's number`,
		"redis://host/99999999999":         `invalid URL path "/99999999999": allowed is a database's number`,
		"redis://host/1?db=1":              `invalid URL path "/1": allowed is a database in the path or in db=N, not in both`,
		"redis://host?tls=true":            `invalid URL parameter "tls": allowed is none with redis://; rediss:// is TLS`,
		"rediss://host?tls=false":          `invalid URL parameter "tls": allowed is none with rediss://`,
		"redis://host?socket=/s":           `invalid URL parameter "socket": allowed is none with redis://`,
		"unix://host/run/s":                `invalid URL "(hidden)": allowed is unix:///PATH`,
		"unix:run/s":                       `invalid URL "(hidden)": allowed is unix:///PATH`,
		"unix://":                          `invalid URL parameter socket "": allowed is an absolute path`,
		"redis://host/1?cluster=true":      `invalid URL parameter db "1": allowed is no db with cluster=true`,
		"redis://host?protocol=3":          `invalid URL parameter "protocol": allowed is one of addr, `,
		"redis://host#f":                   `invalid URL fragment "f": allowed is none`,
		"redis://a,b":                      `invalid URL host "a,b": allowed is one HOST[:PORT], and further ones as addr=HOST:PORT`,
		"redis://me:12/hunter2@host":       spilled,
		"redis://me:12?hunter2@host":       spilled,
		"redis://me:12#hunter2@host":       spilled,
		"redis://hunter2:@host":            `invalid URL user "(hidden)": allowed is USER:PASSWORD@`,
		"redis://hunter2@host":             `invalid URL user "(hidden)": allowed is USER:PASSWORD@`,
		"redis://me:12/hunter2?x@host":     spilled,
		"redis:me:hunter2@host":            spilled,
		"unix://me:12/hunter2@/run/s":      `invalid URL "(hidden)": allowed is unix:///PATH`,
		"redis://me:12?x=hunter2@host":     spilled,
		"redis://me:12?db=hunter2@host":    `invalid URL parameter db "(hidden)@host"`,
		"redis://me:12?a=b&hunter2=y@host": spilled,
	} {
		_, err := native(t, rawURL)
		if !errors.Is(err, backend.ErrInvalid) || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s:\ngot  %v\nwant %s", rawURL, err, want)
		}
	}
}
