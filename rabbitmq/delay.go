package rabbitmq

import (
	"math/bits"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// A delayer keeps messages for as long as they are to wait, and then passes them on to deliver.
type delayer interface {
	declare(ch *amqp.Channel, n names) error

	// route says where to publish what is to wait that long, in ms and more than 0. left is what of it has to
	// be waited for in a further round.
	route(n names, dest string, ms int64) (r route, left int64)

	// parts names what declare declares, or did in earlier versions.
	parts(n names) (exchanges, queues []string)

	// exchanges are those that messages pass.
	exchanges(n names) []exchange
}

// A route is where to publish and with what key and headers. All but the plugin's begin at the default exchange, which cannot be deleted: its
// keys are queues, and the broker returns what has none. A publish to another exchange that is gone would close the channel, with nothing known
// of what else is under way there.
type route struct {
	exchange, key string
	headers       amqp.Table
	blind         bool // the exchange cannot tell whether it routed
}

// delayBits is what the longest delay takes, 49.7 days in ms.
const delayBits = 32

// Each level keeps the digits of some bits of a delay. A hop is what costs most, a queue for each digit is what saves hops: the lowest levels, which
// nearly all messages pass, have more digits.
const (
	wideLevels = 2
	wideBits   = 6
	otherBits  = 4
)

// bitsBelow is how many bits of a delay the levels below level k keep.
func bitsBelow(k int) int {
	wide := min(k, wideLevels)
	return wide*wideBits + (k-wide)*otherBits
}

// digits is how many values the digit of level k has.
func digits(k int) int { return 1 << (bitsBelow(k+1) - bitsBelow(k)) }

func digitOf(grains int64, k int) int { return int(grains >> bitsBelow(k) % int64(digits(k))) }

// levels keep any delay in a queue for each value of a digit but 0. A message visits one queue for each of its digits that is not 0, from the highest to the
// lowest.
type levels struct {
	grain   int64 // in ms
	classic bool
}

// count is how many levels there are: enough for a delay of delayBits in grains.
func (l levels) count() int {
	n, need := 0, bits.Len64((1<<delayBits-1)/uint64(l.grain))
	for bitsBelow(n) < need {
		n++
	}
	return n
}

// set tells levels of other grains and kinds apart by name.
func (l levels) set() string {
	s := ""
	if l.grain > 1 {
		s = "g" + formatInt(l.grain) + "."
	}
	if l.classic {
		s += "classic."
	}
	return s
}

func (l levels) longest() int64 { return (1<<bitsBelow(l.count()) - 1) * l.grain }

// route is straight into the queue of the highest digit. The digits that follow, and the queue at the end, are further keys, which the
// broker takes from a header that it then removes: each is for the exchange of the digit before it alone.
func (l levels) route(n names, dest string, ms int64) (r route, left int64) {
	left = max(ms-l.longest(), 0)
	grains := (ms - left + l.grain - 1) / l.grain
	from := l.count() - 1
	for digitOf(grains, from) == 0 {
		from--
	}
	r.key = n.levelQueue(l.set(), from, digitOf(grains, from))
	var keys []any
	for k := from - 1; k >= 0; k-- {
		if d := digitOf(grains, k); d != 0 {
			keys = append(keys, hop(from, k, d))
			from = k
		}
	}
	r.headers = amqp.Table{moreKeys: append(keys, keyOf(dest))}
	return r, left
}

// moreKeys is the header for keys beside the one that a message is published with. They stay with it from queue to queue.
const moreKeys = "BCC"

// hop is the key by which what has waited for a digit of level from gets to the queue of digit d of level k. It is no queue's key.
func hop(from, k, d int) string {
	return string(strconv.AppendInt(append([]byte(reserved), '0'+byte(from), '>', '0'+byte(k)), int64(d), 16))
}

func (l levels) declare(ch *amqp.Channel, n names) error {
	for k := range l.count() {
		if err := l.declareLevel(ch, n, k); err != nil {
			return err
		}
	}
	return nil
}

// declareLevel declares the queues of a level, and the exchange that they lead to, which has a binding for each digit of a lower
// level. What has no lower digit goes to deliver, and so does what has lost its queue: it comes early then, and waits once more.
func (l levels) declareLevel(ch *amqp.Channel, n names, k int) error {
	next := n.deliver()
	if k > 0 {
		next = n.level(l.set(), k)
		if err := declareExchange(ch, next, "direct", amqp.Table{"alternate-exchange": n.deliver()}); err != nil {
			return err
		}
	}
	for d := 1; d < digits(k); d++ {
		wait := time.Duration(int64(d)<<bitsBelow(k)*l.grain) * time.Millisecond
		if err := declareWaiting(ch, n.levelQueue(l.set(), k, d), wait, next, l.classic); err != nil {
			return err
		}
	}
	return l.bindLower(ch, n, k, next)
}

// bindLower binds the queues of all lower levels. The broker answers the last binding alone: there are hundreds, each time that a
// connection is made.
func (l levels) bindLower(ch *amqp.Channel, n names, k int, exchange string) error {
	for lower := range k {
		for d := 1; d < digits(lower); d++ {
			last := lower == k-1 && d == digits(lower)-1
			queue := n.levelQueue(l.set(), lower, d)
			if err := ch.QueueBind(queue, hop(k, lower, d), exchange, !last, nil); err != nil {
				return explain("binding queue "+queue+" to exchange "+exchange, err)
			}
		}
	}
	return nil
}

// immediate is the route of what is due: the broker returns it if its queue is not there.
func immediate(n names, dest string) route { return route{key: n.queue(dest)} }
