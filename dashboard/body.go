package dashboard

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"unicode/utf8"
)

const (
	bodyShown   = 64 << 10 // bytes of a text
	hexShown    = 4 << 10  // bytes
	jsonRead    = 1 << 20  // bytes; larger bodies are shown as text
	jsonWritten = 4 << 20  // bytes, with the indentation; what needs more is shown as text
	bodyPreview = 120      // characters
)

// bodyView is a message's body as a page shows it.
type bodyView struct {
	As    string // "json", "text" or "hex"
	Text  string
	Bytes int
	Cut   bool // the text is not all of it
}

// viewBody shows a body in the form that is asked for, or in the best one.
func viewBody(body []byte, as string) bodyView {
	v := bodyView{As: as, Bytes: len(body)}
	if as != "json" && as != "text" && as != "hex" {
		v.As = bestForm(body)
	}
	if v.As == "json" && len(body) <= jsonRead && indentable(body) {
		var out bytes.Buffer
		if json.Indent(&out, body, "", "  ") == nil {
			v.Text, v.Cut = cutText(out.Bytes())
			return v
		}
	}
	if v.As == "json" {
		v.As = "text"
	}
	if v.As == "hex" {
		v.Cut = len(body) > hexShown
		v.Text = hex.Dump(body[:min(len(body), hexShown)])
		return v
	}
	v.Text, v.Cut = cutText(body)
	return v
}

// indentable tells whether JSON stays below jsonWritten with line breaks and two spaces a level. Deep
// nesting makes gigabytes of some kilobytes.
func indentable(body []byte) bool {
	size, depth, quoted := len(body), 0, false
	for i := 0; i < len(body) && size <= jsonWritten; i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			depth++
			size += 1 + 2*depth
		case c == '}', c == ']':
			depth--
			size += 1 + 2*depth
		case c == ',':
			size += 1 + 2*depth
		}
	}
	return size <= jsonWritten
}

func bestForm(body []byte) string {
	switch trimmed := bytes.TrimSpace(body[:min(len(body), bodyShown)]); {
	case !utf8.Valid(body) || bytes.IndexByte(body, 0) >= 0:
		return "hex"
	case len(trimmed) > 0 && len(body) <= jsonRead && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid(body):
		return "json"
	default:
		return "text"
	}
}

func cutText(text []byte) (string, bool) {
	if len(text) <= bodyShown {
		return visibleLines(string(text)), false
	}
	cut := bodyShown
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return visibleLines(string(text[:cut])), true
}

// preview is a body in one line.
func preview(body []byte) string {
	begin := body[:min(len(body), 8*bodyPreview)]
	if bytes.IndexByte(begin, 0) >= 0 || !utf8.Valid(trimRune(begin)) {
		text := hex.EncodeToString(body[:min(len(body), 24)])
		if len(body) > 24 {
			text += "…"
		}
		return "hex " + text
	}
	return short(string(bytes.Join(bytes.Fields(begin), []byte(" "))), bodyPreview)
}

// trimRune takes a character away that a cut has left in parts.
func trimRune(b []byte) []byte {
	for i := 1; i <= min(3, len(b)); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			return b
		}
	}
	return b
}
