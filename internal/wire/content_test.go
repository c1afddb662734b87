package wire_test

import (
	"strings"
	"testing"

	"github.com/delayq/delayq/internal/wire"
)

// A large body is base64 where it would take more room as JSON text.
func TestLargeContentIsTheShorterForm(t *testing.T) {
	t.Parallel()
	for part, text := range map[string]bool{
		"a": true, "\u2027": true, "aaa\n": true,
		"\n": false, "\x00": false, "\u2028": false, "\u2029": false,
	} {
		c := wire.ContentOf([]byte(strings.Repeat(part, 1<<20/len(part)+1)), nil)
		if (c.Body != "") != text || (c.BodyBase64 != nil) == text {
			t.Errorf("%q: text is %v, want %v", part, c.Body != "", text)
		}
	}
}
