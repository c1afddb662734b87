package memory

import (
	"encoding/binary"

	"github.com/delayq/delayq/internal/record"
)

// A record is a message in one run of bytes, with whatever its cell has room for behind it:
//
//	packed id | content's length, a uvarint | content

func recordSize(packed []byte, headers map[string]string, body []byte) int {
	n := record.ContentSize(headers, body)
	return len(packed) + record.UvarintSize(n) + n
}

// putRecord writes a record into dst, which is large enough.
func putRecord(dst, packed []byte, headers map[string]string, body []byte) {
	dst = append(dst[:0], packed...)
	dst = binary.AppendUvarint(dst, uint64(record.ContentSize(headers, body)))
	_ = record.AppendContent(dst, headers, body)
}

// getRecord copies a record's parts out.
func getRecord(rec []byte) (id string, headers map[string]string, body []byte) {
	packed := record.PackedID(rec)
	n, size := binary.Uvarint(rec[len(packed):])
	content := rec[len(packed)+size:][:n]
	headers, body, err := record.Content(content)
	if err != nil {
		panic(err) // it was written here, into memory that nothing else writes to
	}
	return record.UnpackID(packed), headers, body
}
