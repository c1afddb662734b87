package httpclient

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/wire"
)

// Schedule is as in backend.Queue. It makes as many requests as the limits of the server ask for.
func (q *queue) Schedule(ctx context.Context, ms []backend.Message) []error {
	if err := q.open(ctx); err != nil {
		return backend.FailAll(len(ms), err)
	}
	outcomes := make([]error, len(ms))
	failed := false
	for from := 0; from < len(ms); {
		batch, err := q.batch(ms[from:])
		if err != nil {
			return backend.FailAll(len(ms), err)
		}
		to := from + len(batch)
		var reply wire.Results
		err = q.post(ctx, "messages/batch", struct {
			Messages []json.RawMessage `json:"messages"`
		}{batch}, &reply)
		failed = q.outcomes(outcomes[from:to], reply, err, func(i int, r *wire.Result) error {
			if !q.b.traits.Supports(backend.OwnIDs) {
				ms[from+i].ID = r.ID
			}
			return nil
		}) || failed
		from = to
	}
	if !failed {
		return nil
	}
	return outcomes
}

// requestFrame is more than a request has beside its messages.
const requestFrame = 1 << 10

// batch returns the first messages as JSON, as many as fit into a request, one at least.
func (q *queue) batch(ms []backend.Message) (batch []json.RawMessage, err error) {
	room := q.b.store.RequestBytes - requestFrame
	for _, m := range ms {
		text, err := encode(wire.MessageOf(m))
		if err != nil {
			return nil, err
		}
		text = bytes.TrimSpace(text)
		room -= int64(len(text)) + 1
		if len(batch) > 0 && (room < 0 || len(batch) == q.b.store.Batch) {
			break
		}
		batch = append(batch, text)
	}
	return batch, nil
}
