package dashboard

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/delayq/delayq"
)

// Action is what a request does, for [Authorize] and [Audit].
type Action string

// The actions.
const (
	View       Action = "view" // also the messages' contents
	Push       Action = "push"
	Cancel     Action = "cancel"
	Reschedule Action = "reschedule" // also to now
	Redrive    Action = "redrive"
	Delete     Action = "delete" // dead letters
	Pause      Action = "pause"
	Resume     Action = "resume"
	Purge      Action = "purge"
)

// changes are the actions that change a queue, with the features that they need. Every store can
// push.
var changes = map[Action]delayq.Feature{
	Push: 0, Cancel: delayq.Cancelling, Reschedule: delayq.Rescheduling, Redrive: delayq.Redriving, Delete: delayq.Redriving,
	Pause: delayq.Pausing, Resume: delayq.Pausing, Purge: delayq.Purging,
}

// Event is one change that a user made or tried to make.
type Event struct {
	Request *http.Request // of the user; its body may be read already
	Action  Action        // [View] for a form about a queue that the user may not see
	Queue   string
	IDs     []string // of the messages, as they were asked for; nil where the action has none

	// Done is for how many messages the action is known to have succeeded; of a purge, how many it
	// deleted.
	Done int

	// Err is nil when the action succeeded for all messages. It wraps the error of [Authorize] when
	// that rejected the action.
	Err error
}

// allowed returns why the action is not offered on a queue, nil when it is.
func (h *Handler) allowed(r *http.Request, a Action, q delayq.Queue, name string) error {
	if f := changes[a]; f != 0 && !q.Supports(f) {
		return errors.New("this store does not support " + f.String())
	}
	if h.readOnly != "" {
		return errors.New(h.readOnly)
	}
	if err := h.authorize(r, a, name); err != nil {
		return fmt.Errorf("you may not do this: %w", err)
	}
	return nil
}

// denied is the text of allowed, "" for nil.
func (v *visit) denied(a Action) string {
	if err := v.allowed(v.r, a, v.queue, v.name); err != nil {
		return visible(err.Error())
	}
	return ""
}
