package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// writeLines writes each item as a line of JSON.
func writeLines[T, D any](w io.Writer, items []T, document func(T) D) error {
	for _, item := range items {
		if err := writeJSON(w, document(item), ""); err != nil {
			return err
		}
	}
	return nil
}

// showContent shows headers and body below a line about a message.
func showContent(w *strings.Builder, headers map[string]string, body []byte) {
	for _, k := range slices.Sorted(maps.Keys(headers)) {
		name := printable(k)
		fmt.Fprintf(w, "    %s: %s\n", name, excerpt([]byte(headers[k]), max(page-6-width(name), 20)))
	}
	fmt.Fprintf(w, "    %s\n", excerpt(body, page-4))
}
