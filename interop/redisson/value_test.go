package interop

import (
	"reflect"
	"strings"
	"testing"
)

func TestNotation(t *testing.T) {
	for text, value := range map[string]any{
		"n": nil, "t": true, "f": false, "i-1": int32(-1), "l8589934592": int64(1 << 33),
		"s": "", "s00e4d83dde00": "ä😀", "sd83d": UTF16{0xd83d}, "b": []byte{}, "bAP8=": []byte{0, 255},
		"a[]": []any{}, "a[n,a[s]]": []any{nil, []any{""}},
	} {
		if got, err := encode(value); got != text || err != nil {
			t.Errorf("encode(%#v) = %q, %v; want %q", value, got, err, text)
		}
		if got, err := decode(text); !reflect.DeepEqual(got, value) || err != nil {
			t.Errorf("decode(%q) = %#v, %v; want %#v", text, got, err, value)
		}
	}
}

func TestBadNotation(t *testing.T) {
	for _, text := range []string{"", "z", "a[", "a[n", "s006", "s00gg", "i", "i2147483648", "bA", "nn]", "m[n]", "t[]"} {
		if got, err := decode(text); err == nil {
			t.Errorf("decode(%q) = %#v", text, got)
		}
	}
	for what, value := range map[string]any{"int": 1, "not UTF-8": "\xff", "struct {}": []any{struct{}{}}} {
		if got, err := encode(value); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("encode(%#v) = %q, %v", value, got, err)
		}
	}
}
