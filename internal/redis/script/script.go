// Package script runs Lua scripts on Redis. It adds two things to the client library. A script
// whose reply was lost is repeated, and knows that it is a repetition. A reply becomes one outcome
// for each message.
package script

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
)

// Script is a Lua file. lua/common.lua and the prelude that the scripts of a store share come
// before it. Its arguments begin with
//
//	ARGV[1]  the injected clock's time in microseconds, or nothing for the server's own
//	ARGV[2]  the earliest time, by that clock, at which the first try can have been sent, whose
//	         reply was lost; 0 in a first try
//
// The arguments of its [Runner] and its own follow.
type Script struct {
	name, text, sha string
}

//go:embed lua/*.lua
var shared embed.FS

var common = read(shared, "common")

// Load makes a script of lua/prelude.lua and further files, the last of which names it. Those that
// files does not have are this package's. It panics for a file that is not there, since files are
// embedded.
//
// Each file is a function within the one before. Lua finds the locals of the enclosing function by
// a walk along a list, for each function that uses them. Those from further out it copies, so that
// a script of many small functions starts sooner.
func Load(files fs.FS, names ...string) *Script {
	text := common
	for _, name := range append([]string{"prelude"}, names...) {
		text += "return (function() " + read(files, name)
	}
	return Parse(names[len(names)-1], text+strings.Repeat(" end)()", 1+len(names)))
}

// Parse makes a script of its text.
func Parse(name, text string) *Script {
	sum := sha1.Sum([]byte(text)) // Redis names scripts by it
	return &Script{name: name, text: text, sha: hex.EncodeToString(sum[:])}
}

var (
	forbidden = regexp.MustCompile(`can't run this command.*user_script:(\d+)`)
	calls     = regexp.MustCompile(`redis\.p?call\('([A-Z]+)'`)
)

// naming adds to an error the command that a user may not use: the server tells the line alone.
func (sc *Script) naming(err error) error {
	at := forbidden.FindStringSubmatch(err.Error())
	if at == nil {
		return err
	}
	n, _ := strconv.Atoi(at[1])
	lines := strings.Split(sc.text, "\n")
	if n < 1 || n > len(lines) {
		return err
	}
	call := calls.FindStringSubmatch(lines[n-1])
	if call == nil {
		return err
	}
	return fmt.Errorf("no permission for %s: %w", call[1], err)
}

func read(files fs.FS, name string) string {
	text, err := fs.ReadFile(files, "lua/"+name+".lua")
	if errors.Is(err, fs.ErrNotExist) {
		text, err = shared.ReadFile("lua/" + name + ".lua")
	}
	if err != nil {
		panic(err)
	}
	return string(text)
}
