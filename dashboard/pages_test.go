package dashboard_test

import (
	"html"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/dashboard"
	"github.com/delayq/delayq/internal/queuetest"
	"github.com/delayq/delayq/memory"
)

// fill puts messages of all states into a queue.
func fill(t *testing.T, q delayq.Queue) {
	t.Helper()
	push(t, q, "d1", `{"order":1}`, delayq.Type("mail"))
	push(t, q, "d2", "x")
	makeDead(t, q, 2, "mail server is down")
	push(t, q, "leased", "x")
	_, err := q.Receive(t.Context())
	mustDo(t, err)
	push(t, q, "ready", "plain text", delayq.Header("lang", "en"))
	for i := range 60 {
		push(t, q, "s"+strconv.Itoa(i), `{"n":`+strconv.Itoa(i)+`}`, delayq.After(time.Duration(i+1)*time.Minute), delayq.Type("tick"))
	}
}

func TestPagesShowTheQueue(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, q := openQueue(t)
		fill(t, q)
		time.Sleep(3 * time.Second) // virtual
		b.get("/", "orders", "60 1 1 2 3.0 s – – 3.0 s ago")
		b.get("/queues/orders", "Scheduled not due yet 60", "In flight a worker has it 1", "≤ 10m 9", "≤ 1h 50", "since now")
		b.get("/queues/orders/messages", "ready ready 3.0 s ago 0 plain text", "s48", "Next page")
		b.get("/queues/orders/messages?state=ready", "1 of 61 messages looked at match")
		b.get("/queues/orders/messages?within=5m&type=tick", "5 of 61 messages looked at match")
		b.get("/queues/orders/dead", "d1 mail 3.0 s ago 1 mail server is down", "d2")
		b.get("/queues/orders/dead?type=mail", "1 of 2 messages looked at match")
		b.get("/queues/orders/dead?reason=server&older=1s", "2 of 2 messages looked at match")
		b.get("/queues/orders/dead?older=1h", "0 of 2 messages looked at match", "No message matches")
		b.get("/queues/orders/messages/d1", "dead", "Reason mail server is down", `{ "order": 1 }`, "11 bytes")
		b.get("/queues/orders/messages/d1?as=hex", "7b 22 6f 72")
		b.get("/queues/orders/messages/leased", "in flight", "Lease until", "A worker has this message")
		b.get("/queues/orders/messages/ready", "lang en", "plain text")
		b.get("/queues/orders/push", "Push a message")
		b.get("/queues/orders/purge", "60 scheduled, 1 ready and 1 in flight messages, 2 dead letters")
		b.rejected(b.do("GET", "/queues/other", nil), http.StatusNotFound, "no such queue")
		b.rejected(b.do("GET", "/queues/orders/messages/other", nil), http.StatusNotFound, "no message of that id")
		b.rejected(b.do("GET", "/queues/orders/dead?older=yesterday", nil), http.StatusBadRequest, "older than: a duration")
		if r := b.do("GET", "/queues/orders/find?id=a%2F..%2Fb", nil); r.to != "/queues/orders/messages/~YS8uLi9i" {
			t.Errorf("an id is looked up at %q", r.to)
		}
	})
}

var linkIn = regexp.MustCompile(`(?:href|src|action|data-events|data-figures)="([^"]*)"`)

// Every link of every page leads to a page, under any prefix.
func TestLinksUnderPrefixes(t *testing.T) {
	for _, prefix := range []string{"", "/delayq", "/a/b"} {
		t.Run(prefix, func(t *testing.T) {
			queuetest.Bubble(t, func(t *testing.T) {
				m := memory.New()
				for _, name := range []string{"orders", "a:b.c_d-e"} {
					q, err := delayq.New(t.Context(), name, delayq.WithBackend(m), delayq.WithLogger(queuetest.Silent))
					mustDo(t, err)
					defer func() { mustDo(t, q.Close()) }()
					fill(t, q)
				}
				b := open(t, dashboard.Join(map[string]dashboard.Source{"shop": dashboard.Backend(m, []string{"orders"}, delayq.WithLogger(queuetest.Silent))}), anybody)
				b.handler, b.prefix = http.StripPrefix(prefix, b.handler), prefix
				crawl(t, b)
			})
		})
	}
}

func crawl(t *testing.T, b *browser) {
	t.Helper()
	seen := map[string]bool{"/": true}
	for todo := []string{"/"}; len(todo) > 0; todo = todo[1:] {
		at := todo[0]
		for _, m := range linkIn.FindAllStringSubmatch(b.get(at), -1) {
			to, _, _ := strings.Cut(b.resolve(at, html.UnescapeString(m[1])), "#")
			post := regexp.MustCompile(`/(act|jobs|pause|resume|find)$`).MatchString(to)
			if !seen[to] && !post && !strings.HasPrefix(to, "/events") && len(seen) < 400 {
				seen[to] = true
				todo = append(todo, to)
			}
		}
	}
	for _, want := range []string{"/queues/~c2hvcC9vcmRlcnM/messages/s7?as=hex", "/queues/~c2hvcC9hOmIuY19kLWU/dead"} {
		if !seen[want] {
			t.Errorf("no link leads to %s", want)
		}
	}
}

// The prefix without its slash leads to the page.
func TestPrefixWithoutSlash(t *testing.T) {
	t.Parallel()
	b, _ := openQueue(t)
	b.handler, b.prefix = http.StripPrefix("/tools/delayq", b.handler), "/tools/delayq"
	if r := b.do("GET", "?x=1", nil); r.status != http.StatusSeeOther || r.to != "/" {
		t.Errorf("got %d to %q", r.status, r.to)
	}
}

func TestFilterLooksAtBoundedPart(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, q := openQueue(t)
		ms := make([]delayq.Message, 6_000)
		for i := range ms {
			ms[i].Delay = time.Hour
		}
		_, err := q.PushBatch(t.Context(), ms)
		mustDo(t, err)
		page := b.get("/queues/orders/messages?type=none", "0 of 5,000 messages looked at match", "Look at more")
		next := regexp.MustCompile(`rel="next" href="([^"]*)"`).FindStringSubmatch(page)
		b.get(b.resolve("/queues/orders/messages", html.UnescapeString(next[1])), "0 of 1,000 messages looked at match", "First page")
	})
}

func TestManyQueuesComeInPages(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		q := queuetest.New(t)
		all := make(map[string]delayq.Queue)
		for i := range 120 {
			all["q"+strconv.Itoa(1000+i)] = q
		}
		b := open(t, dashboard.Queues(all), anybody)
		if page := b.get("/?page=2", "q1050", "q1099", "50 of 120 queues", "Previous", "Next"); strings.Contains(page, "q1100") {
			t.Error("the second page has queue 101")
		}
		b.get("/?find=Q1119", "q1119", "1 of 1 queues")
		b.get("/?page=99", "20 of 120 queues")
	})
}

func TestQueueWithoutMessages(t *testing.T) {
	queuetest.Bubble(t, func(t *testing.T) {
		b, _ := openQueue(t)
		b.get("/queues/orders/messages", "No message waits.")
		b.get("/queues/orders/dead", "There are no dead letters.")
		empty := open(t, dashboard.Queues(nil), anybody)
		empty.get("/", "There is no queue yet")
	})
}
