package server

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/ids"
	"github.com/delayq/delayq/internal/limits"
	"github.com/delayq/delayq/internal/valid"
	"github.com/delayq/delayq/internal/wire"
)

// madeFor is how long the id that is made of an Idempotency-Key stays taken, where the store can do
// that: so long may a client send a push again though the message is done.
const madeFor = 10 * time.Minute

func (c *request) push() (any, error) {
	m, err := read[wire.Message](c)
	if err != nil {
		return nil, err
	}
	item, made, err := c.prepare(&m, 0)
	if err != nil {
		return nil, err
	}
	one := &[1]backend.Message{item}
	if item.Replace { // a later try could undo a newer one
		err = cmp.Or(c.q.Schedule(c.ctx, one[:])...)
	} else {
		err = c.q.batch.Pushes.Do(c.ctx, one)
	}
	if made && errors.Is(err, backend.ErrDuplicate) {
		return wire.Pushed{ID: item.ID, Duplicate: true}, nil
	}
	return wire.Pushed{ID: one[0].ID}, err
}

func (c *request) pushBatch() (any, error) {
	asked, err := readMany[wire.Messages](c)
	if err == nil {
		err = c.many(len(asked.Messages))
	}
	if err != nil {
		return nil, err
	}
	batch, made := make([]backend.Message, len(asked.Messages)), make([]bool, len(asked.Messages))
	for i := range asked.Messages {
		if batch[i], made[i], err = c.prepare(&asked.Messages[i], i); err != nil {
			return nil, fmt.Errorf("message %d of the batch: %w", i, err)
		}
	}
	errs := c.q.Schedule(c.ctx, batch)
	for i, err := range errs {
		made[i] = made[i] && errors.Is(err, backend.ErrDuplicate)
		if made[i] {
			errs[i] = nil
		}
	}
	return results(len(batch), errs, func(i int, r *wire.Result) {
		r.ID, r.Duplicate = batch[i].ID, made[i] && errs != nil
	})
}

// prepare checks a message, and gives it an id where it has none. It reports whether it has made the
// id.
func (c *request) prepare(asked *wire.Message, index int) (m backend.Message, made bool, err error) {
	if m, err = asked.Read(); err != nil {
		return m, false, err
	}
	if err = cmp.Or(valid.Unique(&m, c.traits), valid.Replace(&m, c.traits)); err != nil {
		return m, false, err
	}
	if m.ID == "" && c.traits.Supports(backend.OwnIDs) {
		m.ID, made = c.newID(index), true
		if c.key != "" && c.traits.Supports(backend.UniqueWindows) {
			m.UniqueFor = madeFor
		}
	}
	own := ownHeaders(&m.Headers)
	if err = valid.Message(&m, c.traits); err != nil {
		return m, made, err
	}
	spread(&m)
	if m.Limits != nil {
		m.Headers, err = limits.Add(m.Headers, m.Limits)
		m.Limits = nil
	}
	putBack(&m.Headers, own)
	return m, made, err
}

// newID returns the id of a message that was pushed without one: of the Idempotency-Key where there
// is one, so that the store knows a push that is sent again. Another request under the same key is
// another message, also where the server does not know that the key was used.
func (c *request) newID(index int) string {
	if c.key == "" {
		return ids.New()
	}
	sum := sha256.Sum256([]byte(c.caller.name + "\x00" + c.key + "\x00" + strconv.Itoa(index) + "\x00" + string(c.body)))
	return "key-" + hex.EncodeToString(sum[:16])
}

// spread adds the random part of a due time.
func spread(m *backend.Message) {
	if m.Spread == 0 {
		return
	}
	part := time.Duration(rand.Int64N(int64(m.Spread) + 1))
	if m.Due.IsZero() {
		m.Delay += part
	} else {
		m.Due = m.Due.Add(part)
	}
	m.Spread = 0
}

// ownHeaders takes out the headers that the library itself sets, in a Go program whose queue is on
// this server. They are no header of a user.
func ownHeaders(headers *map[string]string) (own map[string]string) {
	for _, k := range []string{limits.Header, backend.FirstPushHeader} {
		v, ok := (*headers)[k]
		if !ok || len(v) > maxOwnHeader {
			continue
		}
		if own == nil {
			own = make(map[string]string, 2)
		}
		own[k] = v
		delete(*headers, k)
	}
	if len(*headers) == 0 {
		*headers = nil
	}
	return own
}

// maxOwnHeader is more than the library writes.
const maxOwnHeader = 1 << 10

func putBack(headers *map[string]string, own map[string]string) {
	for k, v := range own {
		if *headers == nil {
			*headers = make(map[string]string, len(own))
		}
		(*headers)[k] = v
	}
}
