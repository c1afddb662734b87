package chart_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"

	"github.com/delayq/delayq/bench/report/chart"
)

// texts returns a picture's texts, and fails when it is not well-formed or has a number that cannot
// be parsed.
func texts(t *testing.T, svg []byte) (all []string) {
	t.Helper()
	for _, bad := range []string{"NaN", "Inf"} {
		if bytes.Contains(svg, []byte(bad)) {
			t.Errorf("the picture has %s: %s", bad, svg)
		}
	}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v: %s", err, svg)
		}
		if text, ok := token.(xml.CharData); ok {
			all = append(all, string(text))
		}
	}
}

func says(t *testing.T, svg []byte, want ...string) {
	t.Helper()
	said := "\n" + strings.Join(texts(t, svg), "\n") + "\n"
	for _, w := range want {
		if !strings.Contains(said, "\n"+w+"\n") {
			t.Errorf("the picture does not say %q: %s", w, said)
		}
	}
}

func TestLinesNameAxesAndSeries(t *testing.T) {
	svg := chart.Lines{
		Title: "a < b", X: chart.Axis{Title: "x & more, ms", Scale: chart.Log}, Y: chart.Axis{Title: "share", Scale: chart.Nines},
		Series: []chart.Series{
			{Name: "<one>", Points: plotter.XYs{{X: 0.1}, {X: 1, Y: 0.5}, {X: 1000, Y: 1}}},
			{Name: "two", Points: plotter.XYs{{Y: 0.9}, {X: 5, Y: 0.99}}},
		},
	}.SVG()
	says(t, svg, "a < b", "x & more, ms", "share", "<one>", "two", "0.1", "1", "1,000", "0 %", "90 %", "99 %")
}

func TestOddSeriesAreDrawnAllTheSame(t *testing.T) {
	for _, scale := range []chart.Scale{chart.Linear, chart.Log, chart.Nines} {
		for name, points := range map[string]plotter.XYs{
			"none": nil, "zero": {{}}, "one": {{X: 1, Y: 1}}, "equal": {{X: 5, Y: 5}, {X: 5, Y: 5}}, "tiny": {{X: 1e-9, Y: 1e-9}, {X: 2e-9, Y: 2e-9}},
			"huge": {{X: 1e12, Y: 1e12}}, "negative": {{X: -1, Y: -1}, {X: 1, Y: 1}},
		} {
			t.Run(fmt.Sprint(name, scale), func(t *testing.T) {
				l := chart.Lines{X: chart.Axis{Scale: scale}, Y: chart.Axis{Scale: scale}, Marked: true}
				l.Series = []chart.Series{{Name: "odd", Points: points}}
				says(t, l.SVG(), "odd")
			})
		}
	}
}

func TestBarsNameValues(t *testing.T) {
	svg := chart.Bars{
		Title: "rates", X: chart.Axis{Title: "messages a second"},
		Bars: []chart.Bar{{Name: "we", Value: 96_123, Least: 90_000, Most: 99_000, Ours: true}, {Name: "they", Value: 28_999}, {Name: "nobody"}},
	}.SVG()
	says(t, svg, "rates", "messages a second", "we", "96,100", "they", "29,000", "nobody", "0")
}

func TestDarkPageReplacesEveryColour(t *testing.T) {
	l := chart.Lines{Title: "all", Marked: true, Series: make([]chart.Series, chart.MaxSeries)}
	for i := range l.Series {
		l.Series[i] = chart.Series{Name: "one", Points: plotter.XYs{{X: 1, Y: 1}, {X: 2, Y: float64(i)}}}
	}
	for _, svg := range [][]byte{l.SVG(), chart.Bars{Bars: []chart.Bar{{Name: "we", Value: 2, Least: 1, Most: 3, Ours: true}, {Name: "they", Value: 1}}}.SVG()} {
		dark, drawn, both := strings.Cut(string(svg), "</style>")
		if !both || !strings.Contains(dark, "@media (prefers-color-scheme:dark)") {
			t.Fatalf("the picture has no dark page: %s", svg)
		}
		inline := regexp.MustCompile("(?:fill|stroke):#[0-9A-F]{6}").FindAllString(drawn, -1)
		if len(inline) == 0 {
			t.Fatalf("the picture has no colours: %s", svg)
		}
		for _, colour := range inline {
			if !strings.Contains(dark, fmt.Sprintf("[style*=%q]", colour)) {
				t.Errorf("%s stays on the dark page", colour)
			}
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 0.5: "0.5", 0.12345: "0.123", 0.0012345: "0.00123", 12.345: "12.3", 123.45: "123", 999.9: "1,000", 1234567: "1,230,000",
		100: "100", 1000: "1,000", -12.3: "-12.3", -1234: "-1,230", 9.999: "10", 3: "3",
	} {
		if got := chart.Number(v); got != want {
			t.Errorf("%v is written %s, want %s", v, got, want)
		}
	}
	if got := chart.Number(math.Pi * 1e-9); got != "0.00000000314" {
		t.Error(got)
	}
}
