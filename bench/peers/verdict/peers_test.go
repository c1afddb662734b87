package verdict

import (
	"maps"
	"time"

	"github.com/delayq/delayq/conformance"
)

const (
	asynqModule     = "github.com/hibiken/asynq"
	beanstalkModule = "github.com/beanstalkd/go-beanstalk"
	natsModule      = "github.com/nats-io/nats.go"
	riverModule     = "github.com/riverqueue/river"
	goqiteModule    = "maragu.dev/goqite"
	gueModule       = "github.com/vgarvardt/gue/v5"
	backliteModule  = "github.com/mikestefanello/backlite"
)

// peers are the columns of the page.
var peers = []peer{
	{name: "memory", ours: true, open: openMemory, versions: "this tree", made: "none: it is a backend", claims: "all but surviving the process"},
	{name: "zsetpoll", ours: true, open: openZsetpoll, made: "none: it is a backend", claims: "milliseconds"},
	{name: "keyspace", ours: true, open: openKeyspace, made: "none: it is a backend", claims: "milliseconds; a sweep of 200 ms as set here"},
	{name: "redisson", ours: true, open: openRedisson, made: "none: it is a backend, with envelopes", claims: "milliseconds; a sweep of 200 ms as set here"},
	{name: "rabbitmq", ours: true, slow: true, open: openRabbitMQ, made: "none: it is a backend", claims: "no order, ids do not deduplicate, attempts count broken connections", atOnce: 4},
	{
		name: "asynq", open: openAsynq(0, false), modules: []string{asynqModule}, notes: asynqNotes, unjudged: dueUnjudged,
		sameProcess: "lease-end-wakes", made: asynqMade, claims: asynqClaims + "; looks every 5 s, and every 1 s at an empty queue: its defaults",
		ticks: map[string]time.Duration{"never-early-under-load": 5 * time.Second}, // longer than it looks away
		times: map[string]int{"never-early-under-load": 6},
	},
	{
		name: "asynq, 100 ms", open: openAsynq(100*time.Millisecond, false), modules: []string{asynqModule}, notes: asynqNotes,
		unjudged: dueUnjudged, sameProcess: "lease-end-wakes", made: "the same", claims: "the same; both intervals set to 100 ms",
	},
	{
		name: "asynq, 100 ms, rounded up", open: openAsynq(100*time.Millisecond, true), modules: []string{asynqModule}, notes: asynqNotes,
		unjudged: dueUnjudged, sameProcess: "lease-end-wakes", made: "the same, and due times and delays are rounded up before asynq gets them", claims: "the same",
	},
	{
		name: "beanstalkd", open: openBeanstalkd(false), needs: lacksBeanstalkd, modules: []string{beanstalkModule}, notes: beanstalkdNotes,
		times: beanstalkdTimes, made: beanstalkdMade, claims: beanstalkdClaims,
	},
	{
		name: "beanstalkd, rounded up", open: openBeanstalkd(true), needs: lacksBeanstalkd, modules: []string{beanstalkModule},
		notes: beanstalkdNotes, times: beanstalkdTimes, made: "the same, and delays are rounded up before the client gets them", claims: "the same",
	},
	{
		name: "NATS", open: openNATS(false), modules: []string{natsModule, "github.com/nats-io/nats-server/v2"}, notes: natsNotes, unjudged: natsUnjudged,
		made: natsMade + "`WithScheduleAt`", claims: natsClaims + "; whole seconds, as the option cuts them",
	},
	{
		name: "NATS, header", open: openNATS(true), modules: []string{natsModule, "github.com/nats-io/nats-server/v2"}, notes: natsNotes, unjudged: natsUnjudged,
		made: "the same with the header `Nats-Schedule` written by hand, in RFC3339Nano", claims: natsClaims,
	},
	{
		name: "river", open: openRiver, needs: lacksPostgres, modules: []string{riverModule}, notes: riverNotes, unjudged: handlerUnjudged,
		sameProcess: "lease-end-wakes", slow: true, made: riverMade, claims: "no order, no deduplication by a caller's id; microseconds; schedules every 5 s, polls every second",
	},
	{
		name: "goqite", open: openGoqite, modules: []string{goqiteModule}, notes: goqiteNotes, made: goqiteMade,
		claims: "no order but that of priorities and pushes, no headers, no ids of the pusher's; milliseconds; looks every 100 ms",
	},
	{
		name: "gue", open: openGue, needs: lacksPostgres, modules: []string{gueModule}, notes: gueNotes, unjudged: handlerUnjudged,
		sameProcess: "lease-end-wakes", slow: true, made: gueMade, times: map[string]int{"nack-keeps": 4},
		claims: "no order of messages of one due time, no headers, no dead letters, no ids of the pusher's; microseconds; looks every 5 s: its default",
		ticks:  map[string]time.Duration{"never-early-under-load": 5 * time.Second, "features": 10 * time.Second}, // no shorter than it looks away
	},
	{
		name: "backlite", open: openBacklite, modules: []string{backliteModule}, notes: backliteNotes, unjudged: dueUnjudged, times: backliteTimes, made: backliteMade,
		claims: "one process; no order, no dead letters, one backoff for all tasks of a queue, and processors do not learn the attempt; milliseconds",
	},
	{
		name: "Redisson", open: openRedissonJava, needs: lacksJava, slow: true, notes: redissonNotes, made: redissonMade,
		claims: "at most once: no acknowledgement, no lease; no ids, no headers, no order; milliseconds",
	},
}

