//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package interop

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock waits until no other process has the lock of this name. A process that ends loses its locks.
func lock(name string) (unlock func() error, err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		switch {
		case err == nil:
			return f.Close, nil
		case !errors.Is(err, syscall.EINTR):
			return nil, errors.Join(fmt.Errorf("locking %s: %w", name, err), f.Close())
		}
	}
}
