package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/delayq/delayq"
)

// FuzzPushLine reads lines of input: each is rejected in a line of printable text, or a message.
func FuzzPushLine(f *testing.F) {
	for _, seed := range []string{
		`{"id":"order-17","body":"65","after":"30m","headers":{"k":"v"}}`, `{"body_base64":"AP8=","due":"2030-01-31T18:00:00Z","type":"t"}`,
		`{"headers_base64":{"k":"!"}}`, `{"body":{"a":[1,2,{}]}}`, `{"id":"a","id":"b"}`, `{"headers":{"type":"a"},"type":"b"}`, `{"after":"1s","due":""}`,
		`[]`, `{`, `{"id":"\ud800"}`, `{"body":"\u0000"}`, `{"ID":"a"}`, `{"after":-1}`, `{"due":"9999999-01-01T00:00:00Z"}`, `null`, ` {} {} `,
		`{"headers":` + strings.Repeat("[", 20_000), `{"\u001b[2J":1}`, `{"attempt":1,"reason":2,"died":3}`, `{"headers":{"":null}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !utf8.Valid(text) {
			t.Skip("the reader of lines refuses it")
		}
		var m pushLine
		if err := m.Read(text); err != nil {
			if said := err.Error(); len(said) > 4000 || strings.ContainsFunc(said, unicode.IsControl) {
				t.Fatalf("%q is rejected with %q", text, said)
			}
			return
		}
		if !bytes.Contains(text, []byte("base64")) && !replaced(string(text)) && replaced(m.ID, string(m.Body), fmt.Sprint(m.Headers)) {
			t.Fatalf("%q is read as %+v", text, m.Message)
		}
		if len(m.Body) > len(text) {
			t.Fatalf("%d bytes of body out of %d", len(m.Body), len(text))
		}
		if m.Timed && m.Delay == 0 && m.Due.IsZero() && !bytes.Contains(text, []byte("after")) && !bytes.Contains(text, []byte("due")) && !bytes.Contains(text, []byte(`\`)) {
			t.Fatalf("%q has a time", text)
		}
	})
}

// replaced reports whether a text has the replacement character, itself or as an escape.
func replaced(texts ...string) bool {
	return slices.ContainsFunc(texts, func(s string) bool {
		return strings.Contains(s, "\ufffd") || strings.Contains(strings.ToLower(s), `\ufffd`)
	})
}

// FuzzShown shows names, bodies and reasons from a store on a terminal, which must take nothing of
// them for a command.
func FuzzShown(f *testing.F) {
	for _, seed := range []string{"plain", "\x1b[2J\x07", "\u009b31m", "\xff\x00", "a\r\nb", "\u202egnp", strings.Repeat("é", 300), `{"a":1}`, "`\"", "\"\t", "\"\u202eabc"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		due := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
		for _, text := range []string{
			waitingText([]delayq.Pending{{ID: string(b), Body: b, Headers: map[string]string{string(b): string(b)}, Due: due}}, true),
			deadText([]delayq.DeadLetter{{ID: string(b), Body: b, Headers: map[string]string{string(b): string(b)}, Due: due, Died: due, Reason: string(b)}}, false),
		} {
			strange := func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }
			if !utf8.ValidString(text) || strings.ContainsFunc(text, strange) {
				t.Fatalf("%q is shown as %q", b, text)
			}
		}
	})
}

// FuzzMessageJSON writes any message as one line, which is JSON with the same body.
func FuzzMessageJSON(f *testing.F) {
	for _, ms := range []int64{0, 1_777_000_000_000, -1e17, 1e17, 1<<63 - 1, -1 << 63} {
		f.Add("id", []byte("body"), "k", "v", ms)
		f.Add("\x1b\n\xff", []byte("\xff"), "\xff", "\x00", ms)
		f.Add(`"body":{}`, []byte(`{ "body" : {}, "<":"\u00e9" }`), "body", `{}`, ms)
		f.Add("", []byte("[\n]\n"), `"body":[]`, `"body":[]`, ms)
	}
	f.Fuzz(func(t *testing.T, id string, body []byte, key, value string, ms int64) {
		at := time.UnixMilli(ms).UTC()
		letter := delayq.DeadLetter{ID: id, Body: body, Headers: map[string]string{key: value}, Due: at, Died: at, Reason: value}
		text, err := line(deadJSON(letter))
		mustDo(t, err)
		var m messageJSON
		if err := json.Unmarshal(text, &m); err != nil || bytes.IndexByte(text, '\n') != len(text)-1 {
			t.Fatalf("%q: %v", text, err)
		}
		if got := m.bytes(); got != string(body) {
			t.Fatalf("the body %q came back as %q", body, got)
		}
	})
}

// FuzzSecrets removes URLs from printed text, however they are repeated.
func FuzzSecrets(f *testing.F) {
	const token = "Zq7tokenqZ"
	for _, seed := range [][2]string{{"pass", "@host/q"}, {"p%40", "@h/q?a=b"}, {"p@/?#", "@h"}, {"", "/q?sentinel_password="}, {"\x1b", "@[::1]/q#f"}, {"12/", "@h/q"}} {
		f.Add(seed[0], seed[1], "--url=")
		f.Add(seed[0], seed[1], "")
	}
	f.Fuzz(func(t *testing.T, before, after, flag string) {
		if flag != "" && !strings.HasSuffix(flag, "=") || strings.Contains(flag, ":") {
			t.Skip("the URL begins earlier")
		}
		raw := "redisson://me:" + url.QueryEscape(before) + token + after
		args := []string{"stats", flag + raw}
		for _, text := range []string{"unexpected argument " + raw, "unknown flag " + flag + raw} {
			said := withoutSecrets(text, args)
			if u, err := url.Parse(raw); err == nil && u.User != nil && strings.Contains(u.User.String(), token) && strings.Contains(said, token) {
				t.Fatalf("%q is printed as %q", text, said)
			}
		}
	})
}
