package browsertest

import (
	"fmt"
	"testing"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/testenv"
)

// looks are the screens on which the pages are looked at.
var looks = []struct {
	width int
	dark  bool
}{{1400, false}, {360, true}, {1400, true}, {360, false}}

func TestWalk(t *testing.T) {
	testenv.In(t, testenv.All)
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, q := serve(t, open(t))
			fill(t, q)
			browser := newBrowser(t)
			for _, look := range looks {
				t.Run(fmt.Sprintf("%dpx-dark=%v", look.width, look.dark), func(t *testing.T) {
					look := newTab(t, browser, base, look.width, look.dark)
					walkPages(look, q)
				})
			}
			b := newTab(t, browser, base, 1400, false)
			if q.Supports(delayq.Peeking) {
				changeEverything(b, q)
			} else {
				changeDeadLetters(b)
			}
		})
	}
}

// walkPages looks at every page.
func walkPages(b *tab, q delayq.Queue) {
	b.open("/", "Queues", "orders", "mail", "live")
	b.open("/queues/orders", "orders", "In flight", "live")
	b.open("/queues/orders/dead", "Dead letters", "mail server is down", "mail-1000")
	b.open("/queues/orders/dead?type=mail&reason=unknown", "4 of 12 messages looked at match")
	b.open("/queues/orders/push", "Push a message")
	b.open("/queues/orders/purge", "Purge the queue")
	if !q.Supports(delayq.Peeking) {
		b.open("/queues/orders/messages", "This store does not support peeking")
		b.open("/queues/orders", "This store cannot count messages that are scheduled; list messages that wait")
		b.disabled(`form[action$="/pause"] button`)
		b.open("/queues/orders/purge", "Purge: this store does not support purging")
		b.disabled(`main form button`)
		b.open("/queues/orders/dead")
		b.press("details summary")
		b.see(`"order": 1000`)
		return
	}
	b.open("/queues/orders/messages", "order-17000", "scheduled", "Next page")
	b.open("/queues/orders/messages?state=scheduled&type=webhook", "messages looked at match")
	b.open("/queues/orders/messages/order-17005", "scheduled", "tenant", `"currency": "EUR"`)
	b.open("/queues/orders/messages/order-17005?as=hex", "7b 22 6f 72")
	b.open("/queues/orders/messages/binary", "00 ff 10 20")
	b.open("/queues/orders/messages/in-flight", "A worker has this message")
	b.open("/queues/orders/messages/mail-1002", "dead", `\u202e<script>`)
	b.open("/queues/orders/messages?type="+escaped(hostile), "1 of 62 messages looked at match")
	b.follow("tbody th a") // the page of messages shows the same id
	b.see(`\u202e<script>window.hacked`)
	b.check("the hostile message")
	if value[bool](b, `window.hacked !== undefined`) {
		b.t.Error("a script of a message has run")
	}
}

// changeEverything makes every change that there is.
func changeEverything(b *tab, q delayq.Queue) {
	b.open("/queues/orders/push")
	b.typeIn("#body", `{"hello": "world"}`)
	b.typeIn("#after", "1h")
	b.typeIn("#pid", "pushed/..")
	b.typeIn("#headers", "lang: en")
	b.press("main form button")
	b.see("Pushed pushed/..", "scheduled", "lang")
	b.typeIn(`input[name="after"]`, "3h")
	b.press(`button[value="reschedule"]`)
	b.see("Reschedule to 3 h from now: 1 done.")
	b.check("a message that was changed")
	b.press(`button[value="now"]`)
	b.see("Run now: 1 done.", "ready")
	b.press(`button[value="cancel"]`) // and confirm
	b.see("Cancel: 1 done.", "Messages that wait")

	b.open("/queues/orders/messages")
	b.press("tbody tr:nth-child(3) input[type=checkbox]")
	b.press("tbody tr:nth-child(4) input[type=checkbox]")
	b.see("2 ticked")
	b.press(`.bar-acts button[value="now"]`)
	b.see("Run now: 2 done.")

	b.open("/queues/orders/messages?type=reminder")
	b.press(`.all button[value="cancel"]`)
	b.see("20 messages match, of 62 looked at", "Cancel 20 messages")
	b.check("a question")
	b.press(`button[value="begin"]`)
	b.see("20 of 20: 20 done", "Finished.")
	b.check("a job that has ended")

	b.open("/queues/orders/dead")
	b.press("[data-all]")
	b.see("12 ticked")
	b.press("[data-all]")
	b.press("tbody tr:nth-child(1) input[type=checkbox]")
	b.press(`.bar-acts button[value="delete"]`)
	b.see("Delete: 1 done.")
	b.open("/queues/orders/dead?reason=unknown")
	b.press(`.all button[value="redrive"]`)
	b.see("Redrive 4 messages")
	b.press(`button[value="begin"]`)
	b.see("4 of 4: 4 done")

	b.open("/queues/orders")
	push(b.t, q, "now")
	now, err := q.Stats(b.t.Context())
	must(b.t, err)
	b.see(fmt.Sprintf("waits for a worker %d", now.Ready)) // the open page, by itself
	b.typeIn("#for", "2h")
	b.press(`form[action$="/pause"] button`)
	b.see("Paused: no worker", "paused until")
	b.check("a paused queue")
	b.press(`form[action$="/resume"] button`)
	b.see("Resumed.")

	b.open("/queues/orders/purge")
	b.typeIn("#name", "orders")
	b.press("main form button")
	b.see("Purged:", "messages deleted")
	if s, err := q.Stats(b.t.Context()); err != nil || s.Scheduled+s.Ready+s.Dead != 0 {
		b.t.Errorf("a purge left %+v, %v", s, err)
	}
}

// changeDeadLetters makes the changes that RabbitMQ knows.
func changeDeadLetters(b *tab) {
	b.open("/queues/orders/push")
	b.typeIn("#body", "hello")
	b.typeIn("#after", "1h")
	b.press("main form button")
	b.see("Pushed")
	b.open("/queues/orders/dead?reason=unknown")
	b.press("tbody tr:nth-child(1) input[type=checkbox]")
	b.press(`.bar-acts button[value="delete"]`)
	b.see("Delete: 1 done.")
	b.open("/queues/orders/dead")
	b.press(`.all button[value="redrive"]`)
	b.see("Redrive 11 messages")
	b.press(`button[value="begin"]`)
	b.see("11 of 11: 11 done")
}
