// Package testenv gives tests real servers.
//
// A Redis server comes from the first of these that there is:
//
//  1. the URL in DELAYQ_REDIS_URL, for example redis://localhost:6379/15; tests that ask for
//     options or for a server of their own pass it over,
//  2. redis-server on the PATH, started on a free port of 127.0.0.1 in a directory of its own,
//  3. Docker.
//
// With none of them a test is skipped and says how to get one. DELAYQ_REQUIRE=redis makes it
// fail instead, so that a run that must test everything cannot pass by skipping.
//
// Servers end with the test that asked for them, and on Linux even when the test binary is
// killed.
package testenv
