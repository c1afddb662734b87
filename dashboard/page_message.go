package dashboard

import (
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"

	"github.com/delayq/delayq"
)

type messageData struct {
	delayq.MessageInfo
	Segment string
	List    string // that has it, "" for none
	Headers []header
	Body    bodyView
	Can     map[string]string
}

// Size is the number of bytes of the body.
func (d messageData) Size() int64 { return int64(d.Body.Bytes) }

// ReasonText is the reason of the death, with its lines.
func (d messageData) ReasonText() string {
	text, _ := cutText([]byte(d.Reason))
	return text
}

// ErrText says why the body cannot be read.
func (d messageData) ErrText() string { return short(d.Err.Error(), 500) }

type header struct{ Key, Value string }

// message reads the message that the path names.
func (v *visit) message() (delayq.MessageInfo, error) {
	id, ok := fromSegment(v.r.PathValue("id"))
	if !ok {
		return delayq.MessageInfo{}, delayq.ErrNotFound
	}
	m, err := v.queue.Get(v.ctx, id)
	if err == nil {
		v.redacted(v.name, &m)
	}
	return m, err
}

// messagePage shows one message.
func messagePage(v *visit) error {
	m, err := v.message()
	if err != nil {
		return err
	}
	d := messageData{MessageInfo: m, Segment: segment(m.ID), Body: viewBody(m.Body, v.r.URL.Query().Get("as")), Can: v.can()}
	for _, key := range slices.Sorted(maps.Keys(m.Headers)) {
		d.Headers = append(d.Headers, header{visible(key), short(m.Headers[key], 4096)})
	}
	switch m.State {
	case delayq.StateScheduled, delayq.StateReady:
		d.List = waiting
	case delayq.StateDead:
		d.List = dead
	default:
	}
	return v.show("message", &page{Title: "Message " + short(m.ID, 60), Tab: d.List, Data: d})
}

// downloadBody sends a message's body as a file.
func downloadBody(v *visit) error {
	m, err := v.message()
	if err != nil {
		return err
	}
	head := v.w.Header()
	head.Set("Content-Type", "application/octet-stream")
	head.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": "message.bin"}))
	head.Set("Content-Length", strconv.Itoa(len(m.Body)))
	_, _ = v.w.Write(m.Body)
	return nil
}

// findMessage goes to the message of an id that the user has typed.
func findMessage(v *visit) error {
	id := v.r.URL.Query().Get("id")
	if id == "" {
		return &failure{http.StatusBadRequest, "Invalid: an id is needed."}
	}
	redirect(v.w, root(v.r)+v.path("messages", segment(id)))
	return nil
}