const (
	asynqMade = "a `Server` of 64 workers whose handler waits until the message is settled, and returns nil, an error with its delay, one that is no " +
		"failure, or `SkipRetry`; a lease is the time after which the handler returns an error; ids are `TaskID`, dead letters archived tasks"
	asynqClaims = "no order; whole seconds (`ProcessAt` does not say so: declared in its favour)"

	beanstalkdMade = "a connection for each worker; jobs have a time to run of 1 s, and are touched for as long as a lease lasts; ids are the server's; dead letters are buried jobs; no binlog"

	beanstalkdClaims = "no order but that of priorities, no headers, no deduplication; whole seconds"

	natsMade = "a stream of scheduled messages that is a work queue, and a pull consumer with an `AckWait` of 1 s, which workers put off by `InProgress` for " +
		"as long as a lease lasts; what is due at once is published to the work queue itself; files without fsync; "
	natsClaims = "no order, no deduplication by message, deliveries count whether or not anybody had them; looks every 250 ms"

	riverMade = "on PostgreSQL; a `Client` of 64 workers for each queue, whose worker waits until the message is settled, and returns nil, an error with its " +
		"`NextRetry`, `JobSnooze(0)`, or `JobCancel`; a lease is the time after which the worker returns an error; body and headers are the job's arguments; dead letters are cancelled jobs"
)

// Early messages end checks of other rules, too.
const endedByEarly = "a message that came too early ended the check: it is counted under rule 1"

var asynqNotes = []note{
	{
		checks: "due-at|never-early|never-early-under-load|nack-delay|rounds-up", says: "not due yet", is: conformance.Broken, sometimes: true,
		why: asynqEarly, issues: asynqEarlyIssues,
	},
	{checks: "nack-delay", says: "given back with a delay", is: conformance.Broken, sometimes: true, why: asynqEarly, issues: asynqEarlyIssues},
	{checks: "due-at|never-early|never-early-under-load|nack-delay|rounds-up", says: " early", is: conformance.Broken, sometimes: true, why: asynqEarly, issues: asynqEarlyIssues},
	{checks: "exactly-one-worker|consume|unique-.*", says: " early", is: conformance.NotJudged, sometimes: true, why: endedByEarly},
	{checks: "rounds-up", says: "was rounded to 0001", is: conformance.NotOffered, sometimes: true, why: noDueTime},
	{checks: "limits-of-due-times|dead-pages", says: "0001-01-01", is: conformance.NotOffered, why: noDueTime},
	{
		checks: "content-after-retry", says: "has another body", is: conformance.Broken,
		why: asynqSpoilt,
	},
	{checks: "own-limits", says: "the handler ran 0 times", is: conformance.NotJudged, why: "delayq takes the headers with the limits out of what a handler is given, and asynq stores the rest for the retry, as told under rule 3"},
	{checks: "content-everywhere", says: "spoilt", is: conformance.Broken, why: asynqSpoilt},
	{checks: "content-intact", says: "invalid UTF-8", is: conformance.NotOffered, why: "headers are text: those that are not UTF-8 are refused, with an error"},
	{checks: "redrive", says: "the redriven message was handed out at attempt", is: conformance.NotOffered, why: "`RunTask` keeps the count of attempts"},
	{checks: "close-keeps", says: "at attempt 1", is: conformance.NotOffered, why: "attempts count failures; a server that is shut down puts its tasks back without one"},
	{checks: "odd-ids", says: "task ID cannot be empty", is: conformance.NotOffered, why: "an id of spaces is refused, with an error"},
}

