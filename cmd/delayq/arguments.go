package main

import (
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/alecthomas/kong"
)

// rawStrings has the parser keep the bytes of arguments. Its own mapper replaces those that are not
// UTF-8, without an error.
var rawStrings = kong.KindMapper(reflect.String, kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue("string")
	if err != nil {
		return err
	}
	text, ok := token.Value.(string)
	if !ok {
		return fmt.Errorf("expected a string but got %v (%T)", token.Value, token.Value)
	}
	target.SetString(text)
	return nil
}))

// validIDs refuses ids that no message has and that JSON output cannot show.
func validIDs(ids []string) error {
	for _, id := range ids {
		if !utf8.ValidString(id) {
			return fmt.Errorf("id %q: allowed is UTF-8 text", id)
		}
	}
	return nil
}
