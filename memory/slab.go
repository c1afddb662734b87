package memory

// A slab holds the nodes of all messages of a queue, each at a slot that stays its
// own while the message lives. It has no pointer for the garbage collector.
type slab struct {
	nodes paged[node]
	pos   paged[uint32] // of each slot, in the heap or the list of its state
	used  uint32        // slots given out ever; the free ones among them are chained
	free  uint32        // first free slot, or none
	live  uint32
}

const none = ^uint32(0)

type node struct {
	place    uint64 // of the record: its page and cell. The top bits are the id's hash
	next     uint32 // in its bucket of the id index, or in the chain of free slots
	attempts uint32 // the two top bits are the state
}

// A page has up to 64 KiB, so 24 bits are enough for a terabyte. The index reads the hash here and
// not from the record, which would be a cache miss.
const (
	cellBits  = 13
	hashShift = cellBits + 24
	placeMask = 1<<hashShift - 1
)

func (n *node) rec() ref {
	return ref{uint32(n.place & placeMask >> cellBits), uint16(n.place & (1<<cellBits - 1))}
}

func (n *node) setRec(r ref) {
	n.place = n.place&^placeMask | uint64(r.page)<<cellBits | uint64(r.cell)
}

func (n *node) hash() uint32     { return uint32(n.place >> hashShift) }
func (n *node) setHash(h uint32) { n.place = n.place&placeMask | uint64(h)<<hashShift }

type state uint32

const (
	scheduled state = iota
	leased
	dead
)

const (
	stateShift  = 30
	maxAttempts = 1<<stateShift - 1
)

func (n *node) state() state  { return state(n.attempts >> stateShift) }
func (n *node) attempt() int  { return int(n.attempts & maxAttempts) }
func (n *node) enter(s state) { n.attempts = uint32(s)<<stateShift | n.attempts&maxAttempts }

// replaced reports whether a message in flight was replaced since its hand-out, which counted an
// attempt. Its record and its key in held are those of the new message.
func (n *node) replaced() bool { return n.state() == leased && n.attempt() == 0 }

func (n *node) setAttempt(a int) {
	n.attempts = n.attempts&^maxAttempts | uint32(min(max(a, 0), maxAttempts))
}

func newSlab() *slab { return &slab{free: none} }

func (s *slab) at(slot uint32) *node { return s.nodes.at(slot) }

func (s *slab) add(rec ref) uint32 {
	slot := s.free
	if slot == none {
		slot = s.used
		s.used++
		s.nodes.grow(s.used)
		s.pos.grow(s.used)
	} else {
		s.free = s.at(slot).next
	}
	n := s.at(slot)
	*n = node{}
	n.setRec(rec)
	s.live++
	return slot
}

// remove frees the slot. An empty slab gives its memory back.
func (s *slab) remove(slot uint32) {
	s.at(slot).next = s.free
	s.free = slot
	s.live--
	if s.live == 0 {
		s.used, s.free = 0, none
		s.nodes.shrink(0)
		s.pos.shrink(0)
	}
}
