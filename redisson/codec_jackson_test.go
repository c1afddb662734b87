package redisson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/delayq/delayq/redisson"
)

func TestJacksonStrings(t *testing.T) {
	t.Parallel()
	for body, payload := range map[string]string{
		"":                         `""`,
		"hello":                    `"hello"`,
		`say "hi" \ /`:             `"say \"hi\" \\ /"`,
		"\b\t\n\f\r":               `"\b\t\n\f\r"`,
		"\x00\x01\x0b\x1f\x7f":     `"\u0000\u0001\u000B\u001F` + "\x7f" + `"`,
		"<&>\u2028\u2029\u0080é中":  "\"<&>\u2028\u2029\u0080é中\"",
		"a\xed\xa0\xbdb":           `"a\uD83Db"`,
		"\xed\xb8\x80\xed\xa0\xbd": `"\uDE00\uD83D"`,
	} {
		check(t, redisson.JacksonString, body, payload)
		check(t, redisson.Jackson3String, body, payload)
	}
	check(t, redisson.JacksonString, "x😀y", `"x\uD83D\uDE00y"`)
	check(t, redisson.Jackson3String, "x😀y", `"x😀y"`)
}

func TestJacksonStringsReadEveryForm(t *testing.T) {
	t.Parallel()
	for payload, body := range map[string]string{
		`"\/\u002f\u0041\u00e9"`: "//Aé",
		`"\ud83d\ude00😀"`:        "😀😀",
		`"\ud83d😀"`:              "\xed\xa0\xbd😀",
		`"\ud83d\ud83d\ude00"`:   "\xed\xa0\xbd😀",
		`"\"\\\b\f\n\r\t"`:       "\"\\\b\f\n\r\t",
		`"{\"a\":1}"`:            `{"a":1}`,
	} {
		reads(t, redisson.JacksonString, payload, body)
		reads(t, redisson.Jackson3String, " \t\r\n"+payload+"\n ", body)
	}
}

func TestJacksonStringsReject(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{
		"", " ", `"`, `"a`, `"a" "b"`, `"a"x`, "\"\n\"", `"\x"`, `"\u12"`, `"\ud83`, "\"\xff\"", "\"\xed\xa0\xbd\"", "\xef\xbb\xbf\"a\"",
		"1", "true", "null", `{"@class":"a.B"}`, `["a.B",[]]`, "hello", "'a'",
	} {
		refused(t, redisson.JacksonString, []byte(payload))
		refused(t, redisson.Jackson3String, []byte(payload))
	}
}

var jacksonObjects = []redisson.Codec{redisson.JacksonObject, redisson.Jackson3Object}

func TestJacksonObjects(t *testing.T) {
	t.Parallel()
	for body, payload := range map[string]string{
		`{"@class":"B"}`: `{"@class":"B"}`,
		` { "\u0040class" : "a.B" , "x" : [ 1.50 , -0e1 , true , null , { } ] } `: `{"@class":"a.B","x":[1.50,-0e1,true,null,{}]}`,
		`{"@class":"a.B","x":1,"x":"\u002f\u001f\u00e9\ud83d"}`:                   `{"@class":"a.B","x":1,"x":"/\u001Fé\uD83D"}`,
		`["java.util.ArrayList", ["a", ["java.lang.Long", 1], "] , \" ["]]`:       `["java.util.ArrayList",["a",["java.lang.Long",1],"] , \" ["]]`,
		`["java.lang.Long",1]`:                     `["java.lang.Long",1]`,
		`["a.B$C",{"x":[1,2]}]`:                    `["a.B$C",{"x":[1,2]}]`,
		`["[I",[1,2]]`:                             `["[I",[1,2]]`,
		`["[[Ljava.lang.String;",[["a"]]]`:         `["[[Ljava.lang.String;",[["a"]]]`,
		`["java.util.EnumSet<lab.Color>",["RED"]]`: `["java.util.EnumSet<lab.Color>",["RED"]]`,
		"[\"köln.Größe\",\n1\n]":                   `["köln.Größe",1]`,
	} {
		for _, c := range jacksonObjects {
			got, err := c.Encode([]byte(body))
			if err != nil || string(got) != payload {
				t.Errorf("%s wrote %s as %s, %v, want %s", c.Name(), body, got, err, payload)
			}
			reads(t, c, payload, payload)
			reads(t, c, body, body)
		}
	}
}

// Each version writes all strings its way, in keys too.
func TestJacksonObjectsBeyondTheBMP(t *testing.T) {
	t.Parallel()
	const escaped, raw = `{"@class":"a.B","\uD83D\uDE00":"\uD83D\uDE00"}`, `{"@class":"a.B","😀":"😀"}`
	lower := strings.NewReplacer("D83D", "d83d", "DE00", "de00").Replace(escaped)
	for _, body := range []string{escaped, raw, lower} {
		for c, want := range map[redisson.Codec]string{redisson.JacksonObject: escaped, redisson.Jackson3Object: raw} {
			if got, err := c.Encode([]byte(body)); err != nil || string(got) != want {
				t.Errorf("%s wrote %s as %s, %v", c.Name(), body, got, err)
			}
		}
	}
}

func TestJacksonObjectsReject(t *testing.T) {
	t.Parallel()
	for _, c := range jacksonObjects {
		for _, body := range []string{"", "{", `{"@class":"a.B"} x`, "{\"@class\":\"a.B\",\"x\":\"\xff\"}", `{@class:1}`, `{"@class":"a.B",}`} {
			wontWrite(t, c, body, "JSON in UTF-8")
			refused(t, c, []byte(body))
		}
		for _, body := range []string{
			"{}", `{"a":1}`, `{"a":1,"@class":"a.B"}`, `{"@class":1}`, `{"@class":""}`, `{"@class":["a.B"]}`, `{"@Class":"a.B"}`,
			"[]", "[1,2]", `["a","b"]`, `["a.B"]`, `["a.B",1,2]`, `["a.B",[1,2],3]`, `["a b.c",1]`, `["",1]`, `[["a.B",1],1]`, `["10.5",1]`, `["a@b.c",1]`,
			"1", "-1", "1.5", "true", "null",
		} {
			wontWrite(t, c, body, `{"@class":"java.util.HashMap"`)
			refused(t, c, []byte(body))
		}
		wontWrite(t, c, `"a"`, fmt.Sprintf("the codec %s takes strings", strings.TrimSuffix(c.Name(), "-object")))
	}
}

func TestJacksonRefusalsNameTheOtherCodec(t *testing.T) {
	t.Parallel()
	for payload, c := range map[string]redisson.Codec{`"the codec jackson reads"`: redisson.JacksonObject, `"the codec jackson3 reads"`: redisson.Jackson3Object} {
		_, err := c.Decode([]byte(payload))
		if err == nil || !strings.Contains(err.Error(), strings.Trim(payload, `"`)+" it") {
			t.Errorf("%s: %v", payload, err)
		}
	}
	if _, err := redisson.Jackson3String.Decode([]byte("{}")); err == nil || !strings.Contains(err.Error(), "jackson3-object") {
		t.Errorf("an object: %v", err)
	}
}

// tokens is a text without the differences between two forms of the same JSON.
func tokens(t *testing.T, text []byte) []byte {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var all bytes.Buffer
	for {
		tok, err := d.Token()
		if err == io.EOF {
			return all.Bytes()
		}
		must(t, err)
		fmt.Fprintf(&all, "%T %q\n", tok, fmt.Sprint(tok))
	}
}
