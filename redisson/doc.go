// Package redisson shares delay queues with Java: it keeps messages where Redisson's RDelayedQueue keeps them, byte for byte.
package redisson
