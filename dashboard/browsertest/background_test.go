package browsertest

import (
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/memory"
)

// background has a page count what it asks for, from its beginning on, lets a test hide the page, and
// holds replies back. Its streams are rejected, so that it polls.
const background = `
	window.hide = true; window.asked = 0; window.waits = 0; window.release = () => {};
	Object.defineProperty(document, "hidden", { get: () => window.hide });
	window.turn = (hide) => { window.hide = hide; document.dispatchEvent(new Event("visibilitychange")); };
	window.EventSource = class {
		static CLOSED = 2;
		readyState = 2;
		constructor() { window.asked++; setTimeout(() => this.onerror()); }
		close() {}
	};
	const ask = window.fetch, wait = window.setTimeout;
	window.fetch = async (...args) => {
		window.asked++;
		await new Promise((done) => window.release = done);
		return ask(...args);
	};
	window.setTimeout = (f, ms) => { if (ms >= 500) window.waits++; return wait(f, ms); };`

// A page in the background asks for nothing: neither from its beginning, nor when it is left while a
// reply is on its way.
func TestBackground(t *testing.T) {
	testenv.In(t, testenv.All)
	base, q := serve(t, memory.New())
	fill(t, q)
	b := newTab(t, newBrowser(t), base, 1400, false)
	b.call(send(b.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: background}))
	b.run(chromedp.Navigate(b.base + "/queues/orders"))
	b.see("In flight")
	if n := value[int](b, `window.asked`); n != 0 {
		t.Errorf("a page that was opened in the background has asked %d times", n)
	}
	const turned = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))`
	value[int](b, `window.turn(false); new Promise((done) => { const look = () => window.asked === 2 ? done(0) : requestAnimationFrame(look); look(); })`, chromedp.EvalAwaitPromise)
	value[int](b, `window.turn(true); window.release(); `+turned, chromedp.EvalAwaitPromise)
	if n := value[int](b, `window.waits`); n != 0 {
		t.Errorf("a page in the background asks again %d times", n)
	}
	value[int](b, `window.turn(false); 0`)
	value[int](b, `new Promise((done) => { const look = () => { window.release(); window.waits > 0 ? done(0) : requestAnimationFrame(look); }; look(); })`, chromedp.EvalAwaitPromise)
	b.see("live, every 5 s")
}
