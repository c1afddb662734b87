package memory

import (
	"testing"

	"pgregory.net/rapid"
)

// Values below the length survive any growth and shrinking, and at most one page too many is kept.
func TestPagedKeepsWhatIsInUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p paged[uint32]
		var n uint32
		for range 20 {
			next := rapid.Uint32Range(0, 5*pageLen).Draw(t, "length")
			p.grow(next)
			p.shrink(next)
			for i := range min(n, next) {
				if *p.at(i) != i {
					t.Fatalf("at %d of %d: %d", i, next, *p.at(i))
				}
			}
			for i := range next {
				*p.at(i) = i
			}
			if need := int(next+pageLen-1) / pageLen; len(p.pages) > need+1 || len(p.pages) < need {
				t.Fatalf("%d pages for %d", len(p.pages), next)
			}
			n = next
		}
	})
}

func TestPagedKeepsOneSparePage(t *testing.T) {
	var p paged[uint32]
	p.grow(3 * pageLen)
	p.shrink(pageLen)
	if len(p.pages) != 2 {
		t.Errorf("%d pages", len(p.pages))
	}
}
