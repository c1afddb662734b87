package dashboard

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/delayq/delayq"
)

const idsAtOnce = 500

// actOnSome changes one message, or those that are ticked in a list.
func actOnSome(v *visit) error {
	c, err := readChange(v.r.PostForm)
	if err != nil {
		return invalid(err)
	}
	if err := v.may(c.action); err != nil {
		return err
	}
	var ids []string
	for _, s := range v.r.PostForm["id"] {
		id, ok := fromSegment(s)
		if !ok {
			return &failure{http.StatusBadRequest, "Invalid: id."}
		}
		ids = append(ids, id)
	}
	if len(ids) == 0 || len(ids) > idsAtOnce {
		return &failure{http.StatusBadRequest, fmt.Sprintf("Nothing was done: tick 1 to %d messages.", idsAtOnce)}
	}
	r, err := c.apply(v.ctx, v.queue, ids)
	v.tell(c.action, ids, r.Done, err)
	text := sentence(c.String()) + ": " + r.String() + "."
	if v.r.PostForm.Get("back") == "message" && r.Done == 1 && (c.action == Reschedule || c.action == Redrive) {
		v.goTo(v.path("messages", segment(ids[0])), nil, text)
		return nil
	}
	f, _ := readFilter(v.r.PostForm)
	v.goTo(v.path(listOf[c.action]), f.Values(), text)
	return nil
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// pause holds the queue's messages back from all workers.
func pause(v *visit) error {
	if err := v.may(Pause); err != nil {
		return err
	}
	var opts []delayq.PauseOption
	if text := strings.TrimSpace(v.r.PostForm.Get("for")); text != "" {
		d, err := parseSpan(text)
		if err != nil {
			return invalid(err)
		}
		opts = append(opts, delayq.PauseFor(d))
	}
	err := v.queue.PauseAll(v.ctx, opts...)
	v.tell(Pause, nil, 0, err)
	if err != nil {
		return err
	}
	v.goTo(v.path(), nil, "Paused: no worker of any process gets a message.")
	return nil
}

// resume ends a pause.
func resume(v *visit) error {
	if err := v.may(Resume); err != nil {
		return err
	}
	err := v.queue.ResumeAll(v.ctx)
	v.tell(Resume, nil, 0, err)
	if err != nil {
		return err
	}
	v.goTo(v.path(), nil, "Resumed.")
	return nil
}

type purgeData struct {
	Figures figures
	Denied  string
	Typed   string
}

// purgePage asks for the queue's name before everything is deleted.
func purgePage(v *visit) error {
	d := purgeData{Denied: v.denied(Purge), Typed: visible(v.name)}
	d.Figures = v.snapshot(v.ctx, []string{v.name})[v.name]
	return v.show("purge", &page{Title: "Purge " + visible(v.name), Tab: "purge", Live: []string{v.name}, Data: d})
}

// purge deletes all data of the queue.
func purge(v *visit) error {
	if err := v.may(Purge); err != nil {
		return err
	}
	if typed := v.r.PostForm.Get("name"); typed != v.name && typed != visible(v.name) {
		return &failure{http.StatusBadRequest, "Nothing was deleted: type the name of the queue."}
	}
	n, err := v.queue.Purge(v.ctx)
	v.tell(Purge, nil, int(n), err)
	if err != nil {
		return err
	}
	v.goTo(v.path(), nil, "Purged: "+count(n)+" messages deleted.")
	return nil
}
