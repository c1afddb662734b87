package server

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/valid"
	"github.com/delayq/delayq/internal/wire"
)

const (
	instanceHeader = wire.InstanceHeader
	keyHeader      = wire.KeyHeader
	ageHeader      = wire.AgeHeader
	jsonType       = "application/json"
)

// A request is one call of a verb.
type request struct {
	*Server
	http   *http.Request
	ctx    context.Context //nolint:containedctx // of this call
	caller *caller
	name   string     // of the queue
	q      *openQueue // nil for verbs of no queue
	key    string     // the Idempotency-Key, "" for none
	query  url.Values // of the URL
	body   []byte
	since  time.Time // a first try of the request has not ended before that

	held  []backend.Lease // of a receive's messages
	until time.Time       // the end of these leases, by the clock of this process
	leave func()          // ends the use of the queue
	kept  *kept           // of the key; nil where the reply is of this request alone
	turn  int             // among the requests that got the kept reply; the one that was executed has 0
}

// lost gives the messages of a reply back that could not be written, and reports whether there were
// any. When the request was sent again, that one has them.
func (c *request) lost() bool {
	ls := c.held
	if c.kept != nil {
		ls = c.replies.forget(c.kept, c.turn)
	}
	if len(ls) == 0 {
		return false
	}
	c.returnUntouched(ls)
	return true
}

// serve checks a request, has its verb run, and writes the reply.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, v verb, queue string) {
	began := time.Now()
	c := &request{Server: s, http: r, name: queue, key: r.Header.Get(keyHeader), leave: func() {}}
	defer func() { c.leave() }() // the queue is needed until the reply is written: lost uses it
	p := c.admit(w, v, began)
	var out reply
	if p == nil {
		out = c.once(v)
	} else {
		out = problemReply(p)
	}
	s.write(w, r, out, c.lost)
	s.metrics.observe(v.name, out.status, time.Since(began))
}

// admit checks who asks, and reads the body.
func (c *request) admit(w http.ResponseWriter, v verb, began time.Time) (p *wire.Problem) {
	if c.caller, p = c.identify(c.http); p != nil {
		return p
	}
	if v.right != "" {
		if err := valid.Name(c.name, c.traits); err != nil {
			return wire.ProblemOf(err)
		}
		if !c.caller.may(v.right, c.name) {
			return wire.New(wire.Forbidden, fmt.Sprintf("needed is the right %s on queue %q", v.right, c.name))
		}
	}
	if len(c.key) > maxKey {
		return wire.ProblemOf(backend.Invalid(keyHeader, c.key, fmt.Sprintf("up to %d bytes", maxKey)))
	}
	if other := c.http.Header.Get(instanceHeader); other != "" && other != c.instance {
		return wire.New(wire.OtherServer, "the server has been started again")
	}
	if err := c.readAge(began); err != nil {
		return wire.ProblemOf(err)
	}
	if err := c.readQuery(v); err != nil {
		return wire.ProblemOf(err)
	}
	if c.http.Method == http.MethodGet {
		return nil
	}
	return c.readBody(w)
}

// onTheWay is how long a request that is sent again may be on its way, which its age leaves out.
const onTheWay = time.Second

// readAge reads how long ago the first try of a request that is sent again began.
func (c *request) readAge(arrival time.Time) error {
	c.since = arrival.Add(-keepReplies)
	text := c.http.Header.Get(ageHeader)
	if text == "" {
		return nil
	}
	ms, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return backend.Invalid(ageHeader, text, "whole milliseconds since the first try began")
	}
	c.since = arrival.Add(-time.Duration(ms)*time.Millisecond - onTheWay)
	return nil
}

// readQuery rejects what it cannot read: without one of its filters, a list has too many messages.
func (c *request) readQuery(v verb) (err error) {
	known := parameters[v.name]
	if c.query, err = url.ParseQuery(c.http.URL.RawQuery); err != nil {
		shown := wire.Described("(" + err.Error() + ")")
		return backend.Invalid("query", shown, "names and values, escaped")
	}
	for name, values := range c.query {
		if !slices.Contains(known, name) {
			return backend.Invalid("parameter", name, "one that this call has in GET /openapi.json")
		}
		if len(values) > 1 {
			return backend.Invalid(name, wire.Described("twice"), "one value")
		}
	}
	return nil
}

