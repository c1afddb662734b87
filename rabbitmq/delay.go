package rabbitmq

import (
	"math/bits"
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

// route is by the exchange of the queue of the highest digit. The digits that follow are further keys, which the broker takes
// from a header that it then removes: each is for the exchange of the digit before it alone.
func (h hexLevels) route(n names, dest string, ms int64) (r route, left int64) {
	left = max(ms-h.longest(), 0)
	grains := (ms - left + h.grain - 1) / h.grain
	r.key = keyOf(dest)
	from := (bits.Len64(uint64(grains)) - 1) / digitBits
	r.exchange = n.levelQueue(h.set(), from, digitOf(grains, from))
	var keys []any
	for k := from - 1; k >= 0; k-- {
		if d := digitOf(grains, k); d != 0 {
			keys = append(keys, hop(from, k, d))
			from = k
		}
	}
	if len(keys) > 0 {
		r.headers = amqp.Table{moreKeys: keys}
	}
	return r, left
}

// moreKeys is the header for keys beside the one that a message is published with. They stay with it from queue to queue.
const moreKeys = "BCC"

func digitOf(grains int64, k int) int { return int(grains >> (digitBits * k) % digits) }

// hop is the key by which what has waited for a digit of level from gets to the queue of digit d of level k. It is no queue's key.
func hop(from, k, d int) string {
	const hex = "0123456789abcdef"
	return string([]byte{hex[from], '>', hex[k], hex[d]})
}

func (h hexLevels) declare(ch *amqp.Channel, n names) error {
	for k := range h.levels() {
		if err := h.declareLevel(ch, n, k); err != nil {
			return err
		}
	}
	return nil
}

// declareLevel declares the queues of a level, and the exchange that they lead to, which has a binding for each digit of a lower
// level. What has no lower digit goes to deliver, and so does what has lost its queue: it comes early then, and waits once more.
func (h hexLevels) declareLevel(ch *amqp.Channel, n names, k int) error {
	next := n.deliver()
	if k > 0 {
		next = n.level(h.set(), k)
		if err := declareExchange(ch, next, "direct", amqp.Table{"alternate-exchange": n.deliver()}); err != nil {
			return err
		}
	}
	for d := 1; d < digits; d++ {
		if err := h.declareDigit(ch, n, k, d, next); err != nil {
			return err
		}
	}
	return h.bindLower(ch, n, k, next)
}

// bindLower binds the queues of all lower levels. The broker answers the last binding alone: there are hundreds, each time that a
// connection is made.
func (h hexLevels) bindLower(ch *amqp.Channel, n names, k int, exchange string) error {
	for lower := range k {
		for d := 1; d < digits; d++ {
			last := lower == k-1 && d == digits-1
			queue := n.levelQueue(h.set(), lower, d)
			if err := ch.QueueBind(queue, hop(k, lower, d), exchange, !last, nil); err != nil {
				return explain("binding queue "+queue+" to exchange "+exchange, err)
			}
		}
	}
	return nil
}

// declareDigit declares the queue of a digit, and an exchange by which it is reached whatever other keys a message has.
func (h hexLevels) declareDigit(ch *amqp.Channel, n names, k, d int, next string) error {
	wait := time.Duration(int64(d)<<(digitBits*k)*h.grain) * time.Millisecond
	return declareEntered(ch, n.levelQueue(h.set(), k, d), wait, next, h.classic)
}

// immediate is the route of what is due.
func immediate(n names, dest string) route {
	return route{exchange: n.deliver(), key: keyOf(dest)}
}
