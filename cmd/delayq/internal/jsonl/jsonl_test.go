package jsonl

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestLongLines(t *testing.T) {
	t.Parallel()
	const limit = 100_000
	fits := strings.Repeat("x", limit)
	in := NewReader(strings.NewReader(fits+"\r\n"+fits+"xyz\n{}\n"+fits+fits), limit)
	for i, want := range []struct {
		text    string
		tooLong bool
	}{{fits, false}, {"", true}, {"{}", false}, {"", true}} {
		if !in.Next() {
			t.Fatalf("ended before line %d: %v", i+1, in.Err)
		}
		text, err := in.Text()
		if in.Number != i+1 || (err != nil) != want.tooLong || string(text) != want.text {
			t.Errorf("line %d: got number %d, error %v, %d bytes", i+1, in.Number, err, len(text))
		}
	}
	if in.Next() || in.Err != nil {
		t.Errorf("goes on after the end, with error %v", in.Err)
	}
}

func TestShown(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                      "",
		"plain, ünïcode":        "plain, ünïcode",
		"\x1b[31mred":           `"\x1b[31mred"`,
		"two\nlines":            `"two\nlines"`,
		"\xff":                  `"\xff"`,
		strings.Repeat("é", 60): strings.Repeat("é", 60),
		strings.Repeat("é", 61): strings.Repeat("é", 60) + "…",
	} {
		if got := Shown(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestHalvesOfCharacters(t *testing.T) {
	t.Parallel()
	for text, whole := range map[string]bool{
		`{"k":"\ud83d\ude00"}`: true, `{"k":"\uD83D\uDE00 \u00e9"}`: true, `{"k":"\\ud83d"}`: true, `{"k":"\ufffd"}`: true, `{"k":{"a":"\ud83d"}}`: true,
		`{"\ud83d\ude00":1}`: true, `{"k":"\ud83d"}`: false, `{"k":"\ude00\ud83d"}`: false, `{"k":"\ud83d\ud83d\ude00"}`: false, `{"k":"x\\\ud83dx"}`: false,
		`{"a":1, "\ud83d" :1}`: false, `{"k":"\ud83d\n"}`: false, `{"k":"\ud83d\\ude00"}`: false,
	} {
		err := Fields([]byte(text), func(string, json.RawMessage) error { return nil })
		if errors.Is(err, ErrSurrogate) == whole {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
