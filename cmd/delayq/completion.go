package main

import (
	"context"
	"embed"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// The scripts ask the program itself, by its hidden command __complete, so that they never grow
// old.
//
//go:embed completion
var completions embed.FS

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" placeholder:"SHELL" help:"bash, zsh or fish."`
}

// Help is the text between the summary and the flags.
func (completionCommand) Help() string {
	return `For the current shell:

    bash  source <(delayq completion bash)
    zsh   source <(delayq completion zsh)
    fish  delayq completion fish | source

For all later shells, put that into ~/.bashrc or ~/.zshrc; for fish, write the script to ~/.config/fish/completions/delayq.fish.`
}

// Run prints the script.
func (c *completionCommand) Run(std streams) error {
	script, err := completions.ReadFile("completion/delayq." + c.Shell)
	if err != nil {
		return fmt.Errorf("reading the script: %w", err)
	}
	return write(std.out, string(script))
}

type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints the completions of the last word, a line each: the word, a tab, and its description.
func (c *completeCommand) Run(ctx context.Context, std streams) error {
	parser, err := newParser(ctx, std)
	if err != nil {
		return fmt.Errorf("reading the command line: %w", err)
	}
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	var out strings.Builder
	last := words[len(words)-1]
	for _, p := range proposals(parser.Model.Node, words[:len(words)-1], last) {
		if strings.HasPrefix(p.word, last) {
			fmt.Fprintf(&out, "%s\t%s\n", p.word, p.meaning)
		}
	}
	return write(std.out, out.String())
}

type proposal struct{ word, meaning string }

// proposals are the possible last words after the given ones.
func proposals(node *kong.Node, before []string, last string) []proposal {
	if len(before) > 0 && before[0] == "help" {
		return commandsOf(walk(node, before[1:]).node)
	}
	place := walk(node, before)
	switch {
	case place.raw, place.value != nil && place.value.Enum == "":
		return nil // only the user knows it
	case place.value != nil:
		return values(place.value)
	case strings.HasPrefix(last, "-"):
		return flags(place.node)
	}
	if n := len(place.node.Positional); n > place.arguments && place.node.Positional[place.arguments].Enum != "" {
		return values(place.node.Positional[place.arguments])
	}
	return commandsOf(place.node)
}

// place is where on a command line one is.
type place struct {
	node      *kong.Node
	arguments int         // of the command, so far
	value     *kong.Value // of a flag, which comes next
	raw       bool        // behind --
}

func walk(node *kong.Node, words []string) place {
	p := place{node: node}
	for _, word := range words {
		switch child := childOf(p.node, word); {
		case word == "--":
			p.raw = true
		case p.value != nil:
			p.value = nil
		case strings.HasPrefix(word, "-"):
			p.value = valueOf(p.node, word)
		case child != nil:
			p.node = child
		default:
			p.arguments++
		}
	}
	return p
}

func childOf(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// valueOf returns the value that must follow a flag, nil where there is none.
func valueOf(node *kong.Node, word string) *kong.Value {
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			if "--"+f.Name == word && !f.IsBool() {
				return f.Value
			}
		}
	}
	return nil
}

func values(v *kong.Value) (ps []proposal) {
	for _, word := range strings.Split(v.Enum, ",") {
		ps = append(ps, proposal{word, ""})
	}
	return ps
}

func flags(node *kong.Node) (ps []proposal) {
	for _, group := range node.AllFlags(true) {
		for _, f := range group {
			ps = append(ps, proposal{"--" + f.Name, firstSentence(f.Help)})
		}
	}
	return ps
}

func commandsOf(node *kong.Node) (ps []proposal) {
	for _, child := range node.Children {
		if !child.Hidden {
			ps = append(ps, proposal{child.Name, firstSentence(child.Help)})
		}
	}
	return ps
}

func firstSentence(help string) string {
	sentence, _, _ := strings.Cut(help, ". ")
	return strings.ReplaceAll(strings.TrimSuffix(sentence, "."), "\t", " ")
}
