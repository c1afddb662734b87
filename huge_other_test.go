//go:build !linux && !darwin

package delayq_test

import "testing"

func hugeBody(t *testing.T) []byte {
	t.Helper()
	t.Skip("2 GiB without the memory for them need mmap")
	return nil
}
