package rabbitmq

import (
	"math/bits"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A delayer keeps messages for as long as they are to wait, and then passes them on to deliver.
type delayer interface {
	declare(ch *amqp.Channel, n names) error

	// route says where to publish what is to wait that long, in ms and more than 0. left is what of it has to
	// be waited for in a further round.
	route(n names, dest string, ms int64) (r route, left int64)

	// parts names what declare declares.
	parts(n names) (exchanges, queues []string)
}

// A route is where to publish and with what key and headers.
type route struct {
	exchange, key string
	headers       amqp.Table
	blind         bool // the exchange cannot tell whether it routed
}

// The parts of a hexadecimal delay. 16 digits a level is the knee: a smaller base needs more hops, a larger one more
// bindings to match.
const (
	digitBits = 4
	digits    = 1 << digitBits
	delayBits = 32 // 49.7 days in ms
)

// hexLevels keep any delay in 15 queues a digit: the queue for digit d of level k holds messages d·16^k grains. A message
// visits one queue for each digit that is not 0, from the highest to the lowest.
type hexLevels struct {
	grain   int64 // in ms
	classic bool
}

// levels is how many digits a delay of 32 bits of ms has in grains.
func (h hexLevels) levels() int {
	return (bits.Len64((1<<delayBits-1)/uint64(h.grain)) + digitBits - 1) / digitBits
}

// set tells levels of other grains and kinds apart by name.
func (h hexLevels) set() string {
	s := ""
	if h.grain > 1 {
		s = "g" + formatInt(h.grain) + "."
	}
	if h.classic {
		s += "classic."
	}
	return s
}

func (h hexLevels) longest() int64 { return (1<<(digitBits*h.levels()) - 1) * h.grain }

func (h hexLevels) route(n names, dest string, ms int64) (route, int64) {
	left := max(ms-h.longest(), 0)
	grains := (ms - left + h.grain - 1) / h.grain
	top, key := -1, make([]string, 0, h.levels()+1)
	for k := h.levels() - 1; k >= 0; k-- {
		digit := grains >> (digitBits * k) % digits
		if digit != 0 && top < 0 {
			top = k
		}
		key = append(key, formatHex(digit))
	}
	return route{exchange: n.level(h.set(), top), key: strings.Join(append(key, word(dest)), ".")}, left
}

func (h hexLevels) declare(ch *amqp.Channel, n names) error {
	top := h.levels() - 1
	for k := 0; k <= top; k++ {
		if err := h.declareLevel(ch, n, k, top); err != nil {
			return err
		}
	}
	return nil
}

// declareLevel declares the exchange and the queues of a digit. What they lead to is there already.
func (h hexLevels) declareLevel(ch *amqp.Channel, n names, k, top int) error {
	exchange, next := n.level(h.set(), k), n.deliver()
	if k > 0 {
		next = n.level(h.set(), k-1)
	}
	if err := declareExchange(ch, exchange, "topic", nil); err != nil {
		return err
	}
	before := strings.Repeat("*.", top-k)
	for d := 1; d < digits; d++ {
		queue := n.levelQueue(h.set(), k, d)
		wait := time.Duration(int64(d)<<(digitBits*k)*h.grain) * time.Millisecond
		if err := declareWaiting(ch, queue, wait, next, h.classic); err != nil {
			return err
		}
		if err := bind(ch, queue, before+formatHex(int64(d))+".#", exchange); err != nil {
			return err
		}
	}
	return bindExchange(ch, next, before+"0.#", exchange)
}

// immediate is the route of what is due.
func immediate(n names, dest string) route {
	return route{exchange: n.deliver(), key: word(dest)}
}
