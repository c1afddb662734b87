package browsertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/delayq/delayq/internal/testenv"
)

const (
	axeVersion = "4.14.1"
	patience   = 5 * time.Minute // for what must happen in the browser
)

// tab is one page of a browser, and what it complained of.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string
	axe  string
	wide int

	mu       sync.Mutex
	problems []string
}

// newBrowser starts a browser that ends with the test.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(testenv.Chromium(t)), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("force-color-profile", "srgb"), chromedp.WSURLReadTimeout(patience),
	)
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...) // the cleanup ends it, before its directory goes
	t.Cleanup(cancel)
	ctx, _ = chromedp.NewContext(ctx)
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) })
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("starting the browser: %v", err)
	}
	return ctx
}

// newTab opens a page of that width. Dialogs are confirmed.
func newTab(t *testing.T, browser context.Context, base string, width int, dark bool) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, base: base, axe: string(testenv.NodeFile(t, "axe-core", axeVersion, "axe.min.js")), wide: width}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("opening a tab: %v", err)
	}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.call(send(ctx, network.Enable, network.EnableParams{}), send(ctx, log.Enable, cdp.Empty{}), send(ctx, runtime.Enable, cdp.Empty{}), send(ctx, page.Enable, page.EnableParams{}),
		send(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: int64(width), Height: 900, DeviceScaleFactor: 1, Mobile: width < 500}),
		send(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}))
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, p := range b.problems {
			t.Errorf("the browser complains: %s", p)
		}
	})
	return b
}

func send[P, R any](ctx context.Context, cmd cdp.Command[P, R], params P) error {
	_, err := chromedp.Call(ctx, cmd, params)
	return err
}

func (b *tab) call(errs ...error) {
	b.t.Helper()
	if err := errors.Join(errs...); err != nil {
		b.t.Fatal(err)
	}
}

// listen keeps what a user would see in the console, and requests to other hosts.
func (b *tab) listen(event any) {
	var problem string
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text, _ := json.Marshal(e.ExceptionDetails)
		problem = string(text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			args, _ := json.Marshal(e.Args)
			problem = string(args)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			problem = e.Entry.Text + " " + e.Entry.URL
		}
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.base) && !strings.HasPrefix(e.Request.URL, "about:") && !strings.HasPrefix(e.Request.URL, "data:") /* the icons of inputs */ {
			problem = "a request to " + e.Request.URL
		}
	case *page.EventJavascriptDialogOpening:
		go func() {
			_ = send(b.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		}()
	}
	if problem != "" {
		b.mu.Lock()
		b.problems = append(b.problems, problem)
		b.mu.Unlock()
	}
}

func (b *tab) run(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("in the browser: %v; it shows %s", err, b.shown())
	}
}

// value is the result of a script.
func value[T any](b *tab, script string, opts ...chromedp.EvaluateOption) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, opts...))
	if err != nil {
		b.t.Fatalf("in the browser: %v; it shows %s", err, b.shown())
	}
	return v
}

func (b *tab) shown() string {
	ctx, cancel := context.WithTimeout(b.ctx, 10*time.Second)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`location.pathname + ": " + document.body.innerText`))
	return text
}

// open goes to a page and checks it.
func (b *tab) open(path string, wants ...string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.base + path))
	b.see(wants...)
	b.check(path)
}

// see waits until the page shows the texts.
func (b *tab) see(wants ...string) {
	b.t.Helper()
	for _, want := range wants {
		if !b.until(fmt.Sprintf(`document.body.innerText.replace(/\s+/g, " ").includes(%s)`, quoted(want))) {
			b.t.Fatalf("the page does not show %q: %s", want, b.shown())
		}
	}
}

// until waits until a page is loaded for which the condition is true, and reports whether one is.
func (b *tab) until(condition string) (met bool) {
	for end := time.Now().Add(patience); !met && time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		met, _ = chromedp.Run(ctx, chromedp.Evaluate[bool](`document.readyState === "complete" && `+condition)) // fails while the page is exchanged
		cancel()
		time.Sleep(20 * time.Millisecond) // the condition ends the wait
	}
	return met
}

// follow presses a link, and waits until its page has taken the place of this one.
func (b *tab) follow(selector string) {
	b.t.Helper()
	value[bool](b, "window.left = true")
	b.press(selector)
	if !b.until("window.left === undefined") {
		b.t.Fatalf("the link %s leads nowhere: %s", selector, b.shown())
	}
}

func quoted(text string) string {
	q, _ := json.Marshal(text)
	return string(q)
}

// violation is what axe found.
type violation struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// check looks for what users with a small screen or a screen reader stumble over.
func (b *tab) check(path string) {
	b.t.Helper()
	if wide := value[int](b, `document.documentElement.scrollWidth`); wide > b.wide {
		b.t.Errorf("%s is %d px wide on a screen of %d px", path, wide, b.wide)
	}
	value[int](b, b.axe+"; 0")
	found := value[[]violation](b, `axe.run().then((r) => r.violations.map((v) => ({ID: v.id, Impact: v.impact, Help: v.help,
		Nodes: v.nodes.map((n) => ({HTML: n.html, FailureSummary: n.failureSummary}))})))`, chromedp.EvalAwaitPromise)
	for _, v := range found {
		if v.Impact == "serious" || v.Impact == "critical" {
			b.t.Errorf("%s at %d px: axe finds %s: %s: %+v", path, b.wide, v.ID, v.Help, v.Nodes[0])
		}
	}
}

// press clicks a button or a link.
func (b *tab) press(selector string) {
	b.t.Helper()
	css := chromedp.CSS(selector)
	b.run(chromedp.WaitEnabled(css), chromedp.ScrollIntoView(css), chromedp.Click(css))
}

func (b *tab) typeIn(selector, text string) {
	b.t.Helper()
	b.run(chromedp.SetValue(chromedp.CSS(selector), text))
}

// disabled wants a button that is greyed out.
func (b *tab) disabled(selector string) {
	b.t.Helper()
	if !value[bool](b, fmt.Sprintf(`document.querySelector(%s)?.disabled === true`, quoted(selector))) {
		b.t.Errorf("%s is not greyed out: %s", selector, b.shown())
	}
}
