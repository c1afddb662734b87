package client

import (
	"fmt"
	"maps"
	"net/url"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/tlsfiles"
)

// Target is the server and the queue that a URL names.
type Target struct {
	Queue   string
	Options redis.UniversalOptions

	socket        string
	tls, insecure bool // tls=true, tls_insecure=true
	files         tlsfiles.Files
	more          []string // further hosts, as given
}

// Parse reads a URL. own are the backend's parameters, besides the parameters of the connection.
func Parse(u *url.URL, own Params) (*Target, error) {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil { // its text repeats what may be part of a password
		return nil, backend.Invalid("URL parameters", hidden, "NAME=VALUE&…, percent-encoded")
	}
	t := new(Target)
	params := t.params()
	maps.Copy(params, own)
	if passwordSpilled(u, query, params) {
		return nil, errSpilled
	}
	if err := params.read(query); err != nil {
		return nil, err
	}
	if err := t.check(query); err != nil {
		return nil, err
	}
	for _, part := range []func(*url.URL) error{t.user, t.hosts, t.queue} {
		if err := part(u); err != nil {
			return nil, err
		}
	}
	if t.tls {
		if t.Options.TLSConfig, err = t.files.Config(); err != nil {
			return nil, err
		}
		t.Options.TLSConfig.InsecureSkipVerify = t.insecure // only what the URL asks for; it is false by default
	}
	return t, nil
}

var errSpilled = backend.Invalid("URL", hidden, "a user and password whose reserved characters, such as @ / ? # %, are percent-encoded")

// passwordSpilled reports whether part of a password with an unescaped reserved character seems to
// have ended up behind the host.
func passwordSpilled(u *url.URL, query url.Values, params Params) bool {
	if strings.Contains(u.Path+u.Fragment+u.Opaque, "@") {
		return true
	}
	if !strings.Contains(u.RawQuery, "@") {
		return false
	}
	for name := range query {
		if params[name] == nil {
			return true
		}
	}
	return false
}

func (t *Target) user(u *url.URL) error {
	if u.User == nil {
		return nil
	}
	password, given := u.User.Password()
	if given && u.User.String() == ":" { // ":$PASSWORD@" without a password
		return nil
	}
	if password == "" { // the client library would not send the name either
		return backend.Invalid("URL user", hidden, "USER:PASSWORD@, or :PASSWORD@ for the default user")
	}
	t.Options.Username, t.Options.Password = u.User.Username(), password
	return nil
}

func (t *Target) hosts(u *url.URL) error {
	if t.socket != "" {
		if u.Host != "" {
			return backend.Invalid("URL host", u.Host, "none with socket=PATH")
		}
		t.Options.Addrs = []string{t.socket}
		return nil
	}
	port := "6379"
	if t.Options.MasterName != "" {
		port = "26379"
	}
	if strings.Contains(u.Host, ",") {
		return backend.Invalid("URL host", u.Host, "one HOST[:PORT], and further ones as addr=HOST:PORT")
	}
	first, ok := address(u.Host, port)
	if !ok {
		return backend.Invalid("URL host", u.Host, fmt.Sprintf("HOST[:PORT], as in %s://localhost:%s/orders", u.Scheme, port))
	}
	t.Options.Addrs = []string{first}
	for _, more := range t.more {
		addr, ok := address(more, port)
		if !ok {
			return backend.Invalid("URL parameter addr", withoutUser(more), "HOST[:PORT]")
		}
		t.Options.Addrs = append(t.Options.Addrs, addr)
	}
	return nil
}

// queue reads the queue's name. A slash in a name is encoded: a bare one would begin a second part
// of the path.
func (t *Target) queue(u *url.URL) error {
	allowed := fmt.Sprintf("the queue's name, as in %s://localhost:6379/orders; a database is db=N", u.Scheme)
	encoded := strings.TrimPrefix(u.EscapedPath(), "/")
	name, err := url.PathUnescape(encoded)
	switch {
	case err != nil || name == "":
		return backend.Invalid("URL path", u.Path, allowed)
	case strings.Contains(encoded, "/"):
		return backend.Invalid("URL path", u.Path, allowed+"; a slash in a name is %2F, where the backend takes one")
	case u.Fragment != "":
		return backend.Invalid("URL fragment", u.Fragment, "none")
	}
	t.Queue = name
	return nil
}
