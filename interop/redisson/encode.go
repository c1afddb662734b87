package interop

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
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
	case float64:
		return "d" + strconv.FormatFloat(v, 'g', -1, 64), nil
	default:
		return encodeComposite(value)
	}
}

func encodeComposite(value any) (string, error) {
	switch v := value.(type) {
	case []any:
		return encodeList("a", v)
	case map[string]any:
		return encodeList("m", pairs(v))
	case Order:
		tags := make([]any, len(v.Tags))
		for i, tag := range v.Tags {
			tags[i] = tag
		}
		return encodeList("o", []any{v.ID, v.Amount, tags})
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

func pairs(m map[string]any) []any {
	var list []any
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list = append(list, key, m[key])
	}
	return list
}

func encodeList(kind string, values []any) (string, error) {
	words := make([]string, len(values))
	for i, value := range values {
		word, err := encode(value)
		if err != nil {
			return "", err
		}
		words[i] = word
	}
	return kind + "[" + strings.Join(words, ",") + "]", nil
}
