package main

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// urlIn finds a URL in an argument, which may be a flag with its value.
var urlIn = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://.*$`)

// withoutSecrets removes the URLs of arguments from a text: a parser's error repeats unknown
// arguments, password and all.
func withoutSecrets(text string, args []string) string {
	for _, arg := range args {
		secret := urlIn.FindString(arg)
		if secret == "" {
			continue
		}
		for _, form := range []string{secret, strings.Trim(strconv.Quote(secret), `"`)} {
			text = strings.ReplaceAll(text, form, shownURL(secret))
		}
	}
	return text
}

// shownURL is a URL without the parts that may hold a password: the login, and the parameters.
func shownURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		scheme, _, _ := strings.Cut(raw, "://")
		return scheme + "://…"
	}
	if u.User != nil {
		u.User = url.User("…")
	}
	if u.RawQuery != "" {
		u.RawQuery = "…"
	}
	if u.Fragment = ""; u.Opaque != "" {
		return u.Scheme + "://…"
	}
	text, _ := url.PathUnescape(u.String())
	return text
}
