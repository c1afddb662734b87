// Package check compares the dashboard and the alert rules of docs with the metrics that
// docs/observability.md lists. A test of the root package compares that list with the code. It also
// keeps code and documentation to the field's words, and pages to a grade that is easy to read. It
// is a module of its own so that users do not download Prometheus.
package check

import (
	"regexp"
	"strings"
)

// A reading is what the Flesch-Kincaid formula counts in the prose of a page.
type reading struct{ sentences, words, syllables int }

// grade returns the school year in the United States that a reader needs for the text, by
// Flesch and Kincaid (1975).
func (r reading) grade() float64 {
	if r.words == 0 {
		return 0
	}
	words, sentences := float64(r.words), float64(r.sentences)
	return 0.39*words/sentences + 11.8*float64(r.syllables)/words - 15.59
}

// read counts the prose of a Markdown page.
func read(page string) (r reading) {
	for _, sentence := range prose(page) {
		r.add(sentence)
	}
	return r
}

func (r *reading) add(sentence string) {
	words := spoken.FindAllString(sentence, -1)
	if len(words) == 0 {
		return
	}
	r.sentences++
	r.words += len(words)
	for _, w := range words {
		r.syllables += syllables(w)
	}
}

var (
	fenced   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	comment  = regexp.MustCompile(`(?s)<!--.*?-->`)
	picture  = regexp.MustCompile(`!\[[^\]]*\]\([^)]*\)`)
	target   = regexp.MustCompile(`\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)`)
	codeSpan = regexp.MustCompile("``.+?``|`[^`]+`")
	address  = regexp.MustCompile(`https?://\S+`)
	listItem = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.)\s+`)
	fullStop = regexp.MustCompile(`[.!?]["')*_]*(?:\s+|$)`)
	spoken   = regexp.MustCompile(`[\pL\d][\pL\d'’.,]*`)
	letters  = regexp.MustCompile(`[a-z]+`)
)

// prose returns the sentences of a page: paragraphs and list items, without headings, tables,
// programs, pictures and addresses. A code span stands for a word of two syllables, as names that
// are no English have no known number.
func prose(page string) (sentences []string) {
	page = comment.ReplaceAllString(fenced.ReplaceAllString(page, ""), "")
	page = codeSpan.ReplaceAllString(picture.ReplaceAllString(page, ""), "codename")
	page = address.ReplaceAllString(target.ReplaceAllString(page, "$1"), "codename")
	var block []string
	end := func() {
		for _, s := range fullStop.Split(strings.Join(block, " "), -1) {
			if s = strings.TrimSpace(s); s != "" {
				sentences = append(sentences, s)
			}
		}
		block = nil
	}
	inList := false
	for line := range strings.Lines(page) {
		text := strings.TrimSpace(line)
		code := strings.HasPrefix(line, "    ") && !inList && len(block) == 0
		switch {
		case listItem.MatchString(line) && !code:
			end()
			inList, block = true, append(block, listItem.ReplaceAllString(text, ""))
		case text == "", code, strings.HasPrefix(text, "#"), strings.HasPrefix(text, "|"):
			end()
			inList = inList && (text == "" || strings.HasPrefix(line, " "))
		default:
			inList = inList && (len(block) > 0 || strings.HasPrefix(line, " "))
			block = append(block, text)
		}
	}
	end()
	return sentences
}

// Endings and beginnings of words whose vowels do not sound by the rule of syllables.
var (
	silent = regexp.MustCompile(`(?:[^laeiouy]es|[^dtaeiouy]ed|[^laeiouy]e|[^aeiouy]ely|[^aeiouy]eful|[^aeiouy]eless|[^aeiouy]ement)$`)
	vowels = regexp.MustCompile(`[aeiouy]+`)
	apart  = regexp.MustCompile(`ia|io(?:[^nu]|$)|[^q]ua[lt]|eo[^u]|[aeo]ing|iu|[^q]ue[ln]|creat|[dr]ea$`)
	hiss   = regexp.MustCompile(`(?:s|x|z|ch|sh|c|g)es$`)
)

// syllables counts the groups of vowels of an English word that sound. It is right for about nine
// words of ten; a number counts as one syllable.
func syllables(word string) int {
	n := 0
	for _, w := range letters.FindAllString(strings.ToLower(word), -1) {
		n += max(1, len(vowels.FindAllString(w, -1))+len(apart.FindAllString(w, -1))-mute(w))
	}
	return max(1, n)
}

func mute(w string) int {
	if silent.MatchString(w) && !hiss.MatchString(w) {
		return 1
	}
	return 0
}
