//go:build linux || darwin

package delayq_test

import (
	"syscall"
	"testing"
)

// hugeBody returns 2 GiB that take no memory and must not be touched: rejecting a body must not
// read it.
func hugeBody(t *testing.T) []byte {
	t.Helper()
	size := int64(2) << 30
	body, err := syscall.Mmap(-1, 0, int(size), syscall.PROT_NONE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Skipf("no room for 2 GiB of addresses: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(body) })
	return body
}
