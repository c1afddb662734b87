package rabbitmq

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/delayq/delayq/backend/admin"
)

const policiesAbout = "policies"

// policies judges the effects of policies on the namespace's queues. AMQP has no way to read them.
func (e examiner) policies(ctx context.Context) []admin.Finding {
	all, err := e.b.queueInfos(ctx)
	if err != nil {
		return []admin.Finding{{
			Severity: admin.Note, About: policiesAbout, Text: fmt.Sprintf("AMQP has no way to read policies, and the management API does not reply: %v", err),
			Remedy: "look for yourself: rabbitmqctl list_queues name effective_policy_definition; docs/rabbitmq.md says what each does",
		}}
	}
	found, old := e.b.names.policyEffects(all)
	var fs []admin.Finding
	for id, queues := range found {
		f := policyFindings[id]
		f.About = policiesAbout
		f.Text = id + " on " + listed(queues) + ": " + f.Text
		fs = append(fs, f)
	}
	slices.SortFunc(fs, func(a, b admin.Finding) int {
		return cmp.Or(cmp.Compare(b.Severity, a.Severity), cmp.Compare(a.Text, b.Text))
	})
	if len(fs) == 0 {
		fs = append(fs, admin.Finding{About: policiesAbout, Text: "no policy takes messages away"})
	}
	if len(old) > 0 {
		fs = append(fs, admin.Finding{
			Severity: admin.Note, About: policiesAbout, Text: "declared by an earlier version: " + listed(old) + "; messages that a policy takes out of these are lost instead of kept in undeliverable",
			Remedy: "once such a queue is empty and nothing is on its way to it, delete it: the next Open declares it anew",
		})
	}
	return fs
}

// policyEffects returns the queues with each key of policyFindings, and the queues that lack
// dead-lettering to undeliverable.
func (n names) policyEffects(all []queueInfo) (found map[string][]string, old []string) {
	found = make(map[string][]string)
	for _, q := range all {
		own, ok := strings.CutPrefix(q.Name, n.prefix+".")
		if !ok {
			continue
		}
		kind, _, _ := strings.Cut(own, ".")
		policy := q.policy()
		for key := range policy {
			if id := findingFor(kind, key, policy); id != "" {
				found[id] = append(found[id], q.Name)
			}
		}
		if kind == "q" && q.full() {
			found[fullNow] = append(found[fullNow], q.Name)
		}
		if _, deadLetters := object(q.Arguments)["x-dead-letter-exchange"]; !deadLetters && (kind == "q" || kind == "dead") {
			old = append(old, q.Name)
		}
	}
	return found, old
}

// listed names a few queues.
func listed(queues []string) string {
	slices.Sort(queues)
	const few = 3
	if len(queues) <= few {
		return strings.Join(queues, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(queues[:few], ", "), len(queues)-few)
}

// findingFor returns the key of policyFindings for a key of a policy and a kind of queue. It
// returns "" for a harmless policy.
func findingFor(kind, key string, p policy) string {
	id := key
	if key == "overflow" {
		if !p.refuses() {
			return ""
		}
		id = "overflow reject-publish"
	}
	if kind != "q" && kind != "dead" && kind != "undeliverable" {
		id = "level " + id
	}
	if kind == "undeliverable" && key != "overflow" {
		id = "undeliverable " + id
	}
	if _, ok := policyFindings[id]; !ok {
		return ""
	}
	return id
}

const (
	leaveQueues = "have the policy leave these queues out"
	leaveQueue  = "have the policy leave this queue out"
	watchQueue  = "watch undeliverable, or " + leaveQueues

	takenOut  = "it takes messages out of the queue, which end in undeliverable"
	takenLost = "it takes messages out of undeliverable, and they are lost"

	fullNow = "overflow reject-publish, full now"
)

// policyFindings are the effects of policies.
var policyFindings = map[string]admin.Finding{
	"overflow reject-publish": {Severity: admin.Problem, Text: "once the queue is full, delayed messages of all queues stand still behind it, up to minutes beyond that",
		Remedy: "leave overflow out: then the surplus goes to undeliverable, and other queues go on"},
	fullNow: {Severity: admin.Problem, Text: "it has as many messages as its policy allows and refuses more, and may hold up the messages of all queues",
		Remedy: "drain the queue, or take overflow out of the policy: what levels hold for it comes up to minutes later"},
	"expires":                        {Severity: admin.Problem, Text: "the broker deletes a queue without workers, with all messages in it", Remedy: leaveQueues},
	"max-length":                     {Severity: admin.Warning, Text: takenOut, Remedy: watchQueue},
	"max-length-bytes":               {Severity: admin.Warning, Text: takenOut, Remedy: watchQueue},
	"message-ttl":                    {Severity: admin.Warning, Text: takenOut, Remedy: watchQueue},
	"delivery-limit":                 {Severity: admin.Warning, Text: takenOut, Remedy: leaveQueues + ", and use MaxAttempts"},
	"dead-letter-exchange":           {Severity: admin.Note, Text: "messages that other policies take out of the queue may go there instead of to undeliverable", Remedy: leaveQueues},
	"level expires":                  {Severity: admin.Problem, Text: "the broker deletes queues in which messages wait", Remedy: leaveQueues},
	"level dead-letter-routing-key":  {Severity: admin.Warning, Text: "messages lose their way at each level: they are brought back from undeliverable, seconds late", Remedy: leaveQueues},
	"level dead-letter-exchange":     {Severity: admin.Note, Text: "the queues' own argument should count instead", Remedy: leaveQueues},
	"level dead-letter-strategy":     {Severity: admin.Warning, Text: "levels that do not pass on at least once lose messages when the broker crashes", Remedy: leaveQueues},
	"level overflow reject-publish":  {Severity: admin.Fine, Text: "the queues have it anyway"},
	"level max-length":               {Severity: admin.Warning, Text: "pushes fail while that many messages wait for one digit of their delays", Remedy: leaveQueues},
	"level max-length-bytes":         {Severity: admin.Warning, Text: "pushes fail while that much waits for one digit of their delays", Remedy: leaveQueues},
	"level message-ttl":              {Severity: admin.Note, Text: "messages come early to a worker, which sends them round again", Remedy: leaveQueues},
	"undeliverable max-length":       {Severity: admin.Warning, Text: takenLost, Remedy: leaveQueue},
	"undeliverable max-length-bytes": {Severity: admin.Warning, Text: takenLost, Remedy: leaveQueue},
	"undeliverable message-ttl":      {Severity: admin.Warning, Text: takenLost, Remedy: leaveQueue},
	"undeliverable expires":          {Severity: admin.Warning, Text: takenLost, Remedy: leaveQueue},
}
