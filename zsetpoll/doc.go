// Package zsetpoll is the Redis backend for every Redis: a single server, a Sentinel group or a
// Cluster. Messages are scored by due time in a sorted set, and workers claim due messages.
//
// A queue asks Redis only when it must. A claim says when the next message becomes due, and
// sleeping workers wake then. A push of a message that becomes the first wakes them earlier, from
// any process. Where a wake-up is lost, they wake after an interval ([Poll]). All workers of one
// handle share one fetcher.
//
// # URLs
//
//	zsetpoll://[USER:PASSWORD@]HOST[:PORT]/QUEUE[?NAME=VALUE&…]
//
//	claims=script|arbitrate|mover, poll=1s, prefix=delayq, shards=1
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
// The URLs that people have in REDIS_URL open the same store. Their path is a database, and the
// queue's name is delayq.Named or the parameter queue:
//
//	redis://[USER:PASSWORD@][HOST][:PORT][/DB][?queue=QUEUE&…]
//	rediss://…                  with TLS
//	unix://[USER:PASSWORD@]/PATH[?queue=QUEUE&db=N&…]
//
// They take the parameters above except tls and socket. master_name=NAME and skip_verify=true, the
// names of go-redis, mean master=NAME and tls_insecure=true. USER and PASSWORD are the server's,
// also with Sentinel.
//
// # What it promises
//
// Everything that package delayq offers: order by (due, push order), cancelling, rescheduling,
// deduplication, dead letters, leases kept by Redis. A message that is pushed is as durable as the
// server is set up to be; the first Open warns of a server that may lose messages, with the remedy.
//
// # Time
//
// The clock is the server's. Due times and leases are whole milliseconds, rounded up. With
// delayq.WithClock a queue runs in virtual time against a real server.
//
// # Cost
//
// docs/redis.md draws the keys and counts the bytes. An idle queue with a waiting worker sends one
// command a second.
package zsetpoll
