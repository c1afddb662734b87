// Package keyspace is a Redis backend that is woken by Redis: each queue has a key that expires
// when its first message is due, and the server tells of the expiry.
//
// Choose it where workers should be idle until Redis itself calls, and a message that is late by
// the sweep does no harm. Package zsetpoll keeps the same promises, needs no setting on the server
// and is punctual; both work on the same keys, so that a queue can be moved from one to the other
// while it is in use.
//
// # URLs
//
// keyspace://[USER:PASSWORD@]HOST[:PORT]/QUEUE is a queue on a Redis server. The parameters sweep,
// prefix and shards are [Sweep], [Prefix] and [Shards]; those of the connection, such as db,
// cluster, master and tls, are the same as with zsetpoll.
//
// # What it promises
//
// Everything that package delayq offers: order by (due, push order), cancelling, rescheduling, dead
// letters, leases with fencing. Messages are in a sorted set, as in zsetpoll; that set is the
// truth. An expiry is only a hint to look there. One script claims the due messages, so that one of
// all workers that get the expiry gets each message. The claim that leaves nothing due sets the
// key for the next message, and a write that puts a message before all others sets it for that one.
// Redis sends an expiry once, to the processes that listen at that moment. Therefore every queue
// also claims by itself, once in each [Sweep] and after each subscription. That claim also sets a
// missing key.
//
// # What the server must do
//
// The setting notify-keyspace-events must contain E and x (or A). The first Open adds what is
// missing, and keeps the rest, on each master of a Cluster and again after each reconnect, since a
// restart may forget it. Managed services often reject. If it is not set there either, a warning
// with the remedy goes to the logger, [Backend.Degraded] tells the reason, and messages wait for
// the sweep.
//
// # Time
//
// The clock is the server's, to the millisecond; workers' clocks do not matter. A message that is
// due at once needs no key: its push wakes a worker directly. With delayq.WithClock there is no key
// to expire either, and the sweep, on that clock, does the work. The end of a lease is found by a
// claim or the sweep.
//
// Nothing is handed out early. How late it may be is the sweep plus a round trip, because Redis
// tells of an expiry when it removes the key, and it removes a key when a client reads it or its
// background job comes by: ten times a second at the default hz of 10. So a message is late by up
// to a tenth of a second. At 2,000 messages a second half of them were by less than 50 ms, and 99
// of 100 by about 100 ms; with an hz of 100, half by less than 6 ms. The job's round takes longer
// the more keys of the server have a time to live: at the default settings (hz 10,
// active-expire-effort 1) about one second for each 200 of them, so that among 10,000 a key is
// found after some 20 s and among 100,000 after minutes. Keys of others count, and one for each
// queue that has something scheduled. From some hundred such keys on the sweep does most of the
// work: among 200, half of the messages were late by more than 400 ms. A higher hz and
// active-expire-effort make the rounds shorter: 100 and 10 together by a factor of 30.
//
// # Cost
//
// An idle queue sends one command a Sweep; more than a hundred of them share a hundred a second.
// All queues of a backend share one subscription to pushes and one to expiries, on a Cluster one to
// each master's, whose list is read every ten seconds. Every expiry of the database goes to every
// process that listens, other people's keys included, which are ignored. Each process that waits
// for messages of a queue makes a claim for each of its expiries: ten a second at the default hz,
// however many messages fall due.
//
// A message takes as many bytes in Redis as with zsetpoll. The key is about a hundred more for a
// queue.
package keyspace
