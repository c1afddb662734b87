package memory

import (
	"strings"
	"testing"

	"github.com/delayq/delayq/internal/record"
)

// Messages count as the documentation of MaxBytes says.
func TestBytesOfAMessage(t *testing.T) {
	t.Parallel()
	headers := map[string]string{"k": "v", strings.Repeat("k", 200): strings.Repeat("v", 20_000)}
	lengths := len(headers["k"]) + 1 + 20_200
	for n := 0; n <= maxPageSize; n += 1 + n/50 {
		for _, h := range []map[string]string{nil, headers} {
			content, least, most := n+2, 3, 8
			if h != nil {
				content, least, most = content+lengths, least+2*len(h), most+6*len(h)
			}
			size := recordSize(record.PackID(nil, "id"), h, make([]byte, n))
			if size < content+least || size > content+most {
				t.Errorf("%d bytes take %d before rounding", content, size)
			}
			if cell := int(cellSize(size)); cell < size || cell > size+max(7, size/8) {
				t.Errorf("%d bytes are rounded up to %d", size, cell)
			}
		}
	}
}