const (
	asynqEarly = "asynq stores due times in whole seconds, cut off. The adapter passes them on as they are; rounded up beforehand, the same adapter keeps the rule. " +
		"Without the adapter: `TestEarlyWithoutAdapterAsynq`. With the default intervals the look at an empty queue once a second hides most of it."
	asynqEarlyIssues = "Known: [asynq#1071](https://github.com/hibiken/asynq/issues/1071)."
	asynqSpoilt      = "For a retry asynq stores the very bytes and headers that the handler was given, not what was pushed: a handler that writes to them spoils the next attempt. " +
		"Without the adapter: `TestSpoiltWithoutAdapterAsynq`. Handlers that leave payload and headers alone never see it."
	noDueTime = "a hand-out does not tell when the message was due; it did not come early"
)

// handlerUnjudged are of peers that call handlers.
var handlerUnjudged = map[string]string{
	"many-messages": tooFewWorkers, "lease-end-is-seen": takesAhead,
	"model":           takesAhead,
	"clients-at-once": takesAhead,
	"batches":         tooFewWorkers, "redrive-all": tooFewWorkers, "dead-retention": tooFewWorkers,
	"limits-of-leases": tooFewWorkers,
}

const (
	takesAhead    = "workers take messages before anybody asks the adapter for them, so that a cancel meets a message in a handler: the adapter's doing"
	tooFewWorkers = "the check holds more than 64 messages at a time, and the adapter has so many workers"
)

// dueUnjudged are of peers whose handlers do not learn when a message was due.
var dueUnjudged = func() map[string]string {
	all := maps.Clone(handlerUnjudged)
	all["expires"] = needsDueTime
	return all
}()

const needsDueTime = "the check needs the due time of a message that is handed out, which its worker does not learn"

// encodedNames is why the longest names do not fit.
const encodedNames = "the adapter encodes names, which makes the longest too long: the adapter's doing"

