package browsertest

import (
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/memory"
)

// All can be done without a mouse.
func TestKeyboard(t *testing.T) {
	testenv.In(t, testenv.All)
	base, q := serve(t, memory.New())
	fill(t, q)
	b := newTab(t, newBrowser(t), base, 1400, false)
	b.open("/queues/orders/dead")
	b.run(chromedp.KeyEvent(kb.Tab))
	if focused := value[string](b, `document.activeElement.className`); focused != "skip" {
		t.Errorf("the first Tab goes to %q", focused)
	}
	b.run(chromedp.KeyEvent(kb.Enter))
	for range 12 { // the form, the filter, the buttons
		b.run(chromedp.KeyEvent(kb.Tab))
		if value[bool](b, `document.activeElement.matches("tbody input[name=id]")`) {
			break
		}
	}
	b.run(chromedp.KeyEvent(" "))
	if !value[bool](b, `document.activeElement.checked === true`) {
		t.Errorf("the keyboard reaches no message: %s", b.shown())
	}
	b.see("1 ticked")
	b.run(chromedp.Focus(chromedp.CSS(`.bar-acts button[value="redrive"]`)), chromedp.KeyEvent(kb.Enter))
	b.see("Redrive: 1 done.")
}
