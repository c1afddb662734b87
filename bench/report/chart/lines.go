package chart

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A Series is a line through points.
type Series struct {
	Name   string
	Points plotter.XYs
}

// Lines is a chart with one line for each series, at most MaxSeries of them.
type Lines struct {
	Title  string
	X, Y   Axis
	Series []Series

	Marked bool // marks at the points
}

var (
	dashes = [MaxSeries][]vg.Length{nil, {8, 3}, {3, 3}, {10, 3, 2, 3}, {14, 4}, nil, {2, 5}, {6, 2, 2, 2, 2, 2}}
	shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}, draw.PlusGlyph{}}
)

// SVG draws the chart, with a legend at its right.
func (l Lines) SVG() []byte {
	var xs, ys []float64
	for _, s := range l.Series {
		for _, p := range s.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	x, y := l.X.fit(xs), l.Y.fit(ys)
	p := newPlot(l.Title, x, y)
	legend := p.Legend
	legend.Top, legend.Left, legend.YPosition = true, true, draw.PosCenter
	legend.ThumbnailWidth, legend.Padding = 36, 6
	for i, s := range l.Series {
		points := make(plotter.XYs, len(s.Points))
		for n, point := range s.Points {
			points[n] = plotter.XY{X: x.clamp(point.X), Y: y.clamp(point.Y)}
		}
		var colour color.Color = lightColours[i%MaxSeries]
		line := &plotter.Line{XYs: points, LineStyle: draw.LineStyle{Color: colour, Width: 2.2, Dashes: dashes[i%MaxSeries]}}
		thumbnails := []plot.Thumbnailer{line}
		p.Add(line)
		if l.Marked {
			marks := &plotter.Scatter{XYs: points, GlyphStyle: draw.GlyphStyle{Color: colour, Radius: 4, Shape: shapes[i%len(shapes)]}}
			thumbnails = append(thumbnails, marks)
			p.Add(marks)
		}
		legend.Add(s.Name, thumbnails...)
	}
	x.limit(&p.X)
	y.limit(&p.Y)
	return render(p, 400, legend)
}
