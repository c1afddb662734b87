package dashboard

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/delayq/delayq"
)

type jobData struct {
	jobStatus
	Action     Action
	Change     string
	Filter     string
	Back       string
	Query      filter
	Denied     string
	Limit      string
	Ongoing    bool
	StatusPath string
}

// Verb begins the button that begins the job.
func (d jobData) Verb() string { return sentence(d.Change) }

func (v *visit) job() (*job, error) {
	j := v.jobs.get(v.name, v.r.PathValue("job"))
	if j == nil {
		return nil, &failure{http.StatusNotFound, "There is no such job: it has ended some time ago, or another process has it."}
	}
	return j, nil
}

// startJob counts the messages that a filter selects, to change them after a question.
func startJob(v *visit) error {
	c, err := readChange(v.r.PostForm)
	if err != nil {
		return invalid(err)
	}
	if err := v.may(c.action); err != nil {
		return err
	}
	f, err := readFilter(v.r.PostForm)
	if err != nil {
		return invalid(err)
	}
	list := listOf[c.action]
	if list == waiting && !v.queue.Supports(delayq.Peeking) {
		return &failure{http.StatusNotImplemented, "This store does not support " + delayq.Peeking.String() + "."}
	}
	name := v.name
	j, err := v.jobs.start(name, c, f, func(ctx context.Context, j *job) error {
		return v.withQueue(ctx, name, func(q delayq.Queue) error { return j.count(ctx, v.lister(q, name, list)) })
	})
	if err != nil {
		return &failure{http.StatusServiceUnavailable, sentence(err.Error()) + "."}
	}
	v.goTo(v.path("jobs", j.id), nil, "")
	return nil
}

// withQueue calls f with a queue that stays open meanwhile.
func (h *Handler) withQueue(ctx context.Context, name string, f func(delayq.Queue) error) error {
	q, release, err := h.handles.use(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	return f(q)
}

// moveJob begins the work of a job whose messages are counted, or stops it.
func moveJob(v *visit) error {
	j, err := v.job()
	if err != nil {
		return err
	}
	if err := v.may(j.change.action); err != nil {
		return err
	}
	switch v.r.PostForm.Get("do") {
	case "stop":
		j.stop()
	case "begin":
		if j.begin() {
			r, h, name := detached(v.r), v.Handler, v.name
			h.jobs.run(j, finished, func(ctx context.Context, j *job) error {
				return h.withQueue(ctx, name, func(q delayq.Queue) error {
					may := func() error { return h.allowed(r, j.change.action, q, name) }
					return j.work(ctx, q, may, func(ids []string, done int, err error) {
						h.report(Event{Request: r, Action: j.change.action, Queue: name, IDs: ids, Done: done, Err: err})
					})
				})
			})
		}
	default:
		return &failure{http.StatusBadRequest, "Invalid: do: begin or stop."}
	}
	v.goTo(v.path("jobs", j.id), nil, "")
	return nil
}

// jobPage shows how far a job is.
func jobPage(v *visit) error {
	j, err := v.job()
	if err != nil {
		return err
	}
	d := jobData{
		jobStatus: j.show(), Action: j.change.action, Change: j.change.String(), Filter: j.filter.String(), Query: j.filter,
		Back: listOf[j.change.action], Denied: v.denied(j.change.action), Limit: count(jobMost),
	}
	p := &page{Title: sentence(d.Change) + " messages of " + visible(v.name), Tab: d.Back, Data: d}
	if d.Ongoing = d.State == counting || d.State == working; d.Ongoing {
		p.Refresh = 2
	}
	d.StatusPath = root(v.r) + v.path("jobs", j.id, "status")
	p.Data = d
	return v.show("job", p)
}

// jobStatusOf is the page's figures, for its script.
func jobStatusOf(v *visit) error {
	j, err := v.job()
	if err != nil {
		return err
	}
	v.w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(v.w).Encode(j.show())
}
