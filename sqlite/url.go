package sqlite

import (
	"context"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
)

func init() { backend.Register("sqlite", openURL) }

const allowedURL = "sqlite:///directory/file.db/queue, or sqlite://file.db/queue for a file in the working directory"

// openURL reads sqlite://[FILE]/[DIRECTORY/FILE/]QUEUE[?busy_timeout=D&synchronous=full|normal].
func openURL(_ context.Context, u *url.URL) (backend.Backend, string, error) {
	if u.User != nil || u.Fragment != "" || u.Opaque != "" || strings.Contains(u.Host, ":") {
		return nil, "", backend.Invalid("sqlite URL", "(hidden)", allowedURL)
	}
	// The queue's name may have percent-encoded slashes in it: it ends the encoded path.
	dir, last := path.Split(u.EscapedPath())
	queue, err := url.PathUnescape(last)
	if err != nil || queue == "" {
		return nil, "", backend.Invalid("sqlite URL", "(hidden)", allowedURL)
	}
	if slices.Contains([]string{".db", ".sqlite", ".sqlite3"}, path.Ext(queue)) { // a file alone: else the directory would be the file
		dir, queue = u.EscapedPath(), ""
	}
	file, err := url.PathUnescape(strings.TrimSuffix(dir, "/"))
	if file = u.Host + file; err != nil || file == "" {
		return nil, "", backend.Invalid("sqlite URL without a file", u.Path, allowedURL)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, "", backend.Invalid("URL parameters", "(hidden)", "busy_timeout=D&synchronous=full|normal, percent-encoded")
	}
	opts, err := urlOptions(query)
	if err != nil {
		return nil, "", err
	}
	b := New(file, opts...)
	return b, queue, b.err
}

func urlOptions(query url.Values) (opts []Option, err error) {
	for k, vs := range query {
		value := strings.Join(vs, ",") // given twice it is no value either
		invalid := func(allowed string) error { return backend.Invalid("URL parameter "+k, value, allowed) }
		switch k {
		case "busy_timeout":
			d, err := time.ParseDuration(value)
			if err != nil {
				return nil, invalid("a duration, 1ms to 10m")
			}
			opts = append(opts, BusyTimeout(d))
		case "synchronous":
			switch value {
			case "full":
			case "normal":
				opts = append(opts, Relaxed())
			default:
				return nil, invalid("full or normal")
			}
		default:
			return nil, backend.Invalid("URL parameter", k, "busy_timeout or synchronous")
		}
	}
	return opts, nil
}
