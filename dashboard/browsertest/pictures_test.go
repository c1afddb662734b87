package browsertest

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/memory"
)

var update = flag.Bool("update", false, "take the pictures of docs/dashboard.md anew")

const pictures = "../../docs/dashboard"

// shots are the pictures of the documentation.
var shots = []struct {
	name, path    string
	width, height int64
	dark          bool
}{
	{"queues", "/", 1000, 300, false},
	{"queue", "/queues/orders", 1000, 640, false},
	{"dead", "/queues/orders/dead", 1000, 520, false},
	{"message", "/queues/orders/messages/order-17005", 1000, 540, true},
	{"phone", "/queues/orders", 360, 720, true},
}

// The documentation has pictures of real pages.
func TestPictures(t *testing.T) {
	testenv.In(t, testenv.All)
	if !*update {
		for _, s := range shots {
			if _, err := os.Stat(filepath.Join(pictures, s.name+".png")); err != nil {
				t.Errorf("%v: run this test with -update", err)
			}
		}
		return
	}
	m := memory.New()
	base, q := serve(t, m)
	fillForPictures(t, q)
	mail, invoices := openNamed(t, m, "mail"), openNamed(t, m, "invoices")
	for i := range 340 {
		push(t, mail, "{}", delayq.After(time.Duration(i+2)*time.Minute))
	}
	push(t, invoices, "{}", delayq.After(time.Hour))
	must(t, invoices.PauseAll(t.Context(), delayq.PauseFor(3*time.Hour)))
	browser := newBrowser(t)
	watching := newTab(t, browser, base, 1000, false)
	watching.open("/queues/orders")
	for i := range 20 { // so that the charts have something to show
		for range 1 + i*3%7 {
			push(t, q, "{}", delayq.Type("reminder"))
		}
		time.Sleep(2 * time.Second) // as often as the dashboard counts
		ds, err := q.ReceiveBatch(t.Context(), 1+i*5%8)
		must(t, err)
		must(t, q.AckBatch(t.Context(), ds))
	}
	for _, s := range shots {
		b := newTab(t, browser, base, int(s.width), s.dark)
		b.open(s.path)
		b.run(chromedp.EmulateViewport(s.width, s.height), chromedp.Sleep(time.Second)) // for the first event
		png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		must(t, err)
		must(t, os.MkdirAll(pictures, 0o755))
		must(t, os.WriteFile(filepath.Join(pictures, s.name+".png"), png, 0o644))
	}
}

func fillForPictures(t *testing.T, q delayq.Queue) {
	t.Helper()
	reasons := []string{"mail server is down", "address unknown", "timeout after 30s"}
	for i := range 9 {
		push(t, q, `{"to":"ann@example.org","order":`+strconv.Itoa(1000+i)+`}`, delayq.ID("mail-"+strconv.Itoa(1000+i)), delayq.Type("mail"))
		d, err := q.Receive(t.Context())
		must(t, err)
		must(t, d.DeadLetter(t.Context(), reasons[i%len(reasons)]))
	}
	types := []string{"order-timeout", "reminder", "webhook"}
	for i := range 400 {
		body := `{"order":` + strconv.Itoa(17000+i) + `,"total":` + strconv.Itoa(7*i%90) + `.5,"currency":"EUR"}`
		push(t, q, body, delayq.ID("order-"+strconv.Itoa(17000+i)), delayq.Type(types[i%3]), delayq.Header("tenant", "shop-"+strconv.Itoa(i%4)),
			delayq.After(time.Duration(i*i*3)*time.Second+5*time.Minute))
	}
}
