// Package testenv gives tests real servers.
//
// A Redis server comes from the first of these that there is:
//
//  1. the URL in DELAYQ_REDIS_URL, for example redis://localhost:6379/15; tests that ask for
//     options or for a server of their own do not use it,
//  2. redis-server on the PATH, started on a free port of 127.0.0.1 in a directory of its own,
//  3. Docker.
//
// A RabbitMQ broker comes from the same places: the URL in DELAYQ_RABBITMQ_URL, for example
// amqp://guest:guest@localhost:5672/vhost, the script rabbitmq-server, which then has a node name,
// an Erlang cookie and an epmd of its own (DELAYQ_RABBITMQ_SCRIPTS names another directory to find
// it in), or Docker. A start takes 4 s of processor time, so that tests share one broker and take a
// vhost each, except those that kill it.
//
// With none of them a test is skipped, with a message on how to get one. With
// DELAYQ_REQUIRE=redis,rabbitmq it fails instead, so that no run passes by skipping.
//
// Servers end with the test that asked for them, and on Linux even when the test binary is
// killed.
package testenv
