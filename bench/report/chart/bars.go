package chart

// A Bar is one of a bar chart. Least and Most, where they are not 0, are the ends of its spread.
type Bar struct {
	Name               string
	Value, Least, Most float64
	Ours               bool
}

// Bars is a chart with a horizontal bar a value.
type Bars struct {
	Title string
	X     Axis // starts at 0
	Bars  []Bar
}

const (
	barsTop   = 44.0
	barHeight = 16.0
	barPitch  = 25.0
)

// SVG draws the chart. Ours are in another colour than the others, and their names in bold.
func (b Bars) SVG() []byte {
	longest, values := 0, []float64{}
	for _, bar := range b.Bars {
		longest = max(longest, len([]rune(bar.Name)))
		values = append(values, bar.Value, bar.Most)
	}
	const room = 90 // for the values
	left := 20 + glyph*float64(longest)
	x := b.X.over(values, left, width-left-room)
	bottom := barsTop + barPitch*float64(len(b.Bars))
	c := begin(b.Title, bottom+belowTitle+14)
	for _, v := range x.marks() {
		c.line("grid", x.place(v), barsTop-4, x.place(v), bottom)
		c.text(x.place(v), bottom+belowLabels-4, "middle", "pale", x.label(v))
	}
	for i, bar := range b.Bars {
		c.bar(bar, x, barsTop+barPitch*float64(i))
	}
	c.line("axis", left, barsTop-4, left, bottom)
	c.text(left+x.reach/2, bottom+belowTitle, "middle", "label", b.X.Title)
	return c.end()
}

func (c *canvas) bar(b Bar, x span, top float64) {
	series, class := 7, "name"
	if b.Ours {
		series, class = 0, "ours"
	}
	middle, end := top+barHeight/2, x.place(b.Value)
	c.text(x.at-8, middle+5, "end", class, b.Name)
	c.printf("<rect class=\"bar s%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", series, x.at, top, end-x.at, barHeight)
	if b.Most > b.Least {
		c.whisker(x.place(b.Least), x.place(b.Most), middle)
		end = max(end, x.place(b.Most))
	}
	c.text(end+7, middle+5, "start", "value", Number(b.Value))
}

// whisker is seen on the bar and beside it.
func (c *canvas) whisker(from, to, y float64) {
	for _, class := range []string{"halo", "whisker"} {
		c.line(class, from, y, to, y)
		c.line(class, from, y-4, from, y+4)
		c.line(class, to, y-4, to, y+4)
	}
}
