package webhook

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/valid"
)

// URLHeader is the header of a message that names where it goes, see [Allow].
const URLHeader = "webhook-url"

const (
	defaultTimeout = 30 * time.Second
	minSecret      = 24 // bytes, as Standard Webhooks has it
	secretPrefix   = "whsec_"
)

type settings struct {
	to      *url.URL
	allowed []*url.URL
	secrets [][]byte
	timeout time.Duration
}

// An Option changes a setting of [New].
type Option func(*settings) error

// To sets where messages go that name no URL themselves: an absolute http or https URL without a
// login. It may have a query. Errors show only its scheme and host: the path may be a secret, as in the
// URLs of Slack, Discord and Teams.
func To(target string) Option {
	return func(s *settings) (err error) {
		s.to, err = parse("To", target, origin)
		return err
	}
}

// Allow lets messages name a URL in their header [URLHeader] that begins with one of these: the same
// scheme, host and port, and the same path or one below it.
func Allow(prefixes ...string) Option {
	return func(s *settings) error {
		for _, prefix := range prefixes {
			u, err := parse("Allow", prefix, hidden)
			if err != nil {
				return err
			}
			if u.RawQuery != "" {
				return backend.Invalid("Allow", hidden(u), "a URL without a query")
			}
			s.allowed = append(s.allowed, u)
		}
		return nil
	}
}

// Secret signs the requests: 24 bytes or more, or whsec_ and the base64 of as many. Given several
// times, each secret signs: a receiver that knows one of them accepts the request, so that a secret
// can be replaced by another while messages are posted.
func Secret(secret string) Option {
	return func(s *settings) (err error) {
		const allowed = `24 bytes or more, or "whsec_" and the base64 of as many`
		key := []byte(secret)
		if encoded, ok := strings.CutPrefix(secret, secretPrefix); ok {
			if key, err = base64.StdEncoding.DecodeString(encoded); err != nil {
				return backend.Invalid("Secret", valid.Described("that is no base64"), allowed)
			}
		}
		if len(key) < minSecret {
			return backend.Invalid("Secret", valid.Described("that is shorter"), allowed)
		}
		s.secrets = append(s.secrets, key)
		return nil
	}
}

// Timeout bounds a request, 1 s to 10 min: 30 s by default.
func Timeout(d time.Duration) Option {
	return func(s *settings) error {
		s.timeout = d
		if d < time.Second || d > 10*time.Minute {
			return backend.Invalid("Timeout", d, "1s to 10m")
		}
		return nil
	}
}

// parse reads a URL. A path with dots or empty parts is rejected: the receiver may take it for
// another one. Errors show a URL as shown returns it.
func parse(what, text string, shown func(*url.URL) string) (*url.URL, error) {
	const allowed = "an absolute http or https URL without a login and a fragment, and without ., .. or control characters in its path"
	u, err := url.Parse(text)
	if err != nil {
		return nil, backend.Invalid(what, valid.Described("that is no URL"), allowed)
	}
	plain := u.Scheme == "http" || u.Scheme == "https"
	if _, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16); err != nil || !plain || u.Hostname() == "" || u.User != nil || u.Fragment != "" || !isClean(u) {
		return nil, backend.Invalid(what, shown(u), allowed)
	}
	u.Host, u.RawQuery = strings.ToLower(u.Host), plainQuery(u.RawQuery)
	return u, nil
}

// plainQuery escapes what the line of a request cannot carry: package url leaves a query as it is.
func plainQuery(query string) string {
	var plain strings.Builder
	for _, c := range []byte(query) {
		if c > ' ' && c < '\x7f' {
			plain.WriteByte(c)
		} else {
			fmt.Fprintf(&plain, "%%%02X", c)
		}
	}
	return plain.String()
}

// address is what the transport connects to.
func address(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = u.Scheme
	}
	port = cmp.Or(map[string]string{"http": "80", "https": "443"}[port], port)
	return net.JoinHostPort(u.Hostname(), port)
}

// isClean reports whether all readers agree on the parts of the path, also one that decodes it twice.
func isClean(u *url.URL) bool {
	return !strings.Contains(strings.ToLower(u.EscapedPath()), "%2f") && isPlain(u.Path) && isPlain(again(u.Path))
}

var escape = regexp.MustCompile("%[0-9A-Fa-f]{2}")

func again(path string) string {
	return escape.ReplaceAllStringFunc(path, func(text string) string {
		c, _ := hex.DecodeString(text[1:])
		return string(c)
	})
}

func isPlain(path string) bool {
	if !utf8.ValidString(path) || strings.Contains(path, "//") || strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == '\x7f' || r == '\\' }) {
		return false
	}
	for part := range strings.SplitSeq(path, "/") {
		name, _, _ := strings.Cut(part, ";") // as servers of Java have it
		if name = strings.Trim(name, " "); name == "." || name == ".." {
			return false
		}
	}
	return true
}

// hidden is a URL without its login and query, which may be secrets.
func hidden(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
	return shown.String()
}

// origin is a URL without its path, which may be a secret too.
func origin(u *url.URL) string {
	shown := url.URL{Scheme: u.Scheme, Host: u.Host}
	return shown.String()
}

// shown is a target as errors have it.
func (s *settings) shown(target *url.URL) string {
	if target == s.to {
		return origin(target)
	}
	return hidden(target)
}

// begins reports whether u is prefix or below it.
func begins(u, prefix *url.URL) bool {
	if u.Scheme != prefix.Scheme || address(u) != address(prefix) {
		return false
	}
	dir := cmp.Or(prefix.Path, "/")
	rest, ok := strings.CutPrefix(cmp.Or(u.Path, "/"), dir)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(dir, "/"))
}
