package redisson

import (
	"regexp"

	"github.com/delayq/delayq/backend"
)

// JacksonObject is JsonJacksonCodec for objects, and Jackson3Object is JsonJackson3Codec for them.
// The body is JSON that names its Java class as Redisson writes it: an object whose first property
// is "@class", or an array of a class name and a value,
//
//	{"@class":"java.util.HashMap","id":"o-1","at":["java.lang.Long",1700000000000]}
//	["java.util.ArrayList",["a",1]]
//	["java.lang.Long",1]
//
// since Java fails on all else, and has popped it by then. Only the outermost value is checked, and
// in an array only that the name looks like one with a package. Objects and arrays further in need
// their class too, unless the class says what they are.
//
// Encode drops the space between tokens and writes strings with the escapes of that version of
// Jackson. Numbers, the order of properties and repeated ones stay as they are. Decode returns the
// payload as it is. Bare numbers, booleans, null and strings are rejected.
var (
	JacksonObject  Codec = jacksonObject{"jackson", escaping{pairs: true}}
	Jackson3Object Codec = jacksonObject{"jackson3", escaping{}}
)

type jacksonObject struct {
	strings string // the codec for strings
	escaping
}

func (c jacksonObject) Name() string { return c.strings + "-object" }

func (c jacksonObject) Encode(body []byte) ([]byte, error) {
	if !validJSON(body) {
		return nil, backend.Invalid("body", string(body), "JSON in UTF-8")
	}
	if !isTyped(body) {
		return nil, backend.Invalid("body", string(body), `JSON that names its Java class, such as {"@class":"java.util.HashMap","a":1}, `+
			`["java.util.ArrayList",["a",1]] or ["java.lang.Long",1]; the codec `+c.strings+` takes strings`)
	}
	return c.compact(body), nil
}

func (c jacksonObject) Decode(payload []byte) ([]byte, error) {
	if !validJSON(payload) {
		return nil, unreadable(c.Name(), "not JSON in UTF-8", payload)
	}
	if skipSpace(payload)[0] == '"' {
		return nil, unreadable(c.Name(), "a string; the codec "+c.strings+" reads it", payload)
	}
	if !isTyped(payload) {
		return nil, unreadable(c.Name(), "JSON that does not begin with a Java class", payload)
	}
	return payload, nil
}

func isTyped(b []byte) bool { return len(classOf(b)) > 0 }

// classOf is the Java class that JSON names first, or nothing.
func classOf(b []byte) []byte {
	b = skipSpace(b)
	inner := skipSpace(b[1:])
	switch b[0] {
	case '{':
		return classOfObject(inner)
	case '[':
		return classOfArray(inner)
	default:
		return nil
	}
}

func classOfObject(b []byte) []byte {
	if b[0] != '"' {
		return nil
	}
	property, b := cutLiteral(b)
	value := skipSpace(skipSpace(b)[1:])
	if string(unquote(property)) != "@class" || value[0] != '"' {
		return nil
	}
	class, _ := cutLiteral(value)
	return unquote(class)
}

func classOfArray(b []byte) []byte {
	if b[0] != '"' {
		return nil
	}
	literal, b := cutLiteral(b)
	class := unquote(literal)
	if !className.Match(class) || more(b) != 1 {
		return nil
	}
	return class
}

// className is a class in a package, perhaps with parameters (java.util.EnumSet<a.B>), or an
// array's ([I, [La.B;). Without it an untyped array of two strings would pass.
var className = regexp.MustCompile(`^(\[+([BCDFIJSZ]|L[^\s;]+;)|[\pL_$][\pL\pN_$]*(\.[\pL_$][\pL\pN_$]*)+(<\S+>)?)$`)

// more counts the elements of an array that follow the first one.
func more(b []byte) int {
	n, depth := 0, 0
	for len(b) > 0 {
		switch b[0] {
		case '"':
			_, b = cutLiteral(b)
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth == 0 {
				n++
			}
		}
		b = b[1:]
	}
	return n
}
