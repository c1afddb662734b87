package limits_test

import (
	"maps"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/limits"
)

var at = time.Date(2026, 5, 1, 12, 0, 0, 5, time.UTC)

func TestLimitsComeBackAndLeaveTheHeaders(t *testing.T) {
	for text, l := range map[string]backend.Limits{
		"":                                       {},
		"attempts=3":                             {Attempts: 3},
		"timeout=1m0s":                           {HandlerTimeout: time.Minute},
		"expires-after=1h0m0s dead":              {ExpiresAfter: time.Hour, DeadLetterExpired: true},
		"expires=2026-05-01T12:00:00.000000005Z": {Expires: at},
	} {
		user := map[string]string{"a": "1"}
		all, err := limits.Add(user, &l)
		if err != nil || all[limits.Header] != text {
			t.Errorf("stored as %q, err %v, want %q", all[limits.Header], err, text)
		}
		s := limits.Take(&all)
		if got := s.Shown(); text != "" && (got == nil || *got != l) || text == "" && got != nil {
			t.Errorf("%q is read as %+v", text, got)
		}
		if want := map[string]string{"a": "1"}; !maps.Equal(all, want) || !maps.Equal(user, want) {
			t.Errorf("headers are %v and %v, want the user's", all, user)
		}
	}
}

// A zone may differ from UTC by seconds, which the text of a time cannot say.
func TestExpiresOfAnOddZone(t *testing.T) {
	all, err := limits.Add(nil, &backend.Limits{Expires: at.In(time.FixedZone("LMT", 1172))})
	if got := limits.Take(&all).Own().Expires; err != nil || !got.Equal(at) {
		t.Errorf("%v became %v, err %v", at, got, err)
	}
}

func TestFieldsThatCannotBeReadAreKeptAndSkipped(t *testing.T) {
	const text = "attempts=x newer=7 timeout=0s expires-after=-1s expires=never attempts=2 attempts=1073741825 attempts=0"
	headers := map[string]string{limits.Header: text, backend.FirstPushHeader: "17"}
	s := limits.Take(&headers)
	if s.Limits != (backend.Limits{Attempts: 2}) || headers != nil {
		t.Errorf("limits %+v, headers %v, want 2 attempts and nil", s.Limits, headers)
	}
	back, err := s.In(nil)
	if want := map[string]string{limits.Header: text, backend.FirstPushHeader: "17"}; err != nil || !maps.Equal(back, want) {
		t.Errorf("headers %v, err %v, want %v", back, err, want)
	}
}

func TestExpiry(t *testing.T) {
	for name, l := range map[string]backend.Limits{
		"after":           {ExpiresAfter: time.Hour},
		"at":              {Expires: at.Add(time.Hour)},
		"the earlier one": {ExpiresAfter: time.Hour, Expires: at.Add(2 * time.Hour)},
		"the other one":   {ExpiresAfter: 2 * time.Hour, Expires: at.Add(time.Hour)},
	} {
		s := limits.Stored{Limits: l}
		if s.ExpiredAt(at.Add(time.Hour), at) || !s.ExpiredAt(at.Add(time.Hour+1), at) {
			t.Errorf("%s: the message has to expire just after an hour", name)
		}
	}
}
