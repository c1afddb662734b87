package rabbitmq

import (
	"encoding/binary"
	"errors"
	"math"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// token is the secret that no error may show. No error has this text for another reason.
const token = "Zq7tokenqZ"

// FuzzURL reads URLs. The error hides the password, or the client library reads the addresses.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"localhost/orders", "localhost:5672/%2F/orders?namespace=a&grain=16ms", "h/q?buckets=1s,1m&classic=true", "h/q?hosts=a:1,b", "h/v%2Fw/q",
		"h/q?fixed=-1s", "h/q?grain=9999999h&fixed=1s", "[::1]:5672/q", "h/q?delayed_exchange=true", "h/q#x", "h/a/b/c", "h/%00", "h/q?hosts=%00",
		"h/q?tls_server_name=x", "h/q?namespace=%23", "/q", "h:99999/q", "h/q?a=1;b=2", "h/q?colour=red",
	} {
		f.Add("rabbitmq", "me", "pass", seed)
		f.Add("rabbitmqs", "", "p%40@/?#", seed)
		f.Add("amqp", "me", "p%40@/?#", seed)
	}
	f.Fuzz(func(t *testing.T, scheme, user, password, rest string) {
		u, err := url.Parse(scheme + "://" + url.UserPassword(user, password+token).String() + "@" + rest)
		if err != nil || !slices.Contains([]string{"rabbitmq", "rabbitmqs", "amqp", "amqps"}, scheme) || strings.Contains(rest, "tls_") {
			t.Skip("no URL for this package, or one that names files")
		}
		if read, _ := u.User.Password(); read != password+token {
			t.Skip("the rest of the URL changes where the password ends")
		}
		if strings.HasPrefix(scheme, "amqp") {
			if u, err = fromAMQP(u, "q"); err != nil {
				mustHide(t, err)
				return
			}
		}
		broker, queue, err := splitPath(u)
		if err != nil {
			mustHide(t, err)
			return
		}
		opts, err := readParams(u)
		if err != nil {
			mustHide(t, err)
			return
		}
		o := newOptions(broker, opts)
		if o.err != nil {
			mustHide(t, o.err)
			return
		}
		mustDial(t, &o, queue, password+token)
	})
}

func mustHide(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, backend.ErrInvalid) || strings.Contains(err.Error(), token) {
		t.Fatalf("refused with %v", err)
	}
}

// mustDial checks the URLs to dial. The whole password goes to each node, and the scheme is AMQP's.
func mustDial(t *testing.T, o *options, queue, password string) {
	t.Helper()
	if queue == "" {
		t.Fatal("no queue")
	}
	for _, text := range newDialer(*o).urls {
		uri, err := amqp.ParseURI(text)
		if err != nil {
			t.Fatalf("%s: %v", strings.ReplaceAll(text, token, "…"), err)
		}
		if uri.Password != password || uri.Scheme != "amqp" && uri.Scheme != "amqps" {
			t.Fatalf("scheme %q, and another password", uri.Scheme)
		}
	}
}

// A source makes values of bytes.
type source []byte

func (s *source) byte() byte {
	if len(*s) == 0 {
		return 0
	}
	b := (*s)[0]
	*s = (*s)[1:]
	return b
}

func (s *source) bytes(n int) []byte {
	b := make([]byte, n)
	*s = (*s)[copy(b, *s):]
	return b
}

func (s *source) number() uint64 { return binary.BigEndian.Uint64(s.bytes(8)) }
func (s *source) text() string   { return string(s.bytes(int(s.byte()) % 16)) }

var ourHeaders = []string{dueHeader, attemptsHeader, stampHeader, headersHeader, reasonHeader, diedHeader, countHeader, "x-death", "traceparent"}

// table has the headers of this package and others.
func (s *source) table(depth int) amqp.Table {
	h := make(amqp.Table)
	for n := int(s.byte()) % 8; n > 0; n-- {
		key := s.text()
		if i := int(s.byte()); i < 2*len(ourHeaders) {
			key = ourHeaders[i%len(ourHeaders)]
		}
		h[key] = s.value(depth)
	}
	return h
}

