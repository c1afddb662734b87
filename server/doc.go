// Package server gives the verbs of a delay queue as JSON over HTTP, for services in any language,
// on any backend. docs/serve.md describes the calls, and the server returns them as an OpenAPI
// document at /openapi.json. Package httpclient is the client for Go. "delayq serve" is this package
// as a program.
//
// # Leases
//
// A message is received with the lease as a text, which ack, nack, release, extend and dead take.
// The server keeps nothing about it. So where the store keeps leases, a server that is started after
// another one was killed settles what that one has handed out, and several servers may share a
// store.
//
// # Access
//
// Without [Tokens] every caller may do everything: listen on the loopback alone then. Requests that
// a browser sends for another site are rejected. Without Tokens, so are requests for a host name
// other than localhost, unless [AnyHost] is given.
package server
