package gocloud

import (
	"net/url"
	"strings"
)

// reservedPrefix begins the headers that a backend may add for itself.
const reservedPrefix = "delayq-"

func escapeKeys(metadata map[string]string) map[string]string {
	headers := make(map[string]string, len(metadata))
	for k, v := range metadata {
		headers[escapeKey(k)] = v
	}
	return headers
}

func unescapeKeys(headers map[string]string) map[string]string {
	metadata := make(map[string]string, len(headers))
	for k, v := range headers {
		metadata[unescapeKey(k)] = v
	}
	return metadata
}

// escapeKey makes a header key of a metadata key, which may have any characters and may be empty.
func escapeKey(k string) string {
	if rest, reserved := strings.CutPrefix(k, reservedPrefix); reserved {
		return "%64elayq-" + url.PathEscape(rest)
	}
	if k == "" {
		return "%"
	}
	return url.PathEscape(k)
}

// unescapeKey leaves keys that escapeKey did not make as they are.
func unescapeKey(k string) string {
	if k == "%" {
		return ""
	}
	if plain, err := url.PathUnescape(k); err == nil {
		return plain
	}
	return k
}
