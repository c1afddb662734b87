package redisson

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/redis/script"
)

func FuzzURL(f *testing.F) {
	redistest.FuzzURL(f, parseURL, func(c redis.UniversalClient, opts []Option) error {
		o := newOptions(c, opts)
		if o.codec == nil || o.format < V2 || o.format > Both || o.sweep <= 0 {
			return fmt.Errorf("%+v", o)
		}
		return o.err
	},
		"redisson://host/orders?codec=kryo5&format=v1&sweep=1s", "redisson://host/orders?codec=envelope&index=false&any_format=true",
		"redisson://h/%7Borders%7D?prefix=app%3A", "redisson://h/o?codec=java.lang.Runtime", "redisson://h/o?sweep=-1h&format=v3",
		"redisson://h/a%00%0A%2A?prefix=%00", "redisson://:pw@h/o?format=both&format=v1", "redisson://h/o?index=maybe",
	)
}

// FuzzReplies parses bytes from Redis, where other programs may have written: leases, dead letters
// and scheduled messages. Nothing panics, nothing takes more memory than the bytes themselves, and
// a delivered message can be settled by its id.
func FuzzReplies(f *testing.F) {
	held := make([]byte, heldLen)
	binary.BigEndian.PutUint16(held[46:], idLen)
	member := Member{V1, []byte("12345678"), []byte("ok")}.Bytes()
	death := append(make([]byte, deathLen), member...)
	envelope := seal(&backend.Message{ID: "order-17", Headers: map[string]string{"k": "v"}, Body: []byte("body")})
	f.Add(uint8(0), "key", append(bytes.Clone(held), member...))
	f.Add(uint8(1), "key", append(append(bytes.Clone(held), "1234567\x08\xff\xff\xff\xff\xff\xff\xff\xff"...), envelope...))
	f.Add(uint8(0), "\x00short", death)
	f.Add(uint8(1), "\x00short", death)
	f.Add(uint8(1), "\x03abc", append(make([]byte, deathLen), Member{V2, []byte("12345678"), envelope}.Bytes()...))
	f.Add(uint8(0), "", bytes.Repeat([]byte{0xff}, 100))
	f.Fuzz(func(t *testing.T, which uint8, key string, stored []byte) {
		stored = slices.Clip(stored)
		s := &store{options: options{codec: codecs[int(which)%len(codecs)]}, Runner: script.Runner{Log: slog.New(slog.DiscardHandler)}}
		if which%2 == 1 {
			s.codec = Envelope
		}
		d, err := s.delivery(stored)
		wantSettleable(t, s, &d, err)
		wantSmall(t, d.Body, stored)
		wantSmall(t, s.letter(key, 0, stored).Body, stored)
		for _, where := range []string{"T", "D"} {
			p := s.waiting([]any{where, key, "17", "18", "19", string(stored)}, 0)
			wantSmall(t, p.Body, stored)
		}
		q := s.quarantined(redis.Z{Score: 1, Member: string(stored)})
		wantSmall(t, q.Bytes, stored)
	})
}

func wantSettleable(t *testing.T, s *store, d *backend.Delivery, err error) {
	t.Helper()
	if err != nil {
		return
	}
	if id, ok := s.identify(d.ID); d.ID == "" || !s.envelopes() && !ok && len(id.key) > 1 {
		t.Fatalf("handed out as %q, which names nothing", d.ID)
	}
}

func wantSmall(t *testing.T, body, from []byte) {
	t.Helper()
	if cap(body) > 2*len(from)+64 {
		t.Fatalf("%d bytes for a body, out of %d", cap(body), len(from))
	}
}

// FuzzEnvelope reads payloads that any program may have put into a Go queue. A readable one comes
// back as it is.
func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(magic))
	f.Add([]byte(magic + "\x00"))
	f.Add([]byte(magic + "\x01a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"))
	f.Add([]byte(magic + "\x01a\x80\x80\x80\x80\x02"))
	f.Add(seal(&backend.Message{ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Headers: map[string]string{"": "\x00", "k": "v"}, Body: []byte("body")}))
	f.Fuzz(func(t *testing.T, payload []byte) {
		headers, body, err := unseal(payload)
		if err != nil {
			if !errors.Is(err, ErrUnreadable) {
				t.Fatalf("rejected with %v", err)
			}
			return
		}
		key, ok := envelopeKey(payload)
		if !ok {
			t.Fatalf("read, but without a key: %x", payload)
		}
		wantSmall(t, body, payload)
		if id := unpacked(key); id != "" {
			h, b, err := unseal(seal(&backend.Message{ID: id, Headers: headers, Body: body}))
			if err != nil || !maps.Equal(h, headers) || !bytes.Equal(b, body) {
				t.Fatalf("%q %q came back as %q %q, %v", headers, body, h, b, err)
			}
		}
	})
}

// FuzzCursors reads cursors and ids, which may come from anywhere.
func FuzzCursors(f *testing.F) {
	for _, seed := range []string{"", "0_0____", "7_5_17_-19.5_00ff_07", "0_0_nan___", "0_0_1e+300_-inf__", "-1_0____", "0_0_x___", "0_0____zz", "_____", "1_2_3", "9007199254740993", "0812-17", "-", "zz-1", "08-99999999999999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, err := range []error{second(parsePlace(text)), second(script.ParseCursor(text))} {
			if err != nil && (!errors.Is(err, backend.ErrInvalid) || !utf8.ValidString(err.Error()) || len(err.Error()) > 500) {
				t.Fatalf("%q is rejected with %v", text, err)
			}
		}
		for _, c := range []Codec{Bytes, Envelope} {
			s := &store{options: options{codec: c}, Runner: script.Runner{Log: slog.New(slog.DiscardHandler)}}
			if id, ok := s.identify(text); ok && len(text) <= backend.MaxID && text != "" && !strings.EqualFold(s.id(string(id.key), id.origin), text) {
				if again, _ := s.identify(s.id(string(id.key), id.origin)); again.origin != id.origin || !bytes.Equal(again.key, id.key) {
					t.Fatalf("the id %q names %x and %d, and that is the id %q", text, id.key, id.origin, s.id(string(id.key), id.origin))
				}
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }
