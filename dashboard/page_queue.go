package dashboard

import (
	"strings"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

type queueData struct {
	Figures figures
	Charts  []chartData
	Bars    []string // labels of the histogram
	Can     map[string]string
	Lacks   []string // what the store cannot do, with the reason
	Counts  bool     // the store counts its messages
	Known   bool     // and all of them
	Jobs    []jobLink
}

// jobLink is one line of the jobs of a queue.
type jobLink struct {
	ID, Text string
	jobStatus
}

type chartData struct{ Name, Label, Help string }

var charts = []chartData{
	{"scheduled", "Scheduled", "not due yet"},
	{"ready", "Ready", "waits for a worker"},
	{"inflight", "In flight", "a worker has it"},
	{"dead", "Dead letters", "no longer tried"},
	{"oldest", "Oldest ready", "how late the first one is by now"},
	{"in", "In a second", "pushed"},
	{"out", "Out a second", "done: acked by a worker"},
}

// queuePage shows one queue.
func queuePage(v *visit) error {
	d := queueData{
		Charts: charts, Bars: backend.DueLabels(), Can: v.can(), Counts: v.queue.Supports(delayq.Counting),
		Known: v.queue.Supports(delayq.CountingScheduled), Lacks: v.lacks(),
	}
	for _, j := range v.jobs.of(v.name) {
		d.Jobs = append(d.Jobs, jobLink{j.id, j.String(), j.show()})
	}
	d.Figures = v.snapshot(v.ctx, []string{v.name})[v.name]
	return v.show("queue", &page{Title: visible(v.name), Tab: "queue", Live: []string{v.name}, Data: d})
}

// can has for each action why it is not offered, "" where it is.
func (v *visit) can() map[string]string {
	can := make(map[string]string, len(changes))
	for a := range changes {
		can[string(a)] = v.denied(a)
	}
	return can
}

// lacks lists what users may miss on a page and why.
func (v *visit) lacks() []string {
	var all []string
	for _, f := range []struct {
		feature delayq.Feature
		what    string
	}{
		{delayq.Counting, "count messages"}, {delayq.CountingScheduled, "count messages that are scheduled"},
		{delayq.Peeking, "list messages that wait"}, {delayq.Getting, "show a message by its id"}, {delayq.Cancelling, "cancel"},
		{delayq.Rescheduling, "reschedule"}, {delayq.Redriving, "list, redrive or delete dead letters"},
		{delayq.Pausing, "pause all workers"}, {delayq.Purging, "purge"},
		{delayq.CountingActivity, "count pushes, acks and how late messages come"},
	} {
		if !v.queue.Supports(f.feature) {
			all = append(all, f.what)
		}
	}
	return all
}

func (d queueData) LacksText() string { return strings.Join(d.Lacks, "; ") }
