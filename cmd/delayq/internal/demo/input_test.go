package demo

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
	"github.com/delayq/delayq/cmd/delayq/internal/jsonl"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const input = "\xef\xbb\xbf" + `{"id":"order-1","after":"30m","body":{"total": 12.50}}

   ` + "\t" + `
{"after":"1.5s","body":"he said \"hi\"\u0000é"}` + "\r" + `
{"due":"2100-01-31T18:00:00.5+01:00","id":"ü"}
{"body_base64":"/w==","headers":{"k":"v"},"type":"t"}
{"body":null,"id":"no newline after this"}`
	got, err := parse("f", strings.NewReader(input), 1)
	if err != nil {
		t.Fatal(err)
	}
	want := []message{
		lineOf(1, delayq.Message{ID: "order-1", Delay: 30 * time.Minute, Body: []byte(`{"total": 12.50}`)}),
		lineOf(4, delayq.Message{Delay: 1500 * time.Millisecond, Body: []byte("he said \"hi\"\x00é")}),
		lineOf(5, delayq.Message{ID: "ü", Due: time.Date(2100, 1, 31, 17, 0, 0, 5e8, time.UTC)}),
		lineOf(6, delayq.Message{Body: []byte{0xff}, Headers: map[string]string{"type": "t", "k": "v"}}),
		lineOf(7, delayq.Message{ID: "no newline after this", Body: []byte("null")}),
	}
	if len(got) != len(want) {
		t.Fatalf("got %d messages, want %d: %+v", len(got), len(want), got)
	}
	for i, w := range want {
		g := got[i]
		if g.line != w.line || g.ID != w.ID || g.Delay != w.Delay || !g.Due.Equal(w.Due) || !bytes.Equal(g.Body, w.Body) || !maps.Equal(g.Headers, w.Headers) {
			t.Errorf("message %d:\ngot  %+v\nwant %+v", i, g, w)
		}
	}
}

func lineOf(number int, m delayq.Message) message {
	return message{Message: jsonl.Message{Message: m}, line: number}
}

const (
	allowedDelay = `: allowed is a string with a duration, as ` + human.Durations
	allowedDue   = `: allowed is a string with a time, as ` + human.Times
	allowedYears = `: allowed are the years 1970 to 2200`
	allowedID    = `: allowed are 1 to 255 bytes without control characters`
	allowedText  = `: allowed is UTF-8 text`
	allowedNames = `: allowed are id, body, body_base64, after, due, headers, headers_base64, type and limits`
)

func TestBadLines(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"after":"3 minutes"}`:                       `after "3 minutes"` + allowedDelay,
		`{"after":500}`:                               `after 500` + allowedDelay,
		`{"after":null}`:                              `after null` + allowedDelay,
		`{"after":""}`:                                `after ""` + allowedDelay,
		`{"after":"-1s"}`:                             `after -1s: allowed is 0 or more`,
		`{"after":"9999999h"}`:                        `after "9999999h"` + allowedDelay, // overflows
		`{"after":"1000000h"}`:                        `due in 41666d16h at speed 1: allowed is up to 36500d`,
		`{"due":"soon"}`:                              `due "soon"` + allowedDue,
		`{"due":"31.1.2030"}`:                         `due "31.1.2030"` + allowedDue,
		`{"due":1893456000}`:                          `due 1893456000` + allowedDue,
		`{"due":"0001-01-01T00:00:00Z"}`:              `due "0001-01-01T00:00:00Z"` + allowedDue,
		`{"due":"2300-01-01T00:00:00Z"}`:              `due 2300-01-01T00:00:00Z` + allowedYears,
		`{"id":""}`:                                   `id "": allowed is a string that is not empty`,
		`{"id":17}`:                                   `id 17: allowed is a string that is not empty`,
		`{"id":"a\u0000b"}`:                           `id "a\x00b"` + allowedID,
		`{"id":"` + strings.Repeat("x", 256) + `"}`:   `id ` + strings.Repeat("x", 60) + `…` + allowedID,
		`{"after":"1s","due":"2030-01-31T18:00:00Z"}`: `"after" and "due": allowed is one of them`,
		`{"ID":"a"}`:                                  `field "ID"` + allowedNames,
		`{"priority":1}`:                              `field "priority"` + allowedNames,
		`{"after":"1s","after":"2s"}`:                 `field "after" twice: allowed is once`,
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
	const input = `{"after":"876000h"}`
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
	m := lineOf(1, delayq.Message{Body: body[1:]})
	if err := m.check(); err != nil {
		t.Errorf("of 16 MiB: %v", err)
	}
	m.Body = body
	err := m.check()
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
		{lineOf(1, delayq.Message{Delay: 30 * time.Minute}), 600, 3 * time.Second}, // from the push
		{lineOf(1, delayq.Message{Due: began.Add(30 * time.Minute)}), 600, 2 * time.Second},
		{lineOf(1, delayq.Message{Due: began.Add(5 * time.Minute)}), 600, 0}, // the push comes too late for it
		{lineOf(1, delayq.Message{Due: began.Add(-time.Hour)}), 1, 0},
		{lineOf(1, delayq.Message{Delay: time.Minute}), 0.5, 2 * time.Minute},
	} {
		if got := c.m.delay(began, now, c.speed); got != c.want {
			t.Errorf("%+v at speed %g: got %v, want %v", c.m, c.speed, got, c.want)
		}
	}
}
