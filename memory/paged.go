package memory

const (
	pageBits = 10
	pageLen  = 1 << pageBits
)

// A paged array grows and shrinks a page at a time. Growth never copies it, so that no push waits
// for a copy, and unused pages are freed.
type paged[T any] struct {
	pages []*[pageLen]T
}

func (p *paged[T]) at(i uint32) *T { return &p.pages[i>>pageBits][i%pageLen] }

// grow makes indexes below n usable.
func (p *paged[T]) grow(n uint32) {
	for uint32(len(p.pages))<<pageBits < n {
		p.pages = append(p.pages, new([pageLen]T))
	}
}

// shrink frees pages that indexes below n do not need, all but one, so that a length that swings
// around a page's border does not allocate each time.
func (p *paged[T]) shrink(n uint32) {
	for keep := int(n+pageLen-1)>>pageBits + 1; len(p.pages) > keep; {
		p.pages[len(p.pages)-1] = nil
		p.pages = p.pages[:len(p.pages)-1]
	}
}
