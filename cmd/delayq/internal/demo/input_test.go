package demo

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/delayq/delayq/cmd/delayq/internal/jsonl"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const input = "\xef\xbb\xbf" + `{"id":"order-1","delay":"30m","body":{"total": 12.50}}

   ` + "\t" + `
{"delay":"1.5s","body":"he said \"hi\"\u0000é"}` + "\r" + `
{"due":"2100-01-31T18:00:00.5+01:00","id":"ü"}
{}
{"body":null,"id":"no newline after this"}`
	got, err := parse("f", strings.NewReader(input), 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []message{
		{line: 1, id: "order-1", wait: 30 * time.Minute, body: []byte(`{"total": 12.50}`)},
		{line: 4, wait: 1500 * time.Millisecond, body: []byte("he said \"hi\"\x00é")},
		{line: 5, id: "ü", due: time.Date(2100, 1, 31, 17, 0, 0, 5e8, time.UTC)},
		{line: 6},
		{line: 7, id: "no newline after this", body: []byte("null")},
	}
	if len(got) != len(want) {
		t.Fatalf("got %d messages, want %d: %+v", len(got), len(want), got)
	}
	for i, w := range want {
		g := got[i]
		if g.line != w.line || g.id != w.id || g.wait != w.wait || !g.due.Equal(w.due) || !bytes.Equal(g.body, w.body) {
			t.Errorf("message %d:\ngot  %+v\nwant %+v", i, g, w)
		}
	}
}

const (
	allowedDelay = `: allowed is a string with a Go duration, 0 or more, as "1.5s" or "30m"`
	allowedDue   = `: allowed is a string with an RFC 3339 time from 1970 to 2200, as "2030-01-31T18:00:00Z"`
	allowedID    = `: allowed is a string of 1 to 255 bytes without control characters`
	allowedText  = `: allowed is UTF-8 text`
	allowedNames = `: allowed are id, delay, due and body`
)

func TestBadLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"delay":"3 minutes"}`:                       `delay "3 minutes"` + allowedDelay,
		`{"delay":500}`:                               `delay 500` + allowedDelay,
		`{"delay":null}`:                              `delay null` + allowedDelay,
		`{"delay":""}`:                                `delay ""` + allowedDelay,
		`{"delay":"-1s"}`:                             `delay "-1s"` + allowedDelay,
		`{"delay":"9999999h"}`:                        `delay "9999999h"` + allowedDelay, // overflows
		`{"delay":"1000000h"}`:                        `due in 1000000h at speed 1: allowed is up to 36500d`,
		`{"due":"tomorrow"}`:                          `due "tomorrow"` + allowedDue,
		`{"due":"2030-01-31"}`:                        `due "2030-01-31"` + allowedDue,
		`{"due":1893456000}`:                          `due 1893456000` + allowedDue,
		`{"due":"0001-01-01T00:00:00Z"}`:              `due "0001-01-01T00:00:00Z"` + allowedDue,
		`{"due":"2300-01-01T00:00:00Z"}`:              `due "2300-01-01T00:00:00Z"` + allowedDue,
		`{"id":""}`:                                   `id ""` + allowedID,
		`{"id":17}`:                                   `id 17` + allowedID,
		`{"id":"a\u0000b"}`:                           `id "a\u0000b"` + allowedID,
		`{"id":"` + strings.Repeat("x", 256) + `"}`:   `id "` + strings.Repeat("x", 59) + `…` + allowedID,
		`{"delay":"1s","due":"2030-01-31T18:00:00Z"}`: `"delay" and "due": allowed is one of them`,
		`{"ID":"a"}`:                                  `field "ID"` + allowedNames,
		`{"priority":1}`:                              `field "priority"` + allowedNames,
		`{"delay":"1s","delay":"2s"}`:                 `field "delay" twice: allowed is once`,
		`[1,2]`:                                       `[1,2]: allowed is a JSON object`,
		`null`:                                        `null: allowed is a JSON object`,
		`"{}"`:                                        `"{}": allowed is a JSON object`,
		`{"id":"a",`:                                  `not JSON: it ends too early, after byte 10`,
		`{"body":"half`:                               `not JSON: it ends too early, after byte 13`,
		`{"id":"a"} {}`:                               `not JSON: invalid character '{' after top-level value, at byte 12`,
		`id=a`:                                        `not JSON: invalid character 'i' looking for beginning of value, at byte 1`,
		"{\"id\":\"a\tb\"}":                           `not JSON: invalid character '\t' in string literal, at byte 9`,
		"{\"id\":\"a\x00\"}":                          `NUL at byte 9` + allowedText + `, with NUL written as \u0000`,
		"{\"id\":\"ä\xff\"}":                          `invalid UTF-8 at byte 10` + allowedText,
	} {
		_, err := parse("orders.jsonl", strings.NewReader("{}\n"+line+"\n{}\n"), 1)
		want = "orders.jsonl: 1 bad line; nothing was pushed\norders.jsonl:2: " + want
		if err == nil || err.Error() != want {
			t.Errorf("%q\ngot  %v\nwant %v", line, err, want)
		}
	}
}

