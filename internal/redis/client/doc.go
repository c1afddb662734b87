// Package client reads the URLs of the backends on Redis, and connects to what they name:
//
//	SCHEME://[USER:PASSWORD@]HOST[:PORT]/QUEUE[?NAME=VALUE&…]
//
// SCHEME is a backend's name. PORT is 6379 by default, 26379 for Sentinel. Reserved characters are
// percent-encoded, above all in passwords. ":PASSWORD@" is the password of the default user.
//
//	db=N                        the database, 0 by default
//	socket=PATH                 a Unix socket; HOST is then empty
//	cluster=true                a Cluster, of which HOST is a node
//	master=NAME                 what Sentinel calls it; HOST is then a Sentinel
//	sentinel_user=U             for the Sentinels themselves,
//	sentinel_password=P         whose user may be left out
//	addr=HOST[:PORT]            one more node or Sentinel; may be repeated
//	tls=true                    TLS, verified
//	tls_server_name=NAME        the name in the certificate, HOST by default
//	tls_ca=FILE                 the authorities that may sign it (PEM), by default the system's
//	tls_cert=FILE, tls_key=FILE the client's own certificate (PEM)
//	tls_insecure=true           TLS that trusts any certificate
//	pool_size=N                 connections, to each node of a Cluster
//	dial_timeout=5s, read_timeout=5s, write_timeout=5s
//
// More nodes are parameters since the host of a URL cannot be a list: net/url rejects one with an
// IPv6 address in it.
//
// A backend has parameters of its own beside these. Unknown, repeated or useless parameters are
// errors. No error repeats a password.
package client