func (c *request) readBody(w http.ResponseWriter) *wire.Problem {
	body, err := io.ReadAll(http.MaxBytesReader(w, c.http.Body, c.requestBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return wire.New(wire.TooLarge, fmt.Sprintf("allowed are %d bytes in a request", c.requestBytes))
	case err != nil:
		return wire.ProblemOf(backend.Invalid("body", wire.Described("cut off"), "as many bytes as Content-Length says, sent in time"))
	}
	arrived(w)
	kind, _, _ := mime.ParseMediaType(c.http.Header.Get("Content-Type"))
	if len(body) > 0 && kind != jsonType {
		return wire.New(wire.BadMediaType, `allowed is the header "Content-Type: application/json"`)
	}
	c.body = body
	return nil
}

// boundBody bounds the body of a request, which many replies do not read. Else net/http would read it
// before it sends such a reply, without a bound in time.
func (s *Server) boundBody(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength == 0 {
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.timeout)) // a writer without deadlines has those of its owner
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
}

// arrived ends what boundBody began: a receive may wait for longer.
func arrived(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	w.Header().Del("Connection")
}

// once executes a request, unless it was executed before under its Idempotency-Key.
func (c *request) once(v verb) reply {
	ctx, cancel := context.WithCancel(c.http.Context())
	defer cancel()
	if c.key == "" || c.http.Method == http.MethodGet || v.name == "receive_end" {
		return c.execute(ctx, v)
	}
	again := c.http.Header.Get(instanceHeader) != "" && !v.repeatable()
	own := &kept{
		key: keyOf(c.caller.name, c.http.URL.EscapedPath(), c.key), body: sha256.Sum256(c.body),
		done: make(chan struct{}), end: cancel, on: c.replies.shelf(v),
	}
	for {
		k, mine := c.replies.begin(own, again, c.since)
		switch {
		case k == nil:
			return problemReply(wire.New(wire.OtherServer, "the first reply may have made room for others"))
		case mine:
			c.kept = k
			out := c.execute(ctx, v)
			c.replies.finish(k, out, c.held, c.until)
			return out
		}
		if out, ok := c.known(ctx, k, again); ok {
			return out
		}
	}
}

// known replies to a request that was sent before under its key. It is not ok where the request is
// to be executed again: of those that wait, one is to do so.
func (c *request) known(ctx context.Context, k *kept, again bool) (out reply, ok bool) {
	select {
	case <-k.done:
	case <-ctx.Done():
		return problemReply(wire.ProblemOf(ctx.Err())), true
	}
	if k.body != ([sha256.Size]byte{}) && k.body != sha256.Sum256(c.body) {
		return problemReply(wire.New(wire.KeyReused, "allowed is a new key for each request, and the old one to send that again")), true
	}
	if again && k.unknown {
		return problemReply(wire.New(wire.OtherServer, "the first try failed, but may be done")), true
	}
	turn, ok := c.replies.take(k)
	if !ok {
		return reply{}, false
	}
	c.kept, c.turn = k, turn
	return k.reply, true
}

// execute has the verb run. A change goes on when the client has gone: it may come back and ask what
// became of it.
func (c *request) execute(ctx context.Context, v verb) (out reply) {
	defer func() {
		if e := recover(); e != nil {
			c.log.Error("delayq: a call panicked", "verb", v.name, "queue", c.name, "panic", e, "stack", string(debug.Stack()))
			out = problemReply(wire.New(wire.Internal, "the log of the server has more"))
		}
	}()
	if v.name != "receive" {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
		defer cancel()
	}
	c.ctx = ctx
	if v.right != "" {
		if err := c.enter(ctx); err != nil {
			return problemReply(c.problem(v, err))
		}
	}
	value, err := v.run(c)
	if err != nil {
		return problemReply(c.problem(v, err))
	}
	return jsonReply(cmp.Or(v.status, http.StatusOK), value)
}

// enter begins the use of the queue, unless it has begun.
func (c *request) enter(ctx context.Context) error {
	if c.q != nil {
		return nil
	}
	q, done, err := c.queues.use(ctx, c.name)
	if err == nil {
		c.q, c.leave = q, done
	}
	return err
}

// problem returns the problem of a verb's error. What is no fault of the caller is logged.
func (c *request) problem(v verb, err error) *wire.Problem {
	var own *ownProblem
	if errors.As(err, &own) {
		return own.Problem
	}
	p := wire.ProblemOf(err)
	if p.Status >= http.StatusInternalServerError && p.Code != wire.Unsupported && c.http.Context().Err() == nil {
		c.log.Warn("delayq: a call failed", "verb", v.name, "queue", c.name, "err", err)
	}
	return p
}

