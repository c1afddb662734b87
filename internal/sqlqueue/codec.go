package sqlqueue

import (
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/record"
)

// Statement returns the text of dir/name.sql in embedded files. It panics where there is none.
func Statement(files fs.FS, dir, name string) string {
	text, err := fs.ReadFile(files, dir+"/"+name+".sql")
	if err != nil {
		panic(err) // the files are embedded
	}
	return string(text)
}

// Headers encodes a message's headers for a column; nil when there are none.
func Headers(h map[string]string) []byte {
	if len(h) == 0 {
		return nil
	}
	return record.AppendHeaders(nil, h)
}

// ReadHeaders decodes a column that [Headers] encoded.
func ReadHeaders(column []byte) (map[string]string, error) {
	if len(column) == 0 {
		return nil, nil
	}
	h, _, err := record.Content(column)
	return h, err
}

// A Place is where a listing goes on: after the message of that time and number.
type Place struct {
	Time   int64
	Number int64
}

// FirstPlace is before every message.
var FirstPlace = Place{math.MinInt64, math.MinInt64}

// Cursor writes a place.
func (p Place) Cursor() string { return fmt.Sprintf("%d.%d", p.Time, p.Number) }

// ReadCursor reads a cursor: "" is the first place. It returns an [backend.InvalidError] for a text
// that Cursor did not write.
func ReadCursor(cursor string) (Place, error) {
	if cursor == "" {
		return FirstPlace, nil
	}
	var p Place
	if n, _ := fmt.Sscanf(cursor, "%d.%d", &p.Time, &p.Number); n != 2 || p.Cursor() != cursor {
		return Place{}, backend.Invalid("cursor", cursor, "one that a listing of this queue returned")
	}
	return p, nil
}

// After returns now plus d, and the latest time where that would run over.
func After(now time.Time, d time.Duration) time.Time {
	if ns := now.UnixNano(); d > 0 && ns > math.MaxInt64-int64(d) {
		return time.Unix(0, math.MaxInt64).UTC()
	}
	return now.Add(d)
}

// Unknown is the error of a call whose context ended before the database replied.
func Unknown(err error) error { return fmt.Errorf("%w: %w", backend.ErrOutcomeUnknown, err) }