var beanstalkdNotes = []note{
	{checks: "queues-are-apart", says: "too long", is: conformance.NotJudged, why: encodedNames},
	{checks: "many-messages", says: "Receive has message", is: conformance.NotOffered, why: "there is no order but that of priorities"},
	{
		checks: "due-at|never-early|never-early-under-load|nack-delay|rounds-up", says: "not due yet", is: conformance.Broken, why: beanstalkEarly,
	},
	{checks: "never-early-under-load|nack-delay|due-at|never-early", says: " early", is: conformance.Broken, why: beanstalkEarly},
	{checks: "exactly-one-worker|consume", says: " early", is: conformance.NotJudged, sometimes: true, why: endedByEarly},
	{checks: "rounds-up", says: "was rounded to 0001", is: conformance.NotOffered, why: noDueTime},
	{checks: "limits-of-due-times", says: "0001-01-01", is: conformance.NotOffered, why: noDueTime},
	{checks: "stats", says: "the head is due already", is: conformance.NotOffered, sometimes: true, why: "the server tells how many whole seconds a job has left to wait, and nothing of when one that is ready was due"},
	{
		checks: "stats-after-many-leases|batch-of-ended-leases", is: conformance.NotJudged, sometimes: true,
		why: "the adapter holds each job on a connection of its own, hundreds at once, and the server releases some late: whether that is the fault told of under rule 8 is not known",
	},
	{checks: "wake-up-races", says: "use of closed network connection", is: conformance.NotJudged, sometimes: true, why: "the adapter's connection was closed under its own question"},
	{checks: "wake-up-races", says: "acknowledging: lease lost", is: conformance.NotOffered, sometimes: true, why: beanstalkdEnds},
	{checks: "close-keeps", says: " early", is: conformance.NotOffered, sometimes: true, why: beanstalkdEnds},
	{checks: "stats-due", says: "after eight pushes Stats returns 8 scheduled", is: conformance.NotOffered, why: "the server tells when a job is due, and not how many are due by a time"},
	{
		checks: "lease-ends|lease-end-wakes|attempt-counts-crashes", is: conformance.Broken, sometimes: true, why: beanstalkdStuck, issues: beanstalkdStuckIssues,
	},
	{
		checks: "lease-.*|attempt-counts-crashes|stale-.*|close-keeps|poison-kills-worker|extend-.*|stats|done-is-done|leaves-nothing", says: "no message was handed out within",
		is: conformance.Broken, sometimes: true, why: beanstalkdStuck, issues: beanstalkdStuckIssues,
	},
	{checks: "stale-nack|stale-extend|stale-dead", says: "got error <nil>", is: conformance.Broken, sometimes: true, why: beanstalkdStuck, issues: beanstalkdStuckIssues},
	{checks: "extend-.*|stats|leaves-nothing|stale-.*", says: "of ended leases", is: conformance.Broken, sometimes: true, why: beanstalkdStuck, issues: beanstalkdStuckIssues},
	{checks: "stats", says: "in flight", is: conformance.Broken, sometimes: true, why: beanstalkdStuck, issues: beanstalkdStuckIssues},
	{
		checks: "random-cancellations", says: "context deadline exceeded", is: conformance.NotJudged, sometimes: true,
		why: "the check waits until nothing is in flight, and some jobs stay reserved: whether by the fault told of under rule 8 or on a connection of the adapter is not known",
	},
	{
		checks: "random-cancellations", says: "dead, head due", is: conformance.NotJudged, sometimes: true,
		why: "the check buries messages and wants them gone at the end, which takes a list of dead letters; the books did balance",
	},
	{
		checks: "stale-ack|extend-holds|settle-once|model", says: "cknowledging m", is: conformance.NotOffered, sometimes: true, why: beanstalkdDelete,
	},
	{checks: "stale-ack|extend-holds|settle-once", says: "Ack after", is: conformance.NotOffered, sometimes: true, why: beanstalkdDelete},
	{checks: "model", is: conformance.NotOffered, why: beanstalkdDelete},
	{checks: "settle-once", says: "after Dead", is: conformance.NotOffered, sometimes: true, why: beanstalkdDelete},
	{checks: "cancel-settled", says: "cancelling a dead letter", is: conformance.NotOffered, why: "`delete` takes buried jobs, too, as the protocol says"},
	{
		checks: "untouched-is-not-counted|stop-returns-untouched", is: conformance.NotOffered, sometimes: true, why: beanstalkdCounts,
	},
	{
		checks: "wake-up-outlives-leavers|wake-up-races|clients-at-once", says: "handed out at attempt", is: conformance.NotOffered, sometimes: true, why: beanstalkdCounts,
	},
}

