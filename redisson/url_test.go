package redisson_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	_ "github.com/delayq/delayq/memory"
	"github.com/delayq/delayq/redisson"
)

// A name of Java's may have a slash in it, or anything else that URLs encode.
func TestOpenURLTakesNamesOfJavas(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.AOF())
	for _, name := range []string{"shop/orders", "/", "a/b/c", "%2F", "a b", "ä", "a?b#c"} {
		rawURL := "redisson://" + server.Addr() + "/" + url.PathEscape(name)
		redistest.RoundTrip(t, rawURL)
		b, queue, err := redisson.OpenURL(t.Context(), rawURL)
		must(t, err)
		if must(t, b.Close()); queue != name {
			t.Errorf("%s names %q, want %q", rawURL, queue, name)
		}
	}
}

// A name that is too long is rejected for that.
func TestOpenURLRejectsALongName(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.AOF())
	_, err := delayq.Open(redistest.Deadline(t), "redisson://"+server.Addr()+"/"+strings.Repeat("%2F", 201))
	if !errors.Is(err, delayq.ErrInvalid) || !strings.HasSuffix(err.Error(), "(201 bytes): allowed is 1 to 200 bytes") {
		t.Errorf("got %v", err)
	}
}

func TestURLParametersTakeEffect(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.AOF())
	ctx := redistest.Deadline(t)
	rawURL := "redisson://" + server.Addr() + "/orders?db=4&prefix=app:&codec=kryo5&format=v1&index=false"
	q, err := delayq.Open(ctx, rawURL)
	must(t, err)
	defer func() { must(t, q.Close()) }()
	_, err = q.Push(ctx, []byte("hello"), delayq.After(time.Hour))
	must(t, err)
	client := server.Client(t, func(o *redis.Options) { o.DB = 4 })
	if members := client.ZRange(ctx, "redisson_delay_queue_timeout:{app:orders}", 0, -1).Val(); len(members) != 1 || members[0][0] != 0 || !strings.HasSuffix(members[0], "\x03hell\xef") {
		t.Errorf("members %q", members)
	}
	b, queue, err := redisson.OpenURL(ctx, rawURL)
	must(t, err)
	defer func() { must(t, b.Close()) }()
	r, err := b.Inspect(ctx, queue)
	if err != nil || queue != "orders" || r.Waiting != 1 || r.Indexed != 0 || r.Formats[redisson.V1] != 1 || r.Keys.Destination != "app:orders" {
		t.Errorf("queue %q: %+v, %v", queue, r, err)
	}
}

func TestOpenURLIsForRedisson(t *testing.T) {
	t.Parallel()
	if _, _, err := redisson.OpenURL(t.Context(), "memory:///orders"); !errors.Is(err, delayq.ErrInvalid) || !strings.Contains(err.Error(), "redisson://") {
		t.Errorf("got %v", err)
	}
	if _, _, err := redisson.OpenURL(t.Context(), "carrierpigeon:///orders"); !errors.Is(err, delayq.ErrUnknownScheme) {
		t.Errorf("got %v", err)
	}
}
