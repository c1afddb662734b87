// Package wire has what package server and package httpclient send to each other: JSON values,
// leases as text, and problems (RFC 9457) for errors. docs/serve.md describes them, and
// server/openapi.json does so in full.
package wire

// The headers of requests and replies.
const (
	KeyHeader      = "Idempotency-Key"
	InstanceHeader = "Delayq-Instance" // of a reply: which run of the server; of a request: only that one may execute it

	// AgeHeader has the whole milliseconds since the first try of a request that is sent again began.
	AgeHeader = "Delayq-Age"
)