const (
	beanstalkEarly = "go-beanstalk takes a `time.Duration` and cuts it to whole seconds; a delay of 1.9 s is one of 1 s, and one of 0.9 s is none. " +
		"The server keeps the seconds that it is given: with delays rounded up beforehand, the same adapter keeps the rule. Without the adapter: `TestEarlyWithoutAdapterBeanstalk`."
	beanstalkdStuck = "Now and then the server does not notice that a job's time to run is over: the job stays reserved, with a negative time left, until the worker's " +
		"connection says something or ends. The protocol promises its release. Without the adapter: `TestStuckWithoutAdapterBeanstalkd`, which finds it within some rounds. Seen with times of 1 s."
	beanstalkdStuckIssues = "Reported: [#262](https://github.com/beanstalkd/beanstalkd/issues/262), [#380](https://github.com/beanstalkd/beanstalkd/issues/380), both closed."
	beanstalkdEnds        = "a reservation ends with its worker's connection, as the protocol says"
	beanstalkdCounts      = "reservations are counted, and `release` is the only way back"
	beanstalkdDelete      = "`delete` is for jobs that are ready or buried, too, from any connection, as the protocol says: a worker whose time is over deletes a job that waits for another " +
		"(`TestStaleDeleteWithoutAdapterBeanstalkd`). `release`, `bury` and `touch` are fenced"
)

var beanstalkdTimes = map[string]int{"lease-ends": 8, "attempt-counts-crashes": 4, "stop-returns-untouched": 4}

var natsNotes = []note{
	{checks: "queues-are-apart", says: "longest name", is: conformance.NotJudged, why: encodedNames},
	{checks: "lease-end-is-seen", says: "no such message", is: conformance.NotOffered, why: "what waits can be purged by its subject; what was handed out is in the work queue, which cannot"},
	{checks: "due-at|never-early|never-early-under-load|rounds-up", says: "not due yet", is: conformance.Broken, why: natsEarly},
	{checks: "due-at|never-early|never-early-under-load|rounds-up", says: " early", is: conformance.Broken, why: natsEarly},
	{checks: "exactly-one-worker|consume", says: " early", is: conformance.NotJudged, sometimes: true, why: endedByEarly},
	{checks: "rounds-up", says: "was rounded to 0001", is: conformance.NotOffered, sometimes: true, why: noDueTime},
	{checks: "limits-of-due-times", says: "0001-01-01", is: conformance.NotOffered, why: noDueTime},
	{checks: "wake-up-races", says: "acknowledging: lease lost", is: conformance.NotJudged, sometimes: true, why: "the adapter's leases end with their handle"},
	{checks: "content-.*", says: "header size exceeds maximum allowed of 64k", is: conformance.NotOffered, why: "headers may have 64 KiB with their names and the server's own: more is refused, with an error"},
	{
		checks: "content-.*", says: "other headers", is: conformance.Broken,
		why: "nats.go turns the ends of lines in a header's value into spaces, and cuts spaces at both ends, without an error. Without the adapter: `TestHeadersWithoutAdapterNATS`. Bodies are kept.",
	},
	{checks: "stale-.*|extend-holds|settle-once|close-keeps", says: "got error <nil>", is: conformance.NotOffered, why: natsFence},
	{checks: "ids|cancel|cancel-in-flight|cancel-settled", says: "no such message", is: conformance.NotOffered, why: natsCancel},
	{checks: "cancel-race|random-cancellations", says: "no order of its calls explains", is: conformance.NotOffered, why: natsCancel},
	{checks: "untouched-is-not-counted|stop-returns-untouched|context-ended|context-end-loses-nothing|close-keeps|wake-up-races|wake-up-outlives-leavers|clients-at-once", says: "attempt", is: conformance.NotOffered, sometimes: true, why: "deliveries are counted, and `Nak` is the only way back"},
}

const (
	natsEarly = "The option `WithScheduleAt` of nats.go writes the time in whole seconds, cut off. The server keeps what the header says: written by hand, with all digits, it keeps the rule. " +
		"Without the adapter: `TestEarlyWithoutAdapterNATS`, `TestEarlyWithoutAdapterNATSHeader`."
	natsCancel = "what waits can be purged by its subject; what is due, in flight or given back is in the work queue, which knows no ids"
	natsFence  = "an acknowledgement holds after `AckWait` and after a redelivery, too, and `Nak`, `Term` and `InProgress` are not answered: nothing is said of fencing (`TestStaleAckWithoutAdapterNATS`)"
)