// value has every type that the client library reads off the wire.
func (s *source) value(depth int) any {
	if depth > 20 {
		return nil
	}
	switch s.byte() % 18 {
	case 0:
		return s.byte()%2 == 0
	case 1:
		return s.byte()
	case 2:
		return int8(s.byte()) //nolint:gosec // any number
	case 3:
		return int16(s.number()) //nolint:gosec // any number
	case 4:
		return uint16(s.number()) //nolint:gosec // any number
	case 5:
		return int32(s.number()) //nolint:gosec // any number
	case 6:
		return uint32(s.number()) //nolint:gosec // any number
	case 7, 8, 9:
		return int64(s.number()) //nolint:gosec // any number
	case 10:
		return math.Float32frombits(uint32(s.number())) //nolint:gosec // any number
	case 11:
		return math.Float64frombits(s.number())
	case 12:
		return amqp.Decimal{Scale: s.byte(), Value: int32(s.number())} //nolint:gosec // any number
	case 13:
		return s.text()
	case 14:
		return s.bytes(int(s.byte()))
	case 15:
		return time.Unix(int64(s.number()), 0) //nolint:gosec // any number
	case 16:
		return []any{s.value(depth + 1), s.value(depth + 1)}
	default:
		return s.table(depth + 1)
	}
}

// FuzzHeaders reads deliveries with any headers that other programs may write. Each is a valid
// message and a valid dead letter, and it can be published again.
func FuzzHeaders(f *testing.F) {
	f.Add("", false, []byte{})
	f.Add("id", true, []byte("\x01\x00\x01\x07\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add("id", false, []byte("\x01\x00\x01\x07\x80\x00\x00\x00\x00\x00\x00\x00"))
	f.Add("id", false, []byte("\x02\x00\x01\x07\x7f\xff\xff\xff\xff\xff\xff\xff\x00\x06\x07\x7f\xff\xff\xff\xff\xff\xff\xff"))
	f.Add("id", false, []byte("\x01\x00\x00\x07\x7f\xff\xff\xff\xff\xff\xff\xff"))
	f.Add("\xff\x00", false, []byte("\x01\x00\x03\x11\x02\x01k\xff\x0e\x03abc\x01v\xff\x10\x11\x01\x01x\xff\x0c\x01\x02"))
	f.Add("id", false, []byte("\x03\x00\x04\x0b\x7f\xf8\x00\x00\x00\x00\x00\x01\x00\x05\x0f\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, id string, redelivered bool, bytes []byte) {
		s := source(bytes)
		d := &amqp.Delivery{MessageId: id, Redelivered: redelivered, DeliveryTag: 7, Headers: s.table(0), Body: bytes}
		r := readRecord(d, redelivered)
		if r.id == "" || len(r.body) != len(bytes) || r.due.Before(time.UnixMicro(0)) || r.attempts < 0 || int64(r.attempts) > 1<<32 {
			t.Fatalf("a message %q of %d bytes, due %v, after %d attempts", r.id, len(r.body), r.due, r.attempts)
		}
		h := r.publishing().Headers
		if err := h.Validate(); err != nil {
			t.Fatalf("published again it has %v: %v", h, err)
		}
		for _, strange := range []string{"x-death", "traceparent", countHeader} {
			if _, there := h[strange]; there {
				t.Fatalf("%s is published again", strange)
			}
		}
		l := readDeadLetter(d)
		if _, err := parseCursor(cursorOf(l)); err != nil {
			t.Fatalf("a listing cannot go on after %q: %v", cursorOf(l), err)
		}
	})
}

// FuzzPassword writes a password unescaped into a URL. No error shows it, wherever its reserved
// characters have moved it. It skips text that reads as NAME=VALUE, since that is a parameter.
func FuzzPassword(f *testing.F) {
	for _, around := range [][2]string{{"", ""}, {"12/", ""}, {"12?", ""}, {"12/a?", ""}, {"#", "?"}, {"@", "/"}, {"@?", ""}, {"a@?b&", "&c"}, {"%zz", ""}, {"12/?", "&"}} {
		f.Add(around[0], around[1], "/orders?grain=x")
		f.Add(around[0], around[1], "/%2F/orders")
	}
	f.Fuzz(func(t *testing.T, before, after, rest string) {
		u, err := url.Parse("rabbitmq://user:" + before + token + after + "@localhost" + rest)
		if err != nil || strings.Contains(before, "=") {
			t.Skip("package backend hides all of it, or a parameter and its value")
		}
		broker, queue, err := splitPath(u)
		if err != nil {
			mustHide(t, err)
			return
		}
		opts, err := readParams(u)
		if err == nil && strings.Contains(queue, token) {
			t.Fatalf("%s names the queue %q", u, queue)
		}
		if err == nil {
			o := newOptions(broker, opts)
			err = o.err
		}
		if err != nil {
			mustHide(t, err)
		}
	})
}
