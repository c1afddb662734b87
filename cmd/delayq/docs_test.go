package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

var update = flag.Bool("update", false, "write the reference of commands in the documentation anew")

const (
	commandsPage = "../../docs/command-line.md"
	from         = "<!-- commands: written by go -C cmd/delayq test -run TestDocsListCommands -update . -->\n"
	to           = "<!-- end of commands -->"
)

// TestDocsListCommands keeps the reference true: every command, every flag, every exit code.
func TestDocsListCommands(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(commandsPage)
	mustDo(t, err)
	before, rest, ok := strings.Cut(string(raw), from)
	_, after, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("%s has lost the marks around its reference", commandsPage)
	}
	want := before + from + reference(t) + to + after
	if *update {
		mustDo(t, os.WriteFile(commandsPage, []byte(want), 0o644))
	} else if want != string(raw) {
		t.Errorf("%s does not list the commands as they are; run this test with -update", commandsPage)
	}
}

// TestDocsShowEveryCommand wants each command in an example or a sentence of its own, outside the
// reference.
func TestDocsShowEveryCommand(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(commandsPage)
	mustDo(t, err)
	byHand, _, _ := strings.Cut(string(raw), from)
	for _, leaf := range leaves(t) {
		if !strings.Contains(byHand, leaf.FullPath()) {
			t.Errorf("%s is nowhere but in the reference", leaf.FullPath())
		}
	}
}

func leaves(t *testing.T) (all []*kong.Node) {
	t.Helper()
	parser, err := newParser(t.Context(), streams{})
	mustDo(t, err)
	return parser.Model.Leaves(true)
}

func reference(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n### Exit codes\n\n| code | meaning |\n|---|---|\n")
	for _, e := range exits {
		fmt.Fprintf(&b, "| %d | %s |\n", e.code, e.meaning)
	}
	for _, leaf := range leaves(t) {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n    %s\n", leaf.FullPath(), leaf.Help, usage(leaf))
		if leaf.Detail != "" {
			fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(leaf.Detail))
		}
		flagTable(&b, leaf)
	}
	b.WriteString("\n")
	return b.String()
}

func usage(leaf *kong.Node) string {
	text := leaf.FullPath()
	for _, p := range leaf.Positional {
		name := strings.ToUpper(p.Name)
		if p.IsCumulative() {
			name += "…"
		}
		if !p.Required {
			name = "[" + name + "]"
		}
		text += " " + name
	}
	return text + " [--FLAG…]"
}

func flagTable(b *strings.Builder, leaf *kong.Node) {
	if len(leaf.Positional) == 0 && len(leaf.Flags) <= 1 { // --help
		return
	}
	b.WriteString("\n| argument | |\n|---|---|\n")
	cell := strings.NewReplacer("|", `\|`, "${default}", "\x00")
	for _, p := range leaf.Positional {
		fmt.Fprintf(b, "| %s | %s |\n", strings.ToUpper(p.Name), cell.Replace(p.Help))
	}
	for _, f := range leaf.Flags {
		if f.Name == "help" {
			continue
		}
		value := ""
		if !f.IsBool() {
			value = "=" + f.FormatPlaceHolder()
		}
		fmt.Fprintf(b, "| `--%s%s` | %s |\n", f.Name, value, cell.Replace(f.Help))
	}
}
