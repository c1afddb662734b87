package rabbitmq

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/delayq/delayq/backend"
)

// Management sets the address of the broker's management API, HOST:PORT, where the policies of
// queues can be read with the URL's user and password. At each Open and every 30 s a backend with
// this option checks the policies of its open queues. It warns of a policy that has a queue refuse
// messages, since that stops delayed messages of all queues. [Backend.Examine] reads policies
// without it too, from the URL's host at port 15672, or for amqps:// at port 15671 with TLS. With
// this option Stats counts the messages in flight.
func Management(addr string) Option {
	return func(o *options) {
		if u, err := url.Parse("http://" + addr); err != nil || u.Host != addr || u.Port() == "" || u.Hostname() == "" {
			o.reject(backend.Invalid("rabbitmq.Management", addr, "HOST:PORT"))
		}
		o.management = addr
	}
}

const managementWithin = 5 * time.Second

// A queueInfo is the management API's description of a queue.
type queueInfo struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Policy    json.RawMessage `json:"effective_policy_definition"` // an empty one may be a list
	Ready     float64         `json:"messages_ready"`
	Bytes     float64         `json:"message_bytes_ready"`
}

// A policy is the effective definition of a queue's policies.
type policy map[string]any

func (q *queueInfo) policy() policy { return object(q.Policy) }

// refuses reports whether a queue refuses messages when it is full. A queue without a bound is
// never full.
func (p policy) refuses() bool {
	overflow, _ := p["overflow"].(string)
	_, length := p["max-length"]
	_, bytes := p["max-length-bytes"]
	return strings.HasPrefix(overflow, "reject-publish") && (length || bytes)
}

// full reports whether the queue refuses more messages now.
func (q *queueInfo) full() bool {
	p := q.policy()
	reaches := func(key string, n float64) bool {
		limit, ok := p[key].(float64)
		return ok && n >= limit
	}
	return p.refuses() && (reaches("max-length", q.Ready) || reaches("max-length-bytes", q.Bytes))
}

// object reads an object. The API writes an empty one as a list.
func object(text json.RawMessage) map[string]any {
	var m map[string]any
	_ = json.Unmarshal(text, &m)
	return m
}

// queueInfos reads the queues of the virtual host from the management API.
func (b *Backend) queueInfos(ctx context.Context) (all []queueInfo, err error) {
	err = b.askManagement(ctx, "", "name,arguments,effective_policy_definition,messages_ready,message_bytes_ready", &all)
	return all, err
}

// unacked counts the messages of a queue that the broker has sent and that are not acknowledged, as
// the management API saw them some seconds ago. It returns backend.Unknown without that API.
func (b *Backend) unacked(ctx context.Context, queue string) int64 {
	if b.management == "" {
		return backend.Unknown
	}
	ctx, cancel := context.WithTimeout(ctx, countWithin)
	defer cancel()
	info := struct {
		Unacked *int64 `json:"messages_unacknowledged"`
	}{}
	err := b.askManagement(ctx, queue, "messages_unacknowledged", &info)
	if err != nil || info.Unacked == nil { // it is not there for a queue that was just declared
		return backend.Unknown
	}
	return *info.Unacked
}

// askManagement reads columns of a queue from the management API, or of all queues of the virtual
// host.
func (b *Backend) askManagement(ctx context.Context, queue, columns string, into any) error {
	uri, err := amqp.ParseURI(b.url)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, managementWithin)
	defer cancel()
	scheme, port := "http", "15672"
	if uri.Scheme == "amqps" {
		scheme, port = "https", "15671"
	}
	addr := cmp.Or(b.management, net.JoinHostPort(uri.Host, port))
	path, escaped := "/api/queues/"+uri.Vhost, "/api/queues/"+url.PathEscape(uri.Vhost)
	if queue != "" {
		path, escaped = path+"/"+queue, escaped+"/"+url.PathEscape(queue)
	}
	at := url.URL{Scheme: scheme, Host: addr, Path: path, RawPath: escaped, RawQuery: "columns=" + columns}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return err
	}
	req.SetBasicAuth(uri.Username, uri.Password)
	transport := &http.Transport{TLSClientConfig: b.tls.Clone(), DisableKeepAlives: true}
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("asking %s: %s (the user needs the tag monitoring, or management)", addr, resp.Status)
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, resp.Body, largestReply)).Decode(into); err != nil {
		return fmt.Errorf("reading the reply of %s: %w", addr, err)
	}
	return nil
}

// largestReply is the size of a reply with some hundred thousand queues.
const largestReply = 256 << 20
