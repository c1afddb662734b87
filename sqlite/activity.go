package sqlite

import (
	"context"
	"encoding/json"

	"github.com/ncruces/go-sqlite3"

	"github.com/delayq/delayq/backend"
)

// addActivity adds to the queue's activity.
func (m *messages) addActivity(ctx context.Context, more backend.Activity) error {
	return m.writer.submit(ctx, func(t *tx) error {
		a, err := m.activity(t.conn)
		if err != nil {
			return err
		}
		counts := []int64{a.Pushed + more.Pushed, a.Acked + more.Acked}
		for i, n := range a.Lateness {
			counts = append(counts, n+more.Lateness[i])
		}
		text, err := json.Marshal(counts)
		if err == nil {
			_, err = t.exec("write_activity", m.queue, string(text))
		}
		return err
	})
}

// activity reads the queue's activity. What another program has written in its place counts as none.
func (m *messages) activity(c *conn) (a backend.Activity, err error) {
	text := "[]"
	err = c.rows("read_activity", func(s *sqlite3.Stmt) bool {
		text = s.ColumnText(0)
		return true
	}, m.queue)
	if err != nil {
		return a, err
	}
	var counts []int64
	if json.Unmarshal([]byte(text), &counts) != nil {
		return a, nil //nolint:nilerr // what cannot be read counts as none
	}
	for i, n := range counts {
		switch n = max(n, 0); {
		case i == 0:
			a.Pushed = n
		case i == 1:
			a.Acked = n
		case i < 2+len(a.Lateness):
			a.Lateness[i-2] = n
		}
	}
	return a, nil
}
