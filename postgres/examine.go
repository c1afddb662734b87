package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/delayq/delayq/backend/admin"
)

var _ admin.Examiner = (*Backend)(nil)

// health is what Examine reads. Ages are seconds.
type health struct {
	version        string
	clock          float64
	commit         string
	isolation      string
	vacuum         bool
	snapshot       *float64 // the oldest one that is held
	holder         *string
	slots          int64 // that hold rows back
	dead, live     *int64
	notifications  float64
	connections    int64
	maxConnections int64
}

const healthQuery = `SELECT current_setting('server_version'), extract(epoch FROM clock_timestamp())::float8, current_setting('synchronous_commit'),
	current_setting('default_transaction_isolation'),
	current_setting('autovacuum') = 'on',
	(SELECT extract(epoch FROM max(clock_timestamp() - xact_start))::float8 FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()),
	(SELECT application_name || ' (process ' || pid || ')' FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() ORDER BY xact_start LIMIT 1),
	(SELECT count(*) FROM pg_replication_slots WHERE NOT active AND (xmin IS NOT NULL OR catalog_xmin IS NOT NULL)),
	(SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = $1::text::regclass),
	(SELECT n_live_tup FROM pg_stat_user_tables WHERE relid = $1::text::regclass),
	pg_notification_queue_usage(), (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), current_setting('max_connections')::bigint`

// Examine is as in admin.Examiner: the version, durability, and what keeps vacuum from its work.
func (b *Backend) Examine(ctx context.Context) (admin.Examination, error) {
	if err := b.check(ctx); err != nil {
		return admin.Examination{}, err
	}
	began := time.Now()
	h, err := call(ctx, b, healthQuery, []any{b.cfg.name("messages")}, func(h *health, s scan) error {
		return s(&h.version, &h.clock, &h.commit, &h.isolation, &h.vacuum, &h.snapshot, &h.holder, &h.slots, &h.dead, &h.live,
			&h.notifications, &h.connections, &h.maxConnections)
	})
	if err != nil {
		return admin.Examination{}, err
	}
	trip := time.Since(began)
	clock := admin.ClockDifference{
		Server: "postgres",
		Ahead:  time.UnixMicro(int64(h.clock * 1e6)).Sub(began.Add(trip / 2)).Round(time.Millisecond), Within: (trip / 2).Round(time.Millisecond),
	}
	return admin.Examination{
		Findings: []admin.Finding{
			{About: "version", Text: "PostgreSQL " + h.version},
			h.durability(), h.isolationLevel(), h.autovacuum(), h.horizon(), h.inactiveSlots(), h.deadRows(), h.notify(), h.room(),
		},
		Clocks: []admin.ClockDifference{clock},
	}, nil
}

func (h *health) durability() admin.Finding {
	f := admin.Finding{About: "durability", Text: "synchronous_commit is " + h.commit}
	if h.commit == "off" {
		f.Severity, f.Remedy = admin.Warning, "set it to on: a crash of the server loses the last pushes that it confirmed"
	}
	return f
}

func (h *health) isolationLevel() admin.Finding {
	f := admin.Finding{About: "isolation", Text: "default_transaction_isolation is " + h.isolation}
	if h.isolation != "read committed" {
		f.Severity, f.Remedy = admin.Warning, "set it to 'read committed' for delayq's user: a claim that waits for PauseAll may hand out messages after it"
	}
	return f
}

func (h *health) autovacuum() admin.Finding {
	f := admin.Finding{About: "autovacuum", Text: "it is on"}
	if !h.vacuum {
		f.Severity, f.Text, f.Remedy = admin.Problem, "it is off", "set autovacuum = on: deleted messages are never removed, and the tables grow"
	}
	return f
}

const (
	longSnapshot = 10 * time.Minute
	noteSnapshot = time.Minute
)

func (h *health) horizon() admin.Finding {
	f := admin.Finding{About: "snapshots", Text: "no old one is held"}
	if h.snapshot == nil || h.holder == nil {
		return f
	}
	age := time.Duration(*h.snapshot * float64(time.Second)).Round(time.Second)
	switch {
	case age >= longSnapshot:
		f.Severity = admin.Warning
	case age >= noteSnapshot:
		f.Severity = admin.Note
	default:
		return f
	}
	f.Text = fmt.Sprintf("%s holds one for %v: vacuum removes no rows that were deleted since", *h.holder, age)
	f.Remedy = "end long transactions and queries, or run them on a replica without hot_standby_feedback"
	return f
}

func (h *health) inactiveSlots() admin.Finding {
	f := admin.Finding{About: "slots", Text: "no unused replication slot holds rows back"}
	if h.slots > 0 {
		f.Severity = admin.Warning
		f.Text = fmt.Sprintf("%d replication slots hold rows back, and nobody reads them", h.slots)
		f.Remedy = "drop them: SELECT pg_drop_replication_slot(slot_name)"
	}
	return f
}

const manyDead = 1_000_000

func (h *health) deadRows() admin.Finding {
	f := admin.Finding{About: "dead rows", Text: "unknown"}
	if h.dead == nil || h.live == nil {
		return f
	}
	f.Text = fmt.Sprintf("%d beside %d live ones", *h.dead, *h.live)
	if *h.dead > manyDead && *h.dead > *h.live {
		f.Severity, f.Remedy = admin.Warning, "look what keeps vacuum: snapshots, slots, or too few autovacuum workers; then VACUUM the table"
	}
	return f
}

func (h *health) notify() admin.Finding {
	f := admin.Finding{About: "notify queue", Text: fmt.Sprintf("%.0f %% full", 100*h.notifications)}
	if h.notifications > 0.5 {
		f.Severity, f.Remedy = admin.Warning, "a session that listens has a transaction open for long: end it, or pushes fail when the queue is full"
	}
	return f
}

func (h *health) room() admin.Finding {
	f := admin.Finding{About: "connections", Text: fmt.Sprintf("%d of %d", h.connections, h.maxConnections)}
	if h.connections*10 > h.maxConnections*9 {
		f.Severity, f.Remedy = admin.Warning, "raise max_connections, or lower pool_max_conns"
	}
	return f
}
