package memory

import (
	"testing"
)

func TestPagedKeepsOneSparePage(t *testing.T) {
	var p paged[uint32]
	p.grow(3 * pageLen)
	p.shrink(pageLen)
	if len(p.pages) != 2 {
		t.Errorf("%d pages", len(p.pages))
	}
}
