package check

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend/admin"
)

// A topic is a rule, its subject, and the text where the rule finds nothing.
type topic struct {
	about string
	rule  func(Facts) (Finding, bool)
	worst admin.Severity // of the rule's warnings
	well  func(Facts) string
}

var topics = []topic{
	{"version", tooOld, admin.Problem, func(f Facts) string { return "Redis " + f.Version }},
	{"replication", onReplica, admin.Problem, func(Facts) string { return "it takes writes" }},
	{"cluster", clusterWithoutClient, admin.Problem, ofCluster},
	{"eviction", evicting, admin.Warning, eviction},
	{"persistence", withoutPersistence, admin.Warning, func(Facts) string { return "an append-only file keeps what is written" }},
}

func ofCluster(f Facts) string {
	if f.Clustered == Yes {
		return "a Cluster, and the client is one of a Cluster"
	}
	return "no Cluster"
}

func eviction(f Facts) string {
	if f.MaxMemory == 0 {
		return "nothing is evicted: there is no memory limit, and maxmemory-policy is " + f.Policy
	}
	return "nothing is evicted: maxmemory-policy is " + f.Policy
}

// Examine applies the rules to each server that a client writes to, as admin.Examiner does.
func Examine(ctx context.Context, client redis.UniversalClient) (admin.Examination, error) {
	if err := client.Ping(ctx).Err(); err != nil {
		return admin.Examination{}, fmt.Errorf("asking the server for its state: %w", err)
	}
	facts, err := Inspect(ctx, client)
	x := admin.Examination{Findings: judged(facts)}
	if err != nil {
		x.Findings = append(x.Findings, notExamined(err))
	}
	x.Clocks, err = readClocks(ctx, client)
	for _, d := range x.Clocks {
		x.Findings = append(x.Findings, d.Finding())
	}
	if err != nil {
		x.Findings = append(x.Findings, notExamined(err))
	}
	return x, ctx.Err()
}

// notExamined is the finding about a server that rejects a command, or one of several that does not
// reply.
func notExamined(err error) admin.Finding {
	var reply redis.Error
	if errors.As(err, &reply) {
		return admin.Finding{Severity: admin.Note, About: "permissions", Text: err.Error(), Remedy: permit}
	}
	return admin.Finding{Severity: admin.Problem, About: "connection", Text: err.Error(), Remedy: "see that this server runs and can be reached"}
}

// judged returns the findings of all topics, each with the servers that it is about.
func judged(facts []Facts) (all []admin.Finding) {
	for _, t := range topics {
		servers := make(map[admin.Finding][]string)
		var order []admin.Finding
		for _, f := range facts {
			found := t.judge(f)
			if servers[found] == nil {
				order = append(order, found)
			}
			servers[found] = append(servers[found], f.Server)
		}
		for _, found := range order {
			slices.Sort(servers[found])
			shown := found
			shown.Servers = strings.Join(servers[found], ", ")
			all = append(all, shown)
		}
	}
	return all
}

func (t topic) judge(f Facts) admin.Finding {
	found, bad := t.rule(f)
	if !bad {
		return admin.Finding{About: t.about, Text: t.well(f)}
	}
	s := admin.Note
	if found.Level >= slog.LevelWarn {
		s = t.worst
	}
	return admin.Finding{Severity: s, About: t.about, Text: found.Problem, Remedy: found.Remedy}
}
