package browsertest

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/memory"
)

// Enter in a field presses the first button of its form. The buttons that are seen work after it.
func TestEnterInFieldChangesNothing(t *testing.T) {
	testenv.In(t, testenv.All)
	base, q := serve(t, memory.New())
	fill(t, q)
	before, err := q.Stats(t.Context())
	must(t, err)
	b := newTab(t, newBrowser(t), base, 1400, false)
	const box = `tbody input[name="id"]`
	for _, c := range []struct{ path, tick, field, text string }{
		{"/queues/orders/messages/order-17059", "", `[name="after"]`, "3h"},
		{"/queues/orders/messages/order-17059", "", `[name="at"]`, "2030-01-31T18:00"},
		{"/queues/orders/messages", box, `.bar-acts [name="after"]`, "3h"},
		{"/queues/orders/messages", box, box, ""},
		{"/queues/orders/messages", "", `.all [name="after"]`, "3h"},
		{"/queues/orders/dead", box, box, ""},
		{"/queues/orders/dead", box, "[data-all]", ""},
	} {
		b.open(c.path)
		if c.tick != "" {
			b.press(c.tick)
		}
		if c.text != "" {
			b.typeIn(c.field, c.text)
		}
		value[bool](b, "window.stays = true")
		b.run(chromedp.Focus(chromedp.CSS(c.field)), chromedp.KeyEvent(kb.Enter), chromedp.Sleep(300*time.Millisecond))
		if !value[bool](b, `window.stays === true && location.href.endsWith(`+quoted(c.path)+`)`) {
			t.Errorf("Enter in %s of %s leads away: %s", c.field, c.path, b.shown())
		}
	}
	after, err := q.Stats(t.Context())
	must(t, err)
	if after.Scheduled != before.Scheduled || after.Ready != before.Ready || after.Dead != before.Dead {
		t.Errorf("the queue has %+v; want %+v", after, before)
	}
	m, err := q.Get(t.Context(), "order-17059")
	must(t, err)
	if m.State != delayq.StateScheduled {
		t.Errorf("the message is %v", m.State)
	}
	b.open("/queues/orders/messages/order-17059")
	b.typeIn(`[name="after"]`, "3h")
	b.run(chromedp.Focus(chromedp.CSS(`[name="after"]`)), chromedp.KeyEvent(kb.Enter))
	b.press(`button[value="reschedule"]`)
	b.see("Reschedule to 3 h from now: 1 done.")
}
