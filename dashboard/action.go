package dashboard

import (
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
	Request *http.Request // of the user; its body is read
	Action  Action
	Queue   string
	IDs     []string // of the messages, as they were asked for; nil where the action has none

	// Done is for how many messages the action is known to have succeeded; of a purge, how many it
	// deleted.
	Done int

	// Err is nil when the action succeeded for all messages. It is the error of [Authorize] when
	// that rejected the action.
	Err error
}

// denied says why the action is not offered on a queue, "" when it is.
func (h *Handler) denied(r *http.Request, a Action, q delayq.Queue, name string) string {
	if f := changes[a]; f != 0 && !q.Supports(f) {
		return "this store does not support " + f.String()
	}
	if h.readOnly != "" {
		return h.readOnly
	}
	if err := h.authorize(r, a, name); err != nil {
		return "you may not do this: " + visible(err.Error())
	}
	return ""
}
