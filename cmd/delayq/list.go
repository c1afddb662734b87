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
		if err := writeJSON(w, document(item)); err != nil {
			return err
		}
	}
	return nil
}

// sayMore says that a listing of n ends early.
func sayMore(w *strings.Builder, more bool, n int, flag string) {
	if more {
		fmt.Fprintf(w, "There are more than %d; --%s=N shows them.\n", n, flag)
	}
}

// showContent shows headers and body below a line about a message.
func showContent(w *strings.Builder, headers map[string]string, body []byte) {
	for _, k := range slices.Sorted(maps.Keys(headers)) {
		name := printable(k)
		fmt.Fprintf(w, "    %s: %s\n", name, excerpt([]byte(headers[k]), max(page-6-width(name), 20)))
	}
	fmt.Fprintf(w, "    %s\n", excerpt(body, page-4))
}
