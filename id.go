package delayq

import (
	"bufio"
	"crypto/rand"
	"time"

	"github.com/oklog/ulid/v2"
)

// entropy makes ids of one millisecond rise, so that ids sort in the order in which this
// process made them: 80 random bits, then counted up by random steps.
var entropy = &ulid.LockedMonotonicReader{
	MonotonicReader: ulid.Monotonic(bufio.NewReader(rand.Reader), 0),
}

func newID() string {
	return ulid.MustNew(ulid.Timestamp(time.Now()), entropy).String()
}
