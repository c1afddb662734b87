package rabbitmq

import (
	"math/bits"
	"strconv"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// delayBits are the bits of the longest delay, 49.7 days in ms.
const delayBits = 32

// A level is for one digit of a delay. Hops cost most, and wide digits save hops but need more
// queues. So the lowest levels, which nearly all messages pass, have wider digits.
const (
	wideLevels = 2
	wideBits   = 6
	otherBits  = 4
)

// bitsBelow returns how many bits of a delay the levels below level k cover.
func bitsBelow(k int) int {
	wide := min(k, wideLevels)
	return wide*wideBits + (k-wide)*otherBits
}

// digits returns how many values the digit of level k has.
func digits(k int) int { return 1 << (bitsBelow(k+1) - bitsBelow(k)) }

func digitOf(grains int64, k int) int { return int(grains >> bitsBelow(k) % int64(digits(k))) }

// levels cover any delay. Each value of a digit but 0 has a queue. A message passes one queue for
// each of its digits that is not 0, from the highest to the lowest.
type levels struct {
	grain   int64 // in ms
	classic bool
}

// count returns how many levels cover a delay of delayBits in grains.
func (l levels) count() int {
	n, need := 0, bits.Len64((1<<delayBits-1)/uint64(l.grain))
	for bitsBelow(n) < need {
		n++
	}
	return n
}

// set returns the part of names that tells apart levels of other grains and queue types.
func (l levels) set() string {
	s := ""
	if l.grain > 1 {
		s = "g" + strconv.FormatInt(l.grain, 10) + "."
	}
	if l.classic {
		s += "classic."
	}
	return s
}

// route leads straight into the queue of the highest digit. The lower digits, and the queue at the
// end, are further keys in a header that the broker reads and removes. Each key matches only at the
// exchange of the digit before it. A delay of one digit goes through the fanout exchange of that
// digit instead, so that its queue at the end is the only key. RabbitMQ 3.10 looks one key up, but
// compares several keys with all bindings of an exchange.
func (l levels) route(n names, dest string, ms int64) (r route) {
	longest := (1<<bitsBelow(l.count()) - 1) * l.grain
	grains := (min(ms, longest) + l.grain - 1) / l.grain
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
	if len(keys) == 0 {
		return route{exchange: r.key, key: keyOf(dest), fanout: true}
	}
	r.headers = amqp.Table{moreKeys: append(keys, keyOf(dest))}
	return r
}

// moreKeys is the header for further routing keys. The broker keeps them from queue to queue.
const moreKeys = "BCC"

// hop returns the routing key that leads a message from a queue of level from to the queue of digit
// d of level k. No user's queue has such a key.
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

// declareLevel declares the queues of a level, each with a fanout exchange of its name, and the
// exchange that they lead to. That exchange has a binding for each digit of each lower level. A
// message without a lower digit goes to deliver. So does a message whose next queue was deleted: it
// arrives early, and the handle publishes it again for the rest of its delay.
func (l levels) declareLevel(ch *amqp.Channel, n names, k int) error {
	next := n.deliver()
	if k > 0 {
		next = n.level(l.set(), k)
		if err := declareExchange(ch, next, "direct", amqp.Table{"alternate-exchange": n.deliver()}); err != nil {
			return err
		}
	}
	// Only the last binding asks for a reply: each new connection makes hundreds of them.
	for d := 1; d < digits(k); d++ {
		wait := time.Duration(int64(d)<<bitsBelow(k)*l.grain) * time.Millisecond
		name := n.levelQueue(l.set(), k, d)
		if err := declareWaiting(ch, name, wait, next, l.classic); err != nil {
			return err
		}
		if err := declareFanout(ch, name); err != nil {
			return err
		}
		if err := ch.QueueBind(name, "", name, d < digits(k)-1, nil); err != nil {
			return explain("binding queue "+name+" to its exchange", err)
		}
	}
	for lower := range k {
		for d := 1; d < digits(lower); d++ {
			last := lower == k-1 && d == digits(lower)-1
			queue := n.levelQueue(l.set(), lower, d)
			if err := ch.QueueBind(queue, hop(k, lower, d), next, !last, nil); err != nil {
				return explain("binding queue "+queue+" to exchange "+next, err)
			}
		}
	}
	return nil
}

func (l levels) parts(n names) (exchanges, queues []string) {
	for k := range l.count() {
		exchanges = append(exchanges, n.level(l.set(), k))
		for d := 1; d < digits(k); d++ {
			queues = append(queues, n.levelQueue(l.set(), k, d))
		}
	}
	return append(exchanges, queues...), queues
}

func (l levels) exchanges(n names) (xs []exchange) {
	for k := 1; k < l.count(); k++ {
		xs = append(xs, exchange{n.level(l.set(), k), "direct"})
	}
	return xs
}
