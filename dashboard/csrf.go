package dashboard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
)

const cookieName = "delayq_dashboard"

// csrf makes tokens for forms. A token belongs to a cookie of the browser, and to this handler by
// its key.
type csrf struct{ key [32]byte }

func newCSRF() *csrf {
	var c csrf
	_, _ = rand.Read(c.key[:]) // which never fails
	return &c
}

func (c *csrf) sum(cookie string) string {
	mac := hmac.New(sha256.New, c.key[:])
	mac.Write([]byte(cookie))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// token returns the token for the forms of a page. It gives the browser a cookie where it has none.
func (c *csrf) token(w http.ResponseWriter, r *http.Request) string {
	if old, err := r.Cookie(cookieName); err == nil && len(old.Value) == 43 {
		return c.sum(old.Value)
	}
	var raw [32]byte
	_, _ = rand.Read(raw[:])
	value := base64.RawURLEncoding.EncodeToString(raw[:])
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	})
	return c.sum(value)
}

// check rejects a form that no page of this handler has made for this browser.
func (c *csrf) check(r *http.Request) error {
	cookie, err := r.Cookie(cookieName)
	if err != nil || !hmac.Equal([]byte(c.sum(cookie.Value)), []byte(r.PostFormValue("csrf"))) {
		return errors.New("the form is too old, or is not from this dashboard: go back, reload the page and try again")
	}
	return nil
}
