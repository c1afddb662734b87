// Package shard makes one queue of several message stores in Redis. Each store has a hash tag of its
// own, and the tags are spread over the slots of a Cluster, so that the queue uses all masters. The
// store of a message follows from its id.
package shard
