package main

import (
	"net"
	"net/url"
	"testing"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

// startRedis starts a Redis for a test, and returns the URL of a queue on it.
func startRedis(t *testing.T) string {
	c, err := testcontainers.Run(t.Context(), "redis:7",
		testcontainers.WithExposedPorts("6379/tcp"),
		testcontainers.WithWaitStrategy(wait.ForListeningPort("6379/tcp")))
	testcontainers.CleanupContainer(t, c)
	if err != nil {
		t.Fatal(err)
	}
	address, err := c.PortEndpoint(t.Context(), "6379/tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	return "zsetpoll://" + address + "/orders"
}

// docs/testing.md shows startRedis.
func TestStartRedis(t *testing.T) {
	testcontainers.SkipIfProviderIsNotHealthy(t)
	u, err := url.Parse(startRedis(t))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
}
