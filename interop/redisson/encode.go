package interop

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// encode writes a value in the notation that Notation.java describes.
func encode(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "n", nil
	case bool:
		return strconv.FormatBool(v)[:1], nil
	case string:
		return encodeString(v)
	case UTF16:
		return "s" + hexUnits(v), nil
	case []byte:
		return "b" + base64.StdEncoding.EncodeToString(v), nil
	case int32:
		return "i" + strconv.Itoa(int(v)), nil
	case int64:
		return "l" + strconv.FormatInt(v, 10), nil
	case []any:
		return encodeList(v)
	default:
		return "", fmt.Errorf("a value of type %T cannot go to Java; see the types in value.go", value)
	}
}

func encodeString(s string) (string, error) {
	if !utf8.ValidString(s) {
		return "", fmt.Errorf("the string %q is not UTF-8 and cannot go to Java; UTF16 and []byte can", s)
	}
	return "s" + hexUnits(utf16.Encode([]rune(s))), nil
}

func hexUnits(units []uint16) string {
	var b strings.Builder
	for _, unit := range units {
		fmt.Fprintf(&b, "%04x", unit)
	}
	return b.String()
}

func encodeList(values []any) (string, error) {
	words := make([]string, len(values))
	for i, value := range values {
		word, err := encode(value)
		if err != nil {
			return "", err
		}
		words[i] = word
	}
	return "a[" + strings.Join(words, ",") + "]", nil
}
