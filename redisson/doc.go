// Package redisson shares delay queues with Java: it keeps messages where Redisson's RDelayedQueue
// keeps them, byte for byte, and works on them with scripts of its own. Redisson's lost wake-ups,
// stalls and unreadable members do not stop a queue that Go has open.
//
// # Two ways
//
// Shared with Java, which is the default: either side takes, cancels and hands over messages that
// the other has pushed. The payload is the body as Redisson's codec writes it, so there is no room
// for an id or for headers. docs/sharing-with-java.md tells how to set both sides up, and which
// side sees which message.
//
// With [Envelope] the queue has Redisson's keys, and payloads that only this package reads: for
// queues that only Go uses, and that Java at most carries.
//
// # URLs
//
//	redisson://[USER:PASSWORD@]HOST[:PORT]/QUEUE[?NAME=VALUE&…]
//
//	codec=string                bytes, string, jackson, jackson3, jackson-object, jackson3-object,
//	                            marshalling, kryo5, envelope
//	format=both                 the layout of members that is written: v1, v2, both
//	any_format=true             write it whatever Java's members show
//	index=false                 no index list
//	prefix=TEXT                 put before the queue's name, as a NameMapper does
//	sweep=1s                    how often to look when no wake-up comes, 10ms to 1m
//	db=N                        the database
//	socket=PATH                 a Unix socket; HOST is then empty
//	cluster=true                a Cluster, of which HOST is a node
//	master=NAME                 its name in Sentinel; HOST is then a Sentinel
//	sentinel_user=U, sentinel_password=P
//	addr=HOST[:PORT]            one more node or Sentinel; may be repeated
//	tls=true                    TLS, verified; with tls_server_name=NAME, tls_ca=FILE,
//	                            tls_cert=FILE, tls_key=FILE, or tls_insecure=true
//	pool_size=N, dial_timeout=5s, read_timeout=5s, write_timeout=5s
//
// The name is Redisson's, to the letter: Java's getBlockingQueue("orders") is /orders here.
//
// # What it promises
//
// With [Envelope] everything that package delayq offers.
//
// Shared with Java: order by (due, push order) among messages of Go, cancelling and rescheduling of
// messages of either side, dead letters, leases. The store makes the ids, so delayq.ID returns
// ErrUnsupported. A push is not deduplicated, and not repeated when its reply was lost. There are
// no headers. A message that Java has moved comes under another id, as its first attempt; one that
// Java takes is gone from Redis, whatever becomes of it.
//
// An unreadable member, which stops Redisson's transfers, is put aside, counted and kept
// ([Backend.Quarantine]). A message whose payload the codec cannot read becomes a dead letter,
// whole.
//
// # Formats
//
// Redisson changed the layout of members at 3.21.1, and neither side of that reads the other's. All
// layouts are read here. A push writes [Both], which every version reads, unless [Format] chooses
// another. Then a push is rejected where members show that Java's readers would fail on it.
//
// # Time
//
// Leases, and due times that are given as a delay, go by the server's clock. Java goes by its own:
// its offers are due by the clock of the process that made them, and its transfers hand out what is
// due by theirs, messages of Go included. Due times and leases are whole milliseconds, rounded up.
// With delayq.WithClock a queue runs in virtual time against a real server, without Java.
//
// # Cost
//
// docs/redisson.md draws the keys and counts the bytes. A shared queue is maintained for as long as
// a handle on it is open, even one that only pushes: a due message that no worker here wants goes
// to the list where Java takes it. An idle queue sends one command a second.
package redisson
