package main

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"github.com/delayq/delayq/redisson"
)

// The documents. Times are RFC 3339, bytes are base64.
type (
	inspectionJSON struct {
		Queue       string        `json:"queue"`
		Keys        keysJSON      `json:"keys"`
		Counts      countsJSON    `json:"counts"`
		Subscribers int64         `json:"subscribers"`
		Formats     []formatJSON  `json:"formats"`
		Unreadable  int           `json:"unreadable"` // of the members that formats counts
		Pending     []pendingJSON `json:"pending"`
		More        bool          `json:"more"`
	}

	keysJSON struct {
		Destination string   `json:"destination"`
		Timeouts    string   `json:"timeouts"`
		Index       string   `json:"index"`
		Channel     string   `json:"channel"`
		Own         []string `json:"own"`
	}

	countsJSON struct {
		Destination int64 `json:"destination"`
		Timeouts    int64 `json:"timeouts"`
		Index       int64 `json:"index"`
		Leased      int64 `json:"leased"`
		Dead        int64 `json:"dead"`
		Quarantined int64 `json:"quarantined"`
	}

	formatJSON struct {
		Format    string `json:"format"`
		Members   int    `json:"members"`
		ReadBy    string `json:"read_by"` // releases of Redisson
		WrittenBy string `json:"written_by"`
	}

	pendingJSON struct {
		messageJSON
		Format string `json:"format,omitempty"`
		Member []byte `json:"member"`
	}
	quarantinedJSON struct {
		ID     string         `json:"id"`
		Place  redisson.Place `json:"place"`
		Due    time.Time      `json:"due"`
		Reason string         `json:"reason"`
		Length int            `json:"length"`
		Bytes  []byte         `json:"bytes"`
		Text   *string        `json:"text,omitempty"`
	}
)

// textOf returns nil for bytes that are not text.
func textOf(b []byte) *string {
	if !isText(b) {
		return nil
	}
	text := string(b)
	return &text
}

func (i *inspection) document(w io.Writer) error {
	r := &i.report
	doc := inspectionJSON{
		Queue: i.queue, Subscribers: r.Subscribers, Unreadable: r.Unreadable, More: i.more,
		Keys: keysJSON(r.Keys), Formats: []formatJSON{}, Pending: []pendingJSON{},
		Counts: countsJSON{
			Destination: r.Handed, Timeouts: r.Waiting, Index: r.Indexed, Leased: r.Leased, Dead: r.Dead, Quarantined: r.Quarantined,
		},
	}
	for _, f := range formats {
		if n := r.Formats[f]; n > 0 {
			doc.Formats = append(doc.Formats, formatJSON{f.String(), n, peers[f].readers, peers[f].writers})
		}
	}
	for _, p := range i.pending {
		doc.Pending = append(doc.Pending, pendingDocument(p))
	}
	text, err := plainJSON(doc)
	if err != nil {
		return err
	}
	var pretty bytes.Buffer
	_ = json.Indent(&pretty, text, "", "  ") // never fails on what the encoder wrote
	return write(w, pretty.String())
}

func pendingDocument(p redisson.Pending) pendingJSON {
	doc := pendingJSON{messageJSON: contentJSON(p.ID, p.Body, nil, p.Due), Format: formatOf(p), Member: p.Member}
	doc.Attempts = &p.Attempts
	if p.Err != nil {
		doc.Error, doc.Body, doc.BodyBase64 = p.Err.Error(), nil, nil
	}
	return doc
}

func quarantinedDocument(q redisson.Quarantined) quarantinedJSON {
	return quarantinedJSON{
		ID: q.ID, Place: q.Place, Due: *writable(q.Due), Reason: q.Reason, Length: len(q.Bytes), Bytes: q.Bytes, Text: textOf(q.Bytes),
	}
}
