// Package webhook posts messages to URLs when they are due, for programs that hold no worker.
//
//	h, err := webhook.New(webhook.To("https://shop.example.org/reminders"), webhook.Secret("whsec_…"))
//	…
//	err = q.Consume(ctx, h, delayq.Workers(16))
//
// # The request
//
// It is a POST with the message's body. Its headers are those of Standard Webhooks
// (https://www.standardwebhooks.com), for which there are libraries in many languages:
//
//	webhook-id          the message's id, percent-encoded, dots too: the same in each attempt
//	webhook-timestamp   the time of the request, in seconds since 1970
//	webhook-signature   for each secret: v1, and the HMAC-SHA256 of id, timestamp and body
//	delayq-attempt      1, 2, …
//	delayq-due          the due time, as 2030-01-31T18:00:00.25Z
//	delayq-header-NAME  each other header of the message, of letters, digits and -, in printable ASCII
//	content-type        the message's header of that name, or what its body looks like
//
// # The reply
//
// A status 2xx says that the message is done. 410 (Gone) makes it a dead letter at once. After any
// other status, or none, it comes again, as the consumer's retry policy says, or when a header
// Retry-After of the reply says, up to a day later. A redirect is not followed: it is a failure.
//
// A message can be posted more than once, as with every worker: the receiver looks at webhook-id.
//
// # Where it may go
//
// A message goes to the URL of [To], or to the one in its header [URLHeader], which [Allow] has to
// allow. A message that has no allowed URL becomes a dead letter. So does one whose host has a
// loopback or link-local address, or that of a cloud's metadata, unless To or Allow name the address
// or localhost. Addresses of private networks are not refused. Proxies of the environment are not
// used.
package webhook
