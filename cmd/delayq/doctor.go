package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/cmd/delayq/internal/human"
)

type doctorCommand struct {
	namedQueue
	JSON bool `name:"json" help:"Write JSON, one line for each finding."`
}

// Help is the text between the summary and the flags.
func (doctorCommand) Help() string {
	return `Connects, reads the server's settings, and sends a message through it. Each finding is "ok", a "note", a "warning" (messages may get lost, be rejected or come late) or a "problem" (nothing works), and names the remedy.

On Redis it checks the version, whether the server takes writes, Cluster or not, eviction, persistence, and how far the clock differs from this machine's. For keyspace:// it also checks the notifications of expiries, and for redisson:// whether all readers of the queue can read pushed messages. On RabbitMQ it checks the version, the user's rights, the types of queues, alarms and unroutable messages. If it can reach the management API, it also checks for policies that remove messages.

The message goes through a queue of a random name, which is deleted afterwards. The queue that the URL names is never opened, only read. doctor leaves on the server what the first worker would create: on RabbitMQ the exchanges and queues that all queues of the namespace share, and with keyspace:// the setting of notifications.

The exit code is 0 when nothing is worse than a note.`
}

// Run examines the store.
func (c *doctorCommand) Run(ctx context.Context, std streams) (err error) {
	d := &diagnosis{scratch: newScratch(c.URL, "doctor", c.logger(std, slog.LevelError))}
	b, err := d.open(ctx)
	if err != nil {
		return c.unreachable(std, fromStore(err))
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := d.examine(ctx, b.Backend, b.named); err != nil {
		return c.unreachable(std, fromStore(err))
	}
	d.add(d.probe(ctx, b))
	d.clearUp(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.Join(c.show(std, d.findings), d.verdict())
}

// unreachable is the finding for a store that cannot be reached. A bad URL is an error instead.
func (c *doctorCommand) unreachable(std streams, err error) error {
	if !storeFailed(err) {
		return err
	}
	f := admin.Finding{
		Severity: admin.Problem, About: "connection", Text: withoutSecrets(plain(err), []string{c.URL}),
		Remedy: "see that the server runs, that host, port, user and password in the URL are right, and that nothing between here and there forbids it",
	}
	return errors.Join(c.show(std, []admin.Finding{f}), err)
}

// A diagnosis is a list of findings.
type diagnosis struct {
	*scratch
	findings []admin.Finding
}

func (d *diagnosis) add(fs ...admin.Finding) { d.findings = append(d.findings, fs...) }

// examineWithin bounds the wait for a server that hangs.
const examineWithin = 30 * time.Second

func (d *diagnosis) examine(ctx context.Context, b backend.Backend, queue string) error {
	ctx, cancel := context.WithTimeout(ctx, examineWithin)
	defer cancel()
	e, ok := b.(admin.Examiner)
	if !ok {
		d.add(admin.Finding{
			Severity: admin.Note, About: "set-up", Text: "the backend " + b.Traits().Name + " cannot tell how its store is set up",
		})
		return nil
	}
	x, err := e.Examine(ctx)
	d.add(x.Findings...)
	if q, ok := b.(admin.QueueExaminer); ok && err == nil {
		var found []admin.Finding
		found, err = q.ExamineQueue(ctx, queue)
		d.add(found...)
	}
	return err
}

// clearUp removes the queue that the message went through.
func (d *diagnosis) clearUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearWithin)
	defer cancel()
	left, err := d.clear(ctx)
	if err != nil {
		left = append(left, err.Error())
	}
	if len(left) > 0 {
		d.add(admin.Finding{
			Severity: admin.Warning, About: "clearing up", Text: "left in the store: " + strings.Join(left, ", "),
			Remedy: "delete the keys with " + strings.TrimSuffix(d.prefix, ".") + " in its name",
		})
	}
}

// verdict sums up for the exit code.
func (d *diagnosis) verdict() error {
	n := make(map[admin.Severity]int)
	for _, f := range d.findings {
		n[f.Severity]++
	}
	if n[admin.Warning]+n[admin.Problem] == 0 {
		return nil
	}
	return unhealthy{n[admin.Problem], n[admin.Warning]}
}

// unhealthy counts findings that are worse than a note.
type unhealthy struct{ problems, warnings int }

func (a unhealthy) Error() string {
	return human.Count(a.problems, "problem") + ", " + human.Count(a.warnings, "warning")
}

func (unhealthy) Is(target error) bool { return target == errBroken }

// findingJSON is a finding.
type findingJSON struct {
	Level   string `json:"level"`
	About   string `json:"about"`
	Servers string `json:"servers,omitempty"`
	Text    string `json:"text"`
	Remedy  string `json:"remedy,omitempty"`
}

func (c *doctorCommand) show(std streams, fs []admin.Finding) error {
	if c.JSON {
		return writeLines(std.out, fs, func(f admin.Finding) findingJSON {
			return findingJSON{f.Severity.String(), f.About, f.Servers, f.Text, f.Remedy}
		})
	}
	return write(std.out, findingsText(fs))
}

func findingsText(fs []admin.Finding) string {
	var w strings.Builder
	for _, f := range fs {
		text := f.Text
		if f.Servers != "" {
			text += " (" + f.Servers + ")"
		}
		lines := folded(printable(text), page-findingIndent)
		if f.Remedy != "" {
			lines = append(lines, folded("→ "+printable(f.Remedy), page-findingIndent)...)
		}
		fmt.Fprintf(&w, "%-8s  %-14s  %s\n", f.Severity, f.About, lines[0])
		for _, line := range lines[1:] {
			fmt.Fprintf(&w, "%*s%s\n", findingIndent, "", line)
		}
	}
	return w.String()
}

// findingIndent is where the text of findings begins.
const findingIndent = 26
