package main

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/delayq/delayq/cmd/delayq/internal/human"
)

// argumentReaders read what kong reads otherwise: its durations have no days, its times are Go's
// alone, and of text it replaces bytes that are not UTF-8, without an error.
var argumentReaders = []kong.Option{
	kong.KindMapper(reflect.String, reading(func(text string) (string, error) { return text, nil })),
	kong.TypeMapper(reflect.TypeFor[text](), reading(readText)),
	kong.TypeMapper(reflect.TypeFor[time.Duration](), reading(human.Duration)),
	kong.TypeMapper(reflect.TypeFor[*time.Time](), reading(func(text string) (time.Time, error) { return human.Time(text, time.Now()) })),
}

func reading[T any](read func(string) (T, error)) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, target reflect.Value) error {
		token, err := ctx.Scan.PopValue(ctx.Value.Name)
		if err != nil {
			return err
		}
		text, ok := token.Value.(string)
		if !ok {
			return fmt.Errorf("expected a string but got %v (%T)", token.Value, token.Value)
		}
		value, err := read(text)
		if err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
		if target.Kind() == reflect.Pointer {
			target.Set(reflect.ValueOf(&value))
		} else {
			target.Set(reflect.ValueOf(value).Convert(target.Type()))
		}
		return nil
	}
}

// allowedRange is a range in a flag's help. A flag may have two, for cases that it knows itself.
var allowedRange = regexp.MustCompile(`\(allowed: (\S+) to (\S+)\)`)

// Validate is called by the parser. It holds flags against the ranges that their help states.
func (*cli) Validate(ctx *kong.Context) error {
	for _, p := range ctx.Path {
		if p.Flag == nil {
			continue
		}
		found := allowedRange.FindAllStringSubmatch(p.Flag.Help, -1)
		if len(found) != 1 {
			continue
		}
		given, low, high := p.Flag.Target.Interface(), found[0][1], found[0][2]
		if n := number(fmt.Sprint(given)); n < number(low) || n > number(high) {
			if d, ok := given.(time.Duration); ok {
				given = human.Brief(d)
			}
			return fmt.Errorf("%s: --%s=%v: allowed is %s to %s", ctx.Selected().Path(), p.Flag.Name, given, low, high)
		}
	}
	return nil
}

// number is the number that a text has, of a duration in seconds.
func number(text string) float64 {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n
	}
	d, _ := human.Duration(text)
	return d.Seconds()
}

// validIDs rejects ids that no message has and that JSON output cannot show.
func validIDs(ids []string) error {
	for _, id := range ids {
		if !utf8.ValidString(id) {
			return fmt.Errorf("id %q: allowed is UTF-8 text", id)
		}
	}
	return nil
}
