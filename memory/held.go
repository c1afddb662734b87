package memory

const (
	heldBits = 5
	heldLen  = 1 << heldBits
)

// A heldKeys keeps the key in due that each message in flight had, by slot. It keeps them in small
// pages, of which those without a message are given back.
type heldKeys struct {
	pages []*heldPage
	n     int
	spare *heldPage // without a message, so that one message after another needs no new page each
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
		h.pages[i], h.spare = h.spare, nil
		if h.pages[i] == nil {
			h.pages[i] = new(heldPage)
		}
	}
	p := h.pages[i]
	p.keys[slot%heldLen] = k
	p.n++
	h.n++
}

func (h *heldKeys) remove(slot uint32) {
	i := slot >> heldBits
	p := h.pages[i]
	p.n--
	h.n--
	if p.n == 0 {
		h.pages[i], h.spare = nil, p
	}
	if h.n == 0 && len(h.pages) > pageLen {
		h.pages = nil
	}
}
