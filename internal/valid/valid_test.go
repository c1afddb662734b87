package valid_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/valid"
)

func TestLimits(t *testing.T) {
	portable, anyName, short := backend.Traits{}, backend.Traits{AnyName: true}, backend.Traits{MaxDelay: time.Hour, MaxBody: 10}
	header := func(k, v string) map[string]string { return map[string]string{k: v} }
	full := backend.MaxHeaders - backend.HeaderCost - 1
	for name, c := range map[string]struct{ good, bad error }{
		"id's length":           {valid.ID(strings.Repeat("x", backend.MaxID)), valid.ID(strings.Repeat("x", backend.MaxID+1))},
		"id's emptiness":        {valid.ID("a"), valid.ID("")},
		"id's characters":       {valid.ID("ä b"), valid.ID("a\nb")},
		"id's encoding":         {valid.ID("é"), valid.ID("\xff")},
		"body":                  {valid.Body(make([]byte, backend.MaxBody), portable), valid.Body(make([]byte, backend.MaxBody+1), portable)},
		"body of the store":     {valid.Body(make([]byte, 10), short), valid.Body(make([]byte, 11), short)},
		"header's key":          {valid.Headers(header("a", ""), ""), valid.Headers(header("", "a"), "")},
		"header's reserved key": {valid.Headers(header("delayq-x", ""), "delayq-x"), valid.Headers(header("delayq-x", ""), "delayq-y")},
		"headers' size":         {valid.Headers(header("k", strings.Repeat("v", full)), ""), valid.Headers(header("k", strings.Repeat("v", full+1)), "")},
		"delay's sign":          {valid.Delay(0, portable), valid.Delay(-1, portable)},
		"delay":                 {valid.Delay(backend.MaxDelay, portable), valid.Delay(backend.MaxDelay+1, portable)},
		"delay of the store":    {valid.Delay(time.Hour, short), valid.Delay(time.Hour+1, short)},
		"early due time":        {valid.Due(backend.EarliestDue), valid.Due(backend.EarliestDue.Add(-1))},
		"late due time":         {valid.Due(backend.LatestDue), valid.Due(backend.LatestDue.Add(1))},
		"due time and delay":    {valid.Time("message", backend.LatestDue, 0, portable), valid.Time("message", backend.LatestDue, 1, portable)},
		"spread":                {valid.Spread(backend.MaxDelay), valid.Spread(-1)},
		"wait":                  {valid.Wait(backend.MinWait), valid.Wait(backend.MinWait - 1)},
		"window":                {valid.Window(0), valid.Window(backend.MaxUnique + 1)},
		"short window":          {valid.Window(backend.MinUnique), valid.Window(backend.MinUnique - 1)},
		"timeout":               {valid.Timeout("Timeout", valid.MaxTimeout), valid.Timeout("Timeout", valid.MaxTimeout+1)},
		"short timeout":         {valid.Timeout("Timeout", time.Millisecond), valid.Timeout("Timeout", time.Millisecond-1)},
		"expiry":                {valid.Expiry(time.Millisecond), valid.Expiry(backend.MaxDelay + 1)},
		"lease":                 {valid.Lease("lease", backend.MinLease), valid.Lease("lease", backend.MaxLease+1)},
		"number":                {valid.Within("n", 3, 1, 3), valid.Within("n", 4, 1, 3)},
		"name":                  {valid.Name("a-Z_9.:", portable), valid.Name("a b", portable)},
		"name's emptiness":      {valid.Name(" ", anyName), valid.Name("", anyName)},
		"name's alphabet":       {valid.Name("ä {b}", anyName), valid.Name("ä", portable)},
		"name's length":         {valid.Name(strings.Repeat("x", backend.MaxName), anyName), valid.Name(strings.Repeat("x", backend.MaxName+1), anyName)},
	} {
		var invalid *backend.InvalidError
		if c.good != nil {
			t.Errorf("%s: %v for the last one that is allowed", name, c.good)
		}
		if !errors.As(c.bad, &invalid) {
			t.Errorf("%s: %v, want an InvalidError beyond the limit", name, c.bad)
		}
	}
}

func TestIDsReturnsTheFirstThatIsInvalid(t *testing.T) {
	if id, err := valid.IDs([]string{"a", "b\t", ""}); id != "b\t" || err == nil {
		t.Errorf("IDs returns %q, %v, want the second", id, err)
	}
	if id, err := valid.IDs([]string{"a", "b"}); id != "" || err != nil {
		t.Errorf("IDs returns %q, %v", id, err)
	}
}

func TestHeadersAreNotChanged(t *testing.T) {
	h := map[string]string{"a": "1"}
	if err := valid.Headers(h, ""); err != nil || !maps.Equal(h, map[string]string{"a": "1"}) {
		t.Errorf("headers %v, err %v", h, err)
	}
}