// ownProblem is a problem that no store has.
type ownProblem struct{ *wire.Problem }

func (p *ownProblem) Error() string { return p.Title + ": " + p.Detail }

// read decodes the body. Bytes that JSON would replace in silence are rejected.
func read[T any](c *request) (value T, err error) {
	body := c.body
	if len(body) == 0 {
		body = []byte("{}")
	}
	if !utf8.Valid(body) {
		return value, backend.Invalid("body", wire.Described("that is not UTF-8"), "JSON in UTF-8; other bytes go into body_base64")
	}
	if half := wire.HalfCharacter(body); half != "" {
		return value, backend.Invalid("character", half, "both halves of a surrogate pair; other bytes go into body_base64")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err = d.Decode(&value); err == nil && len(bytes.TrimSpace(body[d.InputOffset():])) > 0 {
		err = errors.New("more than one value")
	}
	var invalid *backend.InvalidError
	if err == nil || errors.As(err, &invalid) {
		return value, err
	}
	return value, backend.Invalid("JSON", wire.Described("("+err.Error()+")"), "one value, as GET /openapi.json describes it")
}

// readMany decodes a body that has a list. It counts first: an element of two bytes may become a
// value of a hundred.
func readMany[T any](c *request) (value T, err error) {
	if n := longestList(c.body); n > c.batch {
		return value, c.many(n)
	}
	return read[T](c)
}

// longestList returns how many elements the longest list has that is a field of the object in a
// text, which need not be JSON.
func longestList(text []byte) (longest int) {
	depth, isList, n := 0, false, 0
	for i := 0; i < len(text); i++ {
		switch char := text[i]; char {
		case '"':
			i = endOfString(text, i)
		case '[', '{':
			if depth++; depth == 2 {
				isList, n = char == '[', 1
			}
		case ']', '}':
			depth--
		case ',':
			if depth == 2 && isList {
				n++
				longest = max(longest, n)
			}
		}
	}
	return longest
}

// endOfString returns the place of the quote that ends the string which begins at i.
func endOfString(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}

func jsonReply(status int, value any) reply {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return problemReply(wire.New(wire.Internal, "writing JSON: "+err.Error()))
	}
	return reply{status, jsonType, body.Bytes()}
}

func problemReply(p *wire.Problem) reply {
	out := jsonReply(p.Status, p)
	out.kind = wire.ProblemType
	return out
}

func (s *Server) fail(w http.ResponseWriter, r *http.Request, p *wire.Problem) {
	s.write(w, r, problemReply(p), func() bool { return false })
}

// write writes a reply. If the client has gone, lost is called. There is always a reply: without one
// net/http sends 200, and the client may be there, as when its body came too slowly.
func (s *Server) write(w http.ResponseWriter, r *http.Request, out reply, lost func() bool) {
	if r.Context().Err() != nil && lost() {
		out = jsonReply(http.StatusOK, received(nil))
	}
	h := w.Header()
	h.Set("Content-Type", out.kind)
	h.Set("Content-Length", strconv.Itoa(len(out.body)))
	switch out.status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		h.Set("Retry-After", "1")
	}
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(s.timeout))
	w.WriteHeader(out.status)
	_, err := w.Write(out.body)
	if err == nil {
		err = control.Flush()
	}
	if errors.Is(err, http.ErrNotSupported) {
		err = nil
	}
	_ = control.SetWriteDeadline(time.Time{})
	if err != nil {
		lost()
	}
}

// many checks how many messages a call has.
func (c *request) many(n int) error { return valid.Within("number of messages", n, 1, c.batch) }

// number reads a parameter of the URL.
func (c *request) number(name string, otherwise, most int) (int, error) {
	text := c.query.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, backend.Invalid(name, text, fmt.Sprintf("1 to %d", most))
	}
	return n, nil
}

// results are the outcomes of a call on several messages. When the call is on one, its error is that
// of the call.
func results(n int, errs []error, fill func(i int, r *wire.Result)) (any, error) {
	if n == 1 && errs != nil && errs[0] != nil {
		return nil, errs[0]
	}
	all := wire.Results{Results: make([]wire.Result, n)}
	for i := range all.Results {
		switch {
		case errs != nil && errs[i] != nil:
			all.Results[i].Error = wire.ProblemOf(errs[i])
		case fill != nil:
			fill(i, &all.Results[i])
		}
	}
	return all, nil
}
