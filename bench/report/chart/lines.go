package chart

import (
	"math"
	"strings"
)

// A Point of a series.
type Point struct{ X, Y float64 }

// A Series is a line through points.
type Series struct {
	Name   string
	Points []Point
}

// Lines is a chart with one line a series, at most MaxSeries of them.
type Lines struct {
	Title  string
	X, Y   Axis
	Series []Series

	Marked bool // marks at the points
}

const (
	linesTop    = 48.0
	plotHeight  = 280.0
	linesLeft   = 92.0
	belowLabels = 24.0
	belowTitle  = 46.0
)

// SVG draws the chart, with a legend on its right.
func (l Lines) SVG() []byte {
	xs, ys := l.values()
	right := width - l.legendWidth()
	x := l.X.over(xs, linesLeft, right-linesLeft-20)
	y := l.Y.over(ys, linesTop+plotHeight, -plotHeight)
	c := begin(l.Title, linesTop+plotHeight+belowTitle+14)
	c.frame(x, y)
	for i, s := range l.Series {
		c.series(i, s, x, y)
		if l.Marked {
			c.marks(i, s, x, y)
		}
		c.legend(i, s.Name, right, linesTop+8+float64(i)*1.3*lineHeight, l.Marked)
	}
	return c.end()
}

func (l Lines) values() (xs, ys []float64) {
	for _, s := range l.Series {
		for _, p := range s.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	return xs, ys
}

const sample = 30.0 // of a line, in the legend

func (l Lines) legendWidth() float64 {
	longest := 0
	for _, s := range l.Series {
		longest = max(longest, len(s.Name))
	}
	return sample + 10 + glyph*float64(longest) + 8
}

// frame draws the axes and the grid.
func (c *canvas) frame(x, y span) {
	bottom, left := y.at, x.at
	for _, v := range x.marks() {
		c.line("grid", x.place(v), bottom, x.place(v), bottom+y.reach)
		c.text(x.place(v), bottom+belowLabels-4, "middle", "pale", x.label(v))
	}
	for _, v := range y.marks() {
		c.line("grid", left, y.place(v), left+x.reach, y.place(v))
		c.text(left-8, y.place(v)+4, "end", "pale", y.label(v))
	}
	c.line("axis", left, bottom, left+x.reach, bottom)
	c.line("axis", left, bottom, left, bottom+y.reach)
	c.text(left+x.reach/2, bottom+belowTitle, "middle", "label", x.Title)
	c.printf("<text class=\"label\" transform=\"translate(18 %.1f) rotate(-90)\" text-anchor=\"middle\">%s</text>\n", bottom+y.reach/2, escape(y.Title))
}

func (c *canvas) series(i int, s Series, x, y span) {
	pen := canvas{}
	for n, p := range s.Points {
		command := "L"
		if n == 0 {
			command = "M"
		}
		pen.printf("%s%.1f %.1f", command, x.place(p.X), y.place(p.Y))
	}
	c.printf("<path class=\"s%d\" d=%q/>\n", i%MaxSeries, pen.String())
}

func (c *canvas) marks(i int, s Series, x, y span) {
	for _, p := range s.Points {
		c.mark(i, x.place(p.X), y.place(p.Y))
	}
}

// mark is a shape with as many corners as tells the series apart.
func (c *canvas) mark(i int, x, y float64) {
	const radius = 4.5
	if i%4 == 0 {
		c.printf("<circle class=\"mark s%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n", i%MaxSeries, x, y, radius-0.5)
		return
	}
	corners := i%4 + 2
	pen := canvas{}
	for n := range corners {
		angle := 2*math.Pi*float64(n)/float64(corners) - math.Pi/2
		pen.printf("%.1f,%.1f ", x+radius*math.Cos(angle), y+radius*math.Sin(angle))
	}
	c.printf("<polygon class=\"mark s%d\" points=%q/>\n", i%MaxSeries, strings.TrimSpace(pen.String()))
}

func (c *canvas) legend(i int, name string, x, y float64, marked bool) {
	c.printf("<path class=\"s%d\" d=\"M%.1f %.1fh%.1f\"/>\n", i%MaxSeries, x, y-4, sample)
	if marked {
		c.mark(i, x+sample/2, y-4)
	}
	c.text(x+sample+8, y, "start", "name", name)
}
