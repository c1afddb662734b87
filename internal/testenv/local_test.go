package testenv

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

// TestRemoveBesideAWriter deletes a directory in which a program that the server left behind still writes.
func TestRemoveBesideAWriter(t *testing.T) {
	t.Parallel()
	for range 20 {
		l, err := newLocal("writer")
		must(t, err)
		begun := make(chan struct{})
		var writer sync.WaitGroup
		writer.Go(func() {
			for i := range 5000 {
				if i == 100 {
					close(begun)
				}
				if err := os.WriteFile(l.file(fmt.Sprint(i)), nil, 0o600); err != nil {
					return
				}
			}
		})
		<-begun
		must(t, l.remove())
		writer.Wait()
		if _, err := os.Stat(l.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("its directory is still there: %v", err)
		}
	}
}