var natsUnjudged = map[string]string{
	"close-leaves-no-goroutine": serverInside, "close-race": serverInside, "expires": needsDueTime,
}

const serverInside = "the server runs in the process of the test, and its goroutines look like leaks"

var riverNotes = []note{
	{checks: "limits-of-due-times", says: "the second Receive", is: conformance.NotOffered, why: "a retry is scheduled anew: the job has the due time of its retry"},
	{checks: "redrive", says: "the redriven message was handed out at attempt", is: conformance.NotOffered, why: riverAttempts},
	{checks: "own-limits", says: "the handler ran 0 times", is: conformance.NotOffered, why: riverAttempts},
	{checks: "content-everywhere", says: "river has not told of the end", is: conformance.Broken, why: riverNUL},
}

const (
	riverAttempts = "`JobRetry` keeps the count of attempts"
	riverNUL      = "The text of a worker's error is stored as JSON, and PostgreSQL takes no NUL in it. The client (`BatchCompleter` in job_completer.go) then writes down no end at all while it " +
		"tries again: neither that job's nor those of others that end meanwhile. Without the adapter: `TestStuckWithoutAdapterRiver`. Errors without a NUL never show it."
)

const goqiteMade = "on SQLite, one connection and a file of its own; the timeout of a `Queue` is the lease, `Extend` is the way back, and a dead letter is deleted; `MaxReceive` has no bound"

var goqiteNotes = []note{
	{checks: "rounds-up", says: "was rounded to 0001", is: conformance.NotOffered, why: noDueTime},
	{checks: "limits-of-due-times", says: "0001-01-01", is: conformance.NotOffered, why: noDueTime},
	{checks: ".*", says: "got error <nil>; want lease lost", is: conformance.NotOffered, why: goqiteFence},
	{checks: "random-cancellations", says: "no order of its calls explains", is: conformance.NotOffered, sometimes: true, why: goqiteFence},
}

const goqiteFence = "`Delete` and `Extend` take the id of a message, whichever worker holds it, and do not say whether it was there: a worker whose timeout is over deletes the message that another one " +
	"has by then (`TestStaleDeleteWithoutAdapterGoqite`)"

const gueMade = "on PostgreSQL; a `WorkerPool` of 64 workers for each queue, whose `WorkFunc` waits until the message is settled, and returns nil, " +
	"`ErrRescheduleJobAt`, or `ErrDiscardJob`; a lease is the time after which it returns an error; a cancel is `LockJobByID`, `Delete` and `Done`; a dead letter is deleted"

var gueNotes = []note{
	{checks: "limits-of-due-times", says: "the second Receive", is: conformance.NotOffered, why: "a retry is scheduled anew: the job has the due time of its retry"},
	{checks: "close-keeps", says: "at attempt 1", is: conformance.NotOffered, why: "attempts count errors; workers that are stopped roll the transactions of their jobs back"},
	{checks: "untouched-is-not-counted|stop-returns-untouched", says: "attempt", is: conformance.NotOffered, why: gueCounts},
	{checks: "cancel-in-flight", says: "no such message; want", is: conformance.NotOffered, why: gueLocked},
	{checks: "cancel", says: "waits for a retry: no such message", is: conformance.NotOffered, sometimes: true, why: gueLocked},
	{checks: "nack-keeps", says: "no message was handed out within", is: conformance.Broken, sometimes: true, why: gueLocksTwo},
	{checks: "wake-up-of-batch", says: "slept on for", is: conformance.Broken, sometimes: true, why: gueLocksTwo},
	{checks: "cancel-race|random-cancellations", says: "no order of its calls explains", is: conformance.NotOffered, sometimes: true, why: gueLocked},
	{checks: "random-cancellations", says: "deallocate cached statement", is: conformance.NotJudged, sometimes: true}, // pgx tells of an earlier call: worth another run
}

