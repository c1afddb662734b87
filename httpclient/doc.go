// Package httpclient keeps messages on a server of package server, which "delayq serve" runs: a
// backend over HTTP.
//
// # URLs
//
// delayq+http://[TOKEN@]HOST[:PORT][/PATH]/QUEUE is a queue, and delayq+https:// one over TLS. The
// token needs the rights that the calls need. PATH is where the server is mounted. The parameters
// are:
//
//   - wait: how long one receive waits before it is repeated, 1s to 10m; 20s by default.
//   - timeout: how long a call without a deadline may take, 1s to 10m; a minute by default.
//   - tls_ca, tls_cert, tls_key, tls_server_name: as those of package rabbitmq, for delayq+https.
//
// # What it promises
//
// What the store behind the server promises, but for calls in a transaction of that store. The
// server tells at the connection what its store is.
//
// # Lost replies
//
// When a connection breaks before the reply, the request is sent again, up to twice, with the same
// Idempotency-Key. The server then sends the reply of the first one, so that nothing happens twice
// and a message that was received is not lost until its lease ends. A server that has been started
// meanwhile, or no longer has the first reply to a change, does not execute it: the outcome is
// backend.ErrOutcomeUnknown. A Receive is ended on the server before its handle is closed, and what
// it was just given is released.
//
// # Time
//
// The clock is that of the store. A clock of the caller's is not supported.
package httpclient
