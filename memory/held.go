package memory

const (
	heldBits  = 4
	heldLen   = 1 << heldBits
	heldSpare = 128 // pages, of 264 bytes
)

// A heldKeys keeps the key in due that each message in flight had, by slot. It keeps them in small
// pages, of which those without a message are given back.
type heldKeys struct {
	pages []*heldPage
	spare []*heldPage // without a message, so that one batch after another makes no new pages
}

type heldPage struct {
	keys [heldLen]key
	n    int
}

func (h *heldKeys) at(slot uint32) key { return h.pages[slot>>heldBits].keys[slot%heldLen] }

// add enters the key of a slot that has none.
func (h *heldKeys) add(slot uint32, k key) {
	i := int(slot >> heldBits)
	for len(h.pages) <= i {
		h.pages = append(h.pages, nil)
	}
	if h.pages[i] == nil {
		h.pages[i] = h.page()
	}
	p := h.pages[i]
	p.keys[slot%heldLen] = k
	p.n++
}

// set changes the key of a slot that has one.
func (h *heldKeys) set(slot uint32, k key) { h.pages[slot>>heldBits].keys[slot%heldLen] = k }

func (h *heldKeys) page() *heldPage {
	last := len(h.spare) - 1
	if last < 0 {
		return new(heldPage)
	}
	p := h.spare[last]
	h.spare = h.spare[:last]
	return p
}

func (h *heldKeys) remove(slot uint32) {
	i := slot >> heldBits
	p := h.pages[i]
	p.n--
	if p.n > 0 {
		return
	}
	h.pages[i] = nil
	if len(h.spare) < heldSpare {
		h.spare = append(h.spare, p)
	}
}

// shrink gives back a long list of pages, and the spare ones. It is for a store without messages:
// while many wait, the next message in flight would need the list again.
func (h *heldKeys) shrink() {
	if len(h.pages) > pageLen {
		h.pages, h.spare = nil, nil
	}
}
