package memory

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/delayq/delayq/backend"
)

func init() { backend.Register("memory", new(shared).open) }

// shared are the backends that URLs name. They live as long as the process, as a
// server would: whoever opens a URL again finds the messages again.
type shared struct {
	mu       sync.Mutex
	backends map[string]*Backend
}

// open reads memory://[STORE]/QUEUE[?max_messages=N&max_bytes=N]. Store and limits
// together name a backend of this process.
func (s *shared) open(_ context.Context, u *url.URL) (backend.Backend, string, error) {
	opts, err := urlOptions(u.Query())
	if err != nil {
		return nil, "", err
	}
	if u.User != nil || u.Fragment != "" || u.Opaque != "" {
		return nil, "", backend.Invalid("memory URL", u.Redacted(), "memory://[store]/queue, without a user or a fragment")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.backends == nil {
		s.backends = make(map[string]*Backend)
	}
	which := u.Host + "?" + u.Query().Encode()
	if s.backends[which] == nil {
		s.backends[which] = New(opts...)
	}
	return borrowed{s.backends[which]}, strings.TrimPrefix(u.Path, "/"), nil
}

// borrowed outlives its Close, since others in the process may use it.
type borrowed struct{ *Backend }

func (borrowed) Close() error { return nil }

func urlOptions(query url.Values) ([]Option, error) {
	var opts []Option
	for k, vs := range query {
		n, err := strconv.ParseInt(vs[len(vs)-1], 10, 64)
		if err != nil || n < 1 {
			return nil, backend.Invalid("URL parameter "+k, vs[len(vs)-1], "a number, 1 or more")
		}
		switch k {
		case "max_messages":
			opts = append(opts, MaxMessages(int(n)))
		case "max_bytes":
			opts = append(opts, MaxBytes(n))
		default:
			return nil, backend.Invalid("URL parameter", k, "max_messages or max_bytes")
		}
	}
	return opts, nil
}