const (
	gueCounts = "errors are counted, and an error is the only way back"
	gueLocked = "`LockJobByID` has one error for a job that is not there and for one that another transaction has locked, a worker's or one that looks for due jobs"

	gueLocksTwo = "A worker that looks for a job (`LockNextScheduledJob`, `LockJob` in client.go) while another one gives its job back sometimes locks that job, too: its `SELECT … FOR UPDATE SKIP LOCKED` meets the row " +
		"as it was, locks it as it is, finds that it is not due yet, and goes on to the next row. The lock stays until the transaction ends, and that is when the worker is done with the next job. " +
		"Until then no worker gets the job that was given back, however long it has been due. Without the adapter: `TestLockedWithoutAdapterGue`, which finds it within some thousand rounds."
)

const backliteMade = "on SQLite; a file and a `Client` of 64 workers for each queue, whose processor waits until the message is settled, and returns nil or an error; " +
	"a lease is the time after which it returns an error; our ids are part of the task; a dead letter is a success; files without fsync"

var backliteNotes = []note{
	{checks: "rounds-up", says: "was rounded to 0001", is: conformance.NotOffered, why: noDueTime},
	{checks: "limits-of-due-times", says: "0001-01-01", is: conformance.NotOffered, why: noDueTime},
	{checks: "due-at|never-early|never-early-under-load", says: "not due yet", is: conformance.Broken, sometimes: true, why: backliteEarly},
	{checks: "due-at|never-early|never-early-under-load", says: " early", is: conformance.Broken, sometimes: true, why: backliteEarly},
	{checks: "exactly-one-worker|consume", says: " early", is: conformance.NotJudged, sometimes: true, why: endedByEarly},
	{checks: "close-race|close-leaves-no-goroutine", says: "backlite.(*dispatcher)", is: conformance.Broken, sometimes: true, why: backliteStop},
	{checks: "consume", says: "the end of the check's work", is: conformance.NotOffered, why: "what a handler fails at is given back with a delay, and a queue has one backoff for all of its tasks"},
}

const backliteEarly = "backlite stores the times of `At` and `Wait` in whole milliseconds, cut off (`InsertTx` in internal/task/task.go): a task may come up to 1 ms early. " +
	"Its README says \"at least\" of both. Without the adapter: `TestEarlyWithoutAdapterBacklite`. A busy machine hides it."

const backliteStop = "`Stop` takes the free workers that `fetch` waits for (`waitForWorkers` in dispatcher.go): one that is under way then waits for ever, in a goroutine that nothing ends, " +
	"and the tasks that it has claimed by then wait for `ReleaseAfter`. Without the adapter: `TestStopWithoutAdapterBacklite`."

// backliteTimes are of checks that take a machine which is faster than the rest of a millisecond.
var backliteTimes = map[string]int{"due-at": 8, "never-early": 4}

const redissonMade = "real Redisson in a JVM: `RDelayedQueue.offer`, and `poll` of its `RBlockingQueue` every 5 ms; an acknowledgement does nothing; our ids are part of the value"

var redissonNotes = []note{
	{checks: "many-messages", says: "Receive has message", is: conformance.NotOffered, why: "messages of one due time have no order: their members begin with random numbers"},
	{checks: ".*", says: "no message was handed out within", is: conformance.NotOffered, why: atMostOnce},
	{checks: "lease-.*", says: "slept on for", is: conformance.NotOffered, why: atMostOnce},
	{checks: "stale-.*|batch-outcomes|settle-once|batch-twice", says: "got error <nil>", is: conformance.NotOffered, why: atMostOnce},
	{checks: "stuck-handler", says: "renewal", is: conformance.NotOffered, why: atMostOnce},
	{checks: "consume", says: "the end of the check's work", is: conformance.NotOffered, why: "what a handler fails at is not given back: " + atMostOnce},
	{checks: "rounds-up", says: "was rounded to 0001", is: conformance.NotOffered, why: noDueTime},
	{checks: "limits-of-due-times", says: "0001-01-01", is: conformance.NotOffered, why: noDueTime},
}

const atMostOnce = "what is taken is gone from Redis: there is no lease that could end and nothing to acknowledge"
