package chart

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A Bar is one of a bar chart. Least and Most, where they are not 0, are the ends of its spread.
type Bar struct {
	Name               string
	Value, Least, Most float64
	Ours               bool
}

// Bars is a chart with a horizontal bar for each value, at least one.
type Bars struct {
	Title string
	X     Axis // starts at 0
	Bars  []Bar
}

const barPitch = vg.Length(25)

// SVG draws the chart, the first bar on top. A legend tells our bars from others by their colour.
func (b Bars) SVG() []byte {
	var (
		names        = make([]string, len(b.Bars))
		ours, others = make(plotter.Values, len(b.Bars)), make(plotter.Values, len(b.Bars))
		values       []float64
		labels       plotter.Labels
		spreads      plotter.XErrorBars
	)
	for i, bar := range b.Bars {
		row := len(b.Bars) - 1 - i
		names[row] = bar.Name
		if bar.Ours {
			ours[row] = bar.Value
		} else {
			others[row] = bar.Value
		}
		end := max(bar.Value, bar.Most)
		values = append(values, end)
		labels.XYs = append(labels.XYs, plotter.XY{X: end, Y: float64(row)})
		labels.Labels = append(labels.Labels, Number(bar.Value))
		labels.TextStyle = append(labels.TextStyle, text.Style{Font: font.From(plot.DefaultFont, textSize-1), YAlign: draw.YCenter, Handler: plot.DefaultTextHandler})
		if bar.Most > bar.Least {
			spreads.XYs = append(spreads.XYs, plotter.XY{X: bar.Value, Y: float64(row)})
			spreads.XErrors = append(spreads.XErrors, struct{ Low, High float64 }{bar.Value - bar.Least, bar.Most - bar.Value})
		}
	}
	labels.Offset.X = 7
	x := b.X.fit(values)
	p := newPlot(b.Title, x, Axis{})
	p.NominalY(names...)
	p.Legend.Padding, p.Legend.YPosition = 4, draw.PosCenter
	for _, group := range []struct {
		name   string
		values plotter.Values
		colour int
	}{{"delayq", ours, 0}, {"others", others, 7}} {
		bars := &plotter.BarChart{Values: group.values, Width: 16, Color: lightColours[group.colour], Horizontal: true}
		p.Add(bars)
		p.Legend.Add(group.name, bars)
	}
	halo := spreads // it keeps the spread visible on the bar
	halo.LineStyle, halo.CapWidth = draw.LineStyle{Color: lightPage, Width: 4}, 10
	spreads.LineStyle, spreads.CapWidth = draw.LineStyle{Color: lightInk, Width: 1.5}, 8
	p.Add(&halo, &spreads, &labels)
	x.limit(&p.X)
	p.Y.Min, p.Y.Max = -0.6, max(0.6, float64(len(b.Bars))-0.4)
	return render(p, 90+barPitch*vg.Length(len(b.Bars)), plot.Legend{})
}
