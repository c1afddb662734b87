//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// closedOutput tells whether the caller closed the standard output. Go's runtime then opens
// /dev/null in its place, for reading and writing. Shells open it for writing only. Programs that
// start daemons open it for both, and have it as the standard input or error too.
func closedOutput() bool {
	out := int(os.Stdout.Fd())
	return opensNull(out) && !sameFile(out, int(os.Stdin.Fd())) && !sameFile(out, int(os.Stderr.Fd()))
}

// opensNull tells whether fd is /dev/null, open for reading and writing.
func opensNull(fd int) bool {
	var file, null unix.Stat_t
	if unix.Fstat(fd, &file) != nil || unix.Stat(os.DevNull, &null) != nil || file.Mode&unix.S_IFMT != unix.S_IFCHR || file.Rdev != null.Rdev {
		return false
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return err == nil && flags&unix.O_ACCMODE == unix.O_RDWR
}

// sameFile tells whether two descriptors share one opening of /dev/null: both then have the flags
// that one gets. To /dev/null, O_APPEND means nothing.
func sameFile(a, b int) bool {
	if !opensNull(b) {
		return false
	}
	flags, err := unix.FcntlInt(uintptr(a), unix.F_GETFL, 0)
	if err != nil {
		return false
	}
	if _, err := unix.FcntlInt(uintptr(a), unix.F_SETFL, flags^unix.O_APPEND); err != nil {
		return false
	}
	defer func() { _, _ = unix.FcntlInt(uintptr(a), unix.F_SETFL, flags) }()
	other, err := unix.FcntlInt(uintptr(b), unix.F_GETFL, 0)
	return err == nil && (other^flags)&unix.O_APPEND != 0
}
