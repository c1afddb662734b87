// Package keyspace is a Redis backend that is woken by Redis: each message has a key that expires when
// the message is due, and the server tells of the expiry.
//
// Choose it where workers should be idle until Redis itself calls, and a message that is late by the
// sweep does no harm. Package zsetpoll keeps the same promises, needs no setting on the server and is
// punctual; both work on the same keys, so that a queue can be moved from one to the other while it is
// in use.
//
// # URLs
//
// keyspace://[USER:PASSWORD@]HOST[:PORT]/QUEUE is a queue on a Redis server. The parameters sweep and prefix
// are [Sweep] and [Prefix]; those of the connection, such as db, cluster, master and tls, are the same as
// with zsetpoll.
//
// # What it promises
//
// Everything that package delayq offers: order by (due, push order), cancelling, rescheduling, dead
// letters, leases with fencing. Messages are in a sorted set, as in zsetpoll; that set is the truth. An
// expiry is only a hint to look there, and what is found is claimed in one script, so that of all
// workers that hear of it one gets the message. Redis sends expiries to who listens at that moment and
// never again. Therefore every queue also looks by itself, once in each [Sweep] and whenever a
// subscription was made or made again.
//
// # What the server must do
//
// The setting notify-keyspace-events must contain E and x (or A). The first Open adds what is missing,
// and keeps the rest, on each master of a Cluster and again after each reconnect, since a restart may
// forget it. Managed services often refuse. If it is not set there either, a warning with the remedy
// goes to the logger, [Backend.Degraded] tells the reason, and messages wait for the sweep.
//
// # Time
//
// The clock is the server's, to the millisecond; workers' clocks do not matter. A message that is due at
// once has no key to expire: its push wakes a worker directly. With delayq.WithClock there are no keys to
// expire either, and the sweep, on that clock, does the work.
//
// Nothing is handed out early. How late it may be is the sweep plus a round trip, because Redis tells of
// an expiry when it removes the key, and it removes a key when somebody reads it or its background job
// comes by. With no other expiring keys that job finds a due one within milliseconds, or tenths of a
// second when few are due. Its round takes longer the more keys have a time to live: at the default
// settings (hz 10, active-expire-effort 1) about one second for each 200 of them, so that among 10,000
// a key is found after some 20 s and among 100,000 after minutes. The keys of waiting messages count
// too. From a few hundred such keys on the sweep does most of the work. A higher hz and active-expire-effort
// make the rounds shorter: 100 and 10 together by a factor of 30.
//
// # Cost
//
// An idle queue sends one command a Sweep; more than a hundred of them share a hundred a second. All queues
// of a backend share one subscription to pushes and one to expiries, on a Cluster one to each master's,
// whose list is read every ten seconds. Every expiry of the database goes to every process that
// listens, other people's keys included, which are ignored. Each process that waits for messages of a
// queue makes a claim for each of its expiries.
//
// A message takes about 180 bytes more in Redis than with zsetpoll, for its key.
package keyspace
