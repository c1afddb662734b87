package dashboard

import (
	"encoding/base64"
	"strings"
)

const plainBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:"

// segment writes a queue's name or a message's id as one segment of a path. Servers and proxies
// rewrite "..", "//" and "%2F" on the way, so that only names of plain bytes stay as they are.
func segment(name string) string {
	if strings.Trim(name, plainBytes) == "" && strings.Trim(name, ".") != "" && plain(name) {
		return name
	}
	return "~" + base64.RawURLEncoding.EncodeToString([]byte(name))
}

func plain(name string) bool {
	for i := range len(name) {
		if strings.IndexByte(plainBytes, name[i]) < 0 {
			return false
		}
	}
	return true
}

// fromSegment is the reverse of segment.
func fromSegment(s string) (name string, ok bool) {
	encoded, is := strings.CutPrefix(s, "~")
	if !is {
		return s, s != "" && plain(s)
	}
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	return string(raw), err == nil
}
