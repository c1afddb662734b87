package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/valid"
)

const (
	maxReason     = 200      // bytes of a reply in the reason of a failure
	maxFailure    = 1000     // of what the transport says, which quotes the reply
	maxRead       = 64 << 10 // of a reply, so that its connection can be used again
	maxRetryAfter = 24 * time.Hour
	contentType   = "content-type"
)

// New returns a handler that posts messages, to be given to Consume. It is safe for concurrent use.
// It needs [To] or [Allow]. Its errors match delayq.ErrInvalid.
func New(opts ...Option) (delayq.Handler, error) {
	s := &settings{timeout: defaultTimeout}
	if err := valid.Apply(s, opts, "webhook option", "the result of To, Allow or another option"); err != nil {
		return nil, err
	}
	if s.to == nil && len(s.allowed) == 0 {
		return nil, backend.Invalid("webhook", valid.Described("without To and Allow"), "one of them")
	}
	p := &poster{settings: s, client: newClient(s)}
	return p.post, nil
}

type poster struct {
	*settings
	client *http.Client
}

func (p *poster) post(ctx context.Context, d *delayq.Delivery) error {
	target, err := p.target(d)
	if err != nil {
		return fmt.Errorf("%w: %w", delayq.ErrDeadLetter, err)
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(d.Body))
	if err != nil {
		return fmt.Errorf("%w: making a request: %w", delayq.ErrDeadLetter, err)
	}
	p.setHeaders(r.Header, d, time.Now())
	r.Header["Idempotency-Key"] = nil // has the transport try again when a connection that waited is closed meanwhile; it is not sent
	reply, err := p.client.Do(r)
	if err != nil {
		if inner := (*url.Error)(nil); errors.As(err, &inner) {
			err = inner.Err // without the URL, whose query may be a secret
		}
		if errors.Is(err, errRefused) {
			err = fmt.Errorf("%w: %w", delayq.ErrDeadLetter, err)
		}
		return fmt.Errorf("posting to %s: %w", p.shown(target), short{err})
	}
	defer func() { _ = reply.Body.Close() }()
	return outcome(reply, p.shown(target))
}

// target returns where a message goes.
func (p *poster) target(d *delayq.Delivery) (*url.URL, error) {
	text, named := d.Headers[URLHeader]
	if !named {
		if p.to == nil {
			return nil, backend.Invalid("header "+URLHeader, valid.Described("none"), "the URL that the message goes to")
		}
		return p.to, nil
	}
	u, err := parse("header "+URLHeader, text, hidden)
	if err != nil {
		return nil, err
	}
	for _, prefix := range p.allowed {
		if begins(u, prefix) {
			return u, nil
		}
	}
	return nil, backend.Invalid("header "+URLHeader, hidden(u), "a URL that begins with one of those of Allow")
}

func (p *poster) setHeaders(h http.Header, d *delayq.Delivery, now time.Time) {
	id, stamp := escaped(d.ID), strconv.FormatInt(now.Unix(), 10)
	h.Set("user-agent", "delayq")
	h.Set(contentType, typeOf(d))
	for name, value := range d.Headers {
		if name != URLHeader && name != contentType && isToken(name) && isPrintable(value) {
			h.Set("delayq-header-"+name, value)
		}
	}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", stamp)
	h.Set("delayq-attempt", strconv.Itoa(d.Attempt))
	h.Set("delayq-due", d.Due.UTC().Format(time.RFC3339Nano))
	var signatures []string
	for _, secret := range p.secrets {
		signatures = append(signatures, "v1,"+sign(secret, id, stamp, d.Body))
	}
	if signatures != nil {
		h.Set("webhook-signature", strings.Join(signatures, " "))
	}
}

// escaped has no dot: one ends the id in the text that is signed, so that a signature for the id "a"
// with another time could come from a message with the id "a.1".
func escaped(id string) string { return strings.ReplaceAll(url.PathEscape(id), ".", "%2E") }

// isToken reports whether HTTP can carry a header's name. It allows fewer characters than HTTP does:
// those that servers and proxies leave alone.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-'
	})
}

func isPrintable(value string) bool {
	return strings.TrimSpace(value) == value && !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
}

func sign(secret []byte, id, stamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = fmt.Fprintf(mac, "%s.%s.", id, stamp)
	_, _ = mac.Write(body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func typeOf(d *delayq.Delivery) string {
	if given := d.Headers[contentType]; given != "" && isPrintable(given) {
		return given
	}
	switch {
	case json.Valid(d.Body):
		return "application/json"
	case utf8.Valid(d.Body):
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// outcome returns nil for a reply that says that the message is done.
func outcome(reply *http.Response, target string) error {
	var said []byte
	if reply.StatusCode != http.StatusSwitchingProtocols { // its body is the bare connection, which knows no timeout
		said, _ = io.ReadAll(io.LimitReader(reply.Body, maxReason))
		_, _ = io.CopyN(io.Discard, reply.Body, maxRead)
	}
	if reply.StatusCode/100 == 2 {
		return nil
	}
	err := fmt.Errorf("posting to %s: %s", target, cut(reply.Status, maxReason))
	if text := strings.TrimSpace(strings.ToValidUTF8(string(said), "\uFFFD")); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	if reply.StatusCode == http.StatusGone {
		return fmt.Errorf("%w: %w", delayq.ErrDeadLetter, err)
	}
	if wait, ok := retryAfter(reply.Header.Get("Retry-After"), time.Now()); ok {
		return delayq.RetryAfter(err, wait)
	}
	return err
}

// short is an error with the beginning of its text.
type short struct{ error }

func (s short) Error() string { return cut(s.error.Error(), maxFailure) }
func (s short) Unwrap() error { return s.error }

func cut(text string, size int) string { return text[:min(len(text), size)] }

// retryAfter reads seconds or a date. One that is over says nothing: the retry policy waits longer.
func retryAfter(text string, now time.Time) (time.Duration, bool) {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil || errors.Is(err, strconv.ErrRange) {
		wait = time.Duration(seconds) * time.Second // the largest for one out of range
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return min(wait, maxRetryAfter), wait > 0
}
