package memory

import (
	"encoding/binary"
	"math/bits"
)

// An arena keeps records in cells of byte pages, so that ten million pending messages
// are some thousands of objects to the garbage collector, none with a pointer in it.
// Cells of one page are of one size; sizes are an eighth of their power of two
// apart, which wastes 6 % on average. A page without a record is given back, unless
// the next record of its size would ask for it again.
type arena struct {
	pages   []*bytePage
	vacant  []uint32 // places in pages to use again
	classes map[uint32]*class
}

// A ref is where a record is.
type ref struct {
	page uint32
	cell uint16
}

type bytePage struct {
	buf   []byte
	class *class
	fresh uint32 // cells from here on were never used
	free  uint32 // first freed cell, or none; each names the next in its first 4 bytes
	live  uint32
	room  int // its place in class.room, or -1 when full
}

type class struct {
	size uint32   // of a cell
	next int      // cells of the next page
	room []uint32 // pages with a free cell
}

const (
	minCell     = maxPageSize >> cellBits
	firstCells  = 4        // of a class's first page, so that a small queue stays small
	maxPageSize = 64 << 10 // a larger record has a page of its own
)

func newArena() *arena { return &arena{classes: make(map[uint32]*class)} }

func cellSize(n int) uint32 {
	if n > maxPageSize {
		return uint32(n)
	}
	step := max(minCell, 1<<bits.Len(uint(n-1))>>4)
	return uint32((n + step - 1) / step * step)
}

// add returns a cell of at least n bytes, n > 0. Its content is arbitrary.
func (a *arena) add(n int) ref {
	c := a.class(cellSize(n))
	if len(c.room) == 0 {
		a.addPage(c)
	}
	page := c.room[len(c.room)-1]
	p := a.pages[page]
	cell := p.take()
	if p.full() {
		a.leaveRoom(p)
	}
	return ref{page, uint16(cell)}
}

// bytes returns the cell's bytes, the spare ones included.
func (a *arena) bytes(r ref) []byte {
	p := a.pages[r.page]
	size, cell := p.class.size, uint32(r.cell)
	return p.buf[cell*size : (cell+1)*size]
}

func (a *arena) remove(r ref) {
	p := a.pages[r.page]
	if p.full() {
		p.room = len(p.class.room)
		p.class.room = append(p.class.room, r.page)
	}
	p.give(uint32(r.cell))
	if p.live == 0 && (len(p.class.room) > 1 || p.class.size > maxPageSize) {
		a.removePage(r.page)
	}
}

func (a *arena) class(size uint32) *class {
	c := a.classes[size]
	if c == nil {
		c = &class{size: size, next: firstCells}
		a.classes[size] = c
	}
	return c
}

func (a *arena) addPage(c *class) {
	cells := max(1, min(c.next, maxPageSize/int(c.size)))
	c.next = cells * 2
	p := &bytePage{buf: make([]byte, cells*int(c.size)), class: c, free: none}
	c.room = append(c.room, a.enter(p))
}

// enter gives the page a place in pages.
func (a *arena) enter(p *bytePage) uint32 {
	if n := len(a.vacant); n > 0 {
		at := a.vacant[n-1]
		a.vacant = a.vacant[:n-1]
		a.pages[at] = p
		return at
	}
	a.pages = append(a.pages, p)
	return uint32(len(a.pages) - 1)
}

func (a *arena) removePage(page uint32) {
	p := a.pages[page]
	a.leaveRoom(p)
	a.pages[page] = nil
	a.vacant = append(a.vacant, page)
	if p.class.size > maxPageSize && len(p.class.room) == 0 {
		delete(a.classes, p.class.size)
	}
}

func (a *arena) leaveRoom(p *bytePage) {
	room := p.class.room
	last := len(room) - 1
	room[p.room] = room[last]
	a.pages[room[last]].room = p.room
	p.class.room = room[:last]
	p.room = -1
}

func (p *bytePage) cells() uint32 { return uint32(len(p.buf)) / p.class.size }
func (p *bytePage) full() bool    { return p.free == none && p.fresh == p.cells() }

func (p *bytePage) take() uint32 {
	p.live++
	if p.free == none {
		p.fresh++
		return p.fresh - 1
	}
	cell := p.free
	p.free = binary.LittleEndian.Uint32(p.buf[cell*p.class.size:])
	return cell
}

func (p *bytePage) give(cell uint32) {
	binary.LittleEndian.PutUint32(p.buf[cell*p.class.size:], p.free)
	p.free = cell
	p.live--
}
