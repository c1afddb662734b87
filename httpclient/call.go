package httpclient

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/wire"
)

const (
	dialTimeout = 5 * time.Second
	idlePerHost = 256
	idleFor     = time.Minute // less than a server's
)

func newClient(config *tls.Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext, TLSClientConfig: config,
			TLSHandshakeTimeout: dialTimeout, MaxIdleConnsPerHost: idlePerHost, IdleConnTimeout: idleFor, DisableCompression: true,
		},
		// A redirect would send the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// pauses are between the tries of a request whose reply was lost.
var pauses = []time.Duration{20 * time.Millisecond, 500 * time.Millisecond}

// lostReply is the error of a request that may have been executed.
func lostReply(err error) error {
	return fmt.Errorf("%w, %w: %w", backend.ErrUnavailable, backend.ErrOutcomeUnknown, err)
}

func (b *Backend) get(ctx context.Context, path string, into any) error {
	ctx, cancel := b.bounded(ctx)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return err
	}
	data, sent, err := b.try(ctx, http.MethodGet, path, nil, nil)
	if sent && data == nil && ctx.Err() == nil { // nothing was changed
		data, sent, err = b.try(ctx, http.MethodGet, path, nil, nil)
	}
	if err == nil {
		err = decode(data, into)
	}
	return b.ended(ctx, sent, err)
}

func (b *Backend) post(ctx context.Context, path string, value, into any) error {
	return b.postKeyed(ctx, path, rand.Text(), value, into)
}

// postKeyed sends a request. When the reply is lost it sends the request again, under the same key.
func (b *Backend) postKeyed(ctx context.Context, path, key string, value, into any) error {
	ctx, cancel := b.bounded(ctx)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return err
	}
	body, err := encode(value)
	if err != nil {
		return err
	}
	header := http.Header{wire.KeyHeader: {key}, "Content-Type": {"application/json"}}
	known, began := b.instance.Load(), time.Now()
	data, maybe, err := b.try(ctx, http.MethodPost, path, header, body)
	lost := maybe && data == nil
	for _, pause := range pauses {
		if !maybe || data != nil || ctx.Err() != nil || b.isShared() {
			break
		}
		if known != nil {
			header[wire.InstanceHeader] = []string{*known}
		}
		if !sleep(ctx, pause) {
			break
		}
		header[wire.AgeHeader] = []string{strconv.FormatInt(time.Since(began).Milliseconds(), 10)}
		var sent bool
		again, sent, errAgain := b.try(ctx, http.MethodPost, path, header, body)
		if errAgain == nil || sent && again != nil && !isOther(errAgain) {
			data, err = again, errAgain
		}
		if isOther(errAgain) {
			break
		}
	}
	if err == nil {
		err = decode(data, into)
	}
	if lost {
		err = stillUnknown(err)
	}
	return b.ended(ctx, maybe, err)
}

// stillUnknown returns the error of a request whose first reply was lost. A later one that the
// server could not execute says nothing about the first.
func stillUnknown(err error) error {
	if errors.Is(err, backend.ErrUnavailable) && !errors.Is(err, backend.ErrOutcomeUnknown) {
		return fmt.Errorf("%w: the first reply was lost, then: %w", backend.ErrOutcomeUnknown, err)
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// errOther says that the server does not know what became of the first try, and that it did not
// execute the request.
var errOther = errors.New("the server does not know what became of the first try")

func isOther(err error) bool { return errors.Is(err, errOther) }

// bounded returns a context with a deadline.
func (b *Backend) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, b.timeout)
}

// ended adds the end of the context to the error of a call: the client library's error may be
// another one then.
func (b *Backend) ended(ctx context.Context, sent bool, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ctx.Err()) {
		return err
	}
	if sent {
		return fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, ctx.Err())
	}
	return ctx.Err()
}

// try sends a request once. It returns the reply, also with the error that the reply stands for.
// Without a reply, sent says whether the server may have got the request.
func (b *Backend) try(ctx context.Context, method, path string, header http.Header, body []byte) (data []byte, sent bool, err error) {
	// From then on the transport may write the request, also after Do has returned for the end of ctx.
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	known := b.instance.Load()
	r, err := http.NewRequestWithContext(ctx, method, b.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, false, fmt.Errorf("making a request: %w", err)
	}
	r.GetBody = nil // the transport would send it again on a connection that broke, also to a new server
	if len(body) == 0 {
		r.Body = http.NoBody
	}
	for k, v := range header {
		r.Header[k] = v
	}
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	reply, err := b.client.Do(r)
	if err != nil {
		if connected.Load() {
			return nil, true, lostReply(cause(err))
		}
		return nil, false, fmt.Errorf("%w: %w", backend.ErrUnavailable, cause(err))
	}
	defer func() { _ = reply.Body.Close() }()
	data, err = io.ReadAll(reply.Body)
	if err != nil {
		return nil, true, lostReply(err)
	}
	if data == nil {
		data = []byte{}
	}
	if instance := reply.Header.Get(wire.InstanceHeader); instance != "" {
		b.noteInstance(instance, known)
	}
	return data, true, failure(reply, data)
}

// noteInstance notes which run of a server replied to a request that was sent when known was the
// last one. An earlier run that replies later than that is another server at the same address.
func (b *Backend) noteInstance(instance string, known *string) {
	if last := b.instance.Load(); last != nil && *last == instance {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.seen, instance) {
		b.seen = append(b.seen, instance)
		b.instance.Store(&instance)
	} else if known != nil && *known != instance && *b.instance.Load() != instance {
		b.shared.Store(time.Now().UnixNano())
	}
}

// sharedFor is how long a client takes its address for that of several servers after it has seen two.
// A rolling restart has two for some seconds.
const sharedFor = 10 * time.Minute

// isShared reports whether several servers have the address: another one would execute a repetition
// again.
func (b *Backend) isShared() bool { return time.Now().UnixNano()-b.shared.Load() < int64(sharedFor) }

// cause is the error without the URL, which the caller knows.
func cause(err error) error {
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}

// failure returns the error that a reply stands for, nil for a success.
func failure(reply *http.Response, data []byte) error {
	if reply.StatusCode/100 == 2 {
		return nil
	}
	var p wire.Problem
	if strings.HasPrefix(reply.Header.Get("Content-Type"), wire.ProblemType) && json.Unmarshal(data, &p) == nil && p.Code != "" {
		if p.Code == wire.OtherServer {
			return errOther
		}
		return p.Err()
	}
	err := fmt.Errorf("not a reply of a delayq server: %s", reply.Status)
	if reply.StatusCode >= http.StatusInternalServerError { // of a proxy
		return lostReply(err)
	}
	return err
}

func encode(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, fmt.Errorf("writing a request: %w", err)
	}
	return b.Bytes(), nil
}

func decode(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: reading a reply: %w", backend.ErrOutcomeUnknown, err)
	}
	return nil
}
