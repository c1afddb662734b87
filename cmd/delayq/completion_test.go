package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/delayq/delayq/internal/testenv"
)

func completed(t *testing.T, words ...string) (all []string) {
	t.Helper()
	r := runOK(t, append([]string{"__complete", "--"}, words...)...)
	for line := range strings.Lines(r.stdout) {
		word, _, _ := strings.Cut(line, "\t")
		all = append(all, word)
	}
	return all
}

func TestComplete(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"pu":                                "push purge",
		"dead ":                             "list redrive delete trim",
		"redisson q":                        "quarantine",
		"help ve":                           "verify version",
		"help dead ":                        "list redrive delete trim",
		"completion ":                       "bash zsh fish",
		"completion z":                      "zsh",
		"purge memory:///q --":              "--help --verbose --yes --json",
		"purge memory:///q --v":             "--verbose",
		"consume --workers 3 --ma":          "--max-attempts",
		"consume --workers ":                "",
		"push memory:///q --after 1s --ju":  "",
		"consume URL --exec -- ls --verbos": "",
		"nosuch --":                         "--help",
		"__":                                "",
	} {
		got := completed(t, strings.Split(words, " ")...)
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %s", words, got, want)
		}
	}
	if all := completed(t, ""); !slices.Contains(all, "consume") || slices.Contains(all, "__complete") {
		t.Errorf("got %q", all)
	}
	if all := completed(t); !slices.Contains(all, "consume") {
		t.Errorf("got %q", all)
	}
}

// shells have the program that a shell runs with the script, to print its completions.
var shells = map[string]string{
	"bash": `source <(delayq completion bash)
complete -p delayq >/dev/null || exit 1
for line in "delayq pu" "delayq dead re" "delayq stats --wa"; do
    COMP_WORDS=($line); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
    _delayq; echo "${COMPREPLY[@]}"
done`,
	"zsh": `autoload -U compinit && compinit -u -D && source <(delayq completion zsh) || exit 1
_describe() { echo ${${(P)2}%%:*} }
for line in "delayq pu" "delayq dead re" "delayq stats --wa"; do
    words=(${(z)line}); CURRENT=${#words}; _delayq
done`,
	"fish": `cd (mktemp -d) && touch push-file && delayq completion fish | source
for line in "delayq pu" "delayq dead re" "delayq stats --wa"
    echo (complete -C $line | string split -f1 \t)
end`,
}

func TestCompletionInShells(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	bin := asCommand(t)
	for shell, script := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), testenv.Shell(t, shell), "-c", script)
			cmd.Env = append(os.Environ(), asProgram+"=1", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+t.TempDir())
			out, err := cmd.CombinedOutput()
			if want := "push purge\nredrive\n--watch\n"; err != nil || string(out) != want {
				t.Errorf("%v: got %q, want %q", err, out, want)
			}
		})
	}
}

// asCommand returns a directory that has the program under its name.
func asCommand(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	mustDo(t, err)
	dir := t.TempDir()
	mustDo(t, os.Symlink(self, filepath.Join(dir, "delayq")))
	return dir
}

func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for shell := range shells {
		r := runOK(t, "completion", shell)
		r.wantOutput(t, "__complete", "delayq in "+shell)
	}
	r := delayqRun(t, "completion", "tcsh")
	r.wantCode(t, exitUnusable)
	if want := fmt.Sprintf("%q", "tcsh"); !strings.Contains(r.stderr, want) || !strings.Contains(r.stderr, `"bash","zsh","fish"`) {
		t.Errorf("got %q", r.stderr)
	}
}