func TestSpeedBoundsDelays(t *testing.T) {
	t.Parallel()
	const input = `{"delay":"876000h"}`
	if _, err := parse("f", strings.NewReader(input), 1); err != nil {
		t.Errorf("a hundred years at speed 1: %v", err)
	}
	_, err := parse("f", strings.NewReader(input), 0.5)
	if want := "due in 73000d at speed 0.5: allowed is up to 36500d"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("at speed 0.5: got %v, want %s", err, want)
	}
}

func TestRepeatedIDNamesBothLines(t *testing.T) {
	t.Parallel()
	_, err := parse("f", strings.NewReader("{\"id\":\"a\"}\n\n{\"id\":\"b\"}\n{\"id\":\"a\"}\n"), 1)
	if want := `f:4: id "a" is that of line 1: allowed is one line for each id`; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestAllBadLinesAreCountedTenShown(t *testing.T) {
	t.Parallel()
	_, err := parse("f", strings.NewReader(strings.Repeat("{}\nbad\n", 12)), 1)
	var bad *BadInput
	if !errors.As(err, &bad) {
		t.Fatalf("got %v, want a BadInput", err)
	}
	lines := strings.Split(bad.Error(), "\n")
	if want := "f: 12 bad lines; nothing was pushed; the first 10:"; lines[0] != want {
		t.Errorf("got %q, want %q", lines[0], want)
	}
	if len(lines) != 11 || !strings.HasPrefix(lines[1], "f:2: ") || !strings.HasPrefix(lines[10], "f:20: ") {
		t.Errorf("got %q, want lines 2 to 20", lines[1:])
	}
}

func TestLongLineIsRefused(t *testing.T) {
	t.Parallel()
	var p parser
	in := jsonl.NewReader(strings.NewReader("{     }"), 3)
	in.Next()
	err := p.line(in)
	if want := "line too long: allowed are up to 3 bytes"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestLargeBody(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte("1"), 16<<20+1)
	var m message
	if err := m.readBody(body[1:]); err != nil {
		t.Errorf("of 16 MiB: %v", err)
	}
	err := m.readBody(body)
	if want := "body of 16777217 bytes: allowed are up to 16777216"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestReadFailure(t *testing.T) {
	t.Parallel()
	in := io.MultiReader(strings.NewReader("{}\n{}\n"), iotest.ErrReader(errors.New("disk on fire")))
	_, err := parse("f", in, 1)
	if want := "reading the input f, line 3: disk on fire"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	began := time.Now()
	now := began.Add(time.Second)
	for _, c := range []struct {
		m     message
		speed float64
		want  time.Duration
	}{
		{message{}, 600, 0},
		{message{wait: 30 * time.Minute}, 600, 3 * time.Second}, // from the push
		{message{due: began.Add(30 * time.Minute)}, 600, 2 * time.Second},
		{message{due: began.Add(5 * time.Minute)}, 600, 0}, // the push comes too late for it
		{message{due: began.Add(-time.Hour)}, 1, 0},
		{message{wait: time.Minute}, 0.5, 2 * time.Minute},
	} {
		if got := c.m.delay(began, now, c.speed); got != c.want {
			t.Errorf("%+v at speed %g: got %v, want %v", c.m, c.speed, got, c.want)
		}
	}
}
