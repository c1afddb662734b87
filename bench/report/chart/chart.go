// Package chart draws line and bar charts as SVG for light and dark pages. Series also differ by
// dashes and marks, for readers who cannot distinguish all colours.
package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// MaxSeries is the number of series that readers can tell apart.
const MaxSeries = 8

const (
	width    = vg.Length(760)
	margin   = vg.Length(12)
	textSize = 13
)

// The colours follow Okabe and Ito, darkened or lightened where they would be faint on their page.
var (
	lightColours = [MaxSeries]color.RGBA{
		rgb(0x0072b2), rgb(0xd55e00), rgb(0x00805d), rgb(0xa8518a), rgb(0x7a5c00), rgb(0x1f2328), rgb(0x3f97cf), rgb(0x6e7781),
	}
	darkColours = [MaxSeries]color.RGBA{
		rgb(0x56b4e9), rgb(0xff8f4d), rgb(0x2bd4a0), rgb(0xe6a1cd), rgb(0xf0e442), rgb(0xf0f6fc), rgb(0x9ecbff), rgb(0x9aa4af),
	}
	lightPage, darkPage = rgb(0xffffff), rgb(0x0d1117)
	lightInk, darkInk   = rgb(0x000000), rgb(0xf0f6fc) // black is gonum/plot's colour of axes and text
	lightGrid, darkGrid = rgb(0xdde3e9), rgb(0x2c333c)
)

func rgb(hex uint32) color.RGBA {
	return color.RGBA{uint8(hex >> 16), uint8(hex >> 8), uint8(hex), 0xff}
}

func init() { plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"} }

// newPlot returns a plot with axes, and with a grid for each axis that has a title. Series are
// added with values that clamp has moved into the axes.
func newPlot(title string, x, y Axis) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.Title.Padding = title, margin
	p.Title.TextStyle.Font.Size = textSize + 2
	x.apply(&p.X)
	y.apply(&p.Y)
	grid := plotter.NewGrid()
	grid.Vertical = draw.LineStyle{Color: lightGrid, Width: 1}
	if y.Title != "" {
		grid.Horizontal = grid.Vertical
	} else {
		grid.Horizontal.Color = nil
	}
	p.Add(grid)
	p.Legend.TextStyle.Font.Size = textSize
	return p
}

// render draws a plot with a legend at its right.
func render(p *plot.Plot, height vg.Length, legend plot.Legend) []byte {
	canvas := vgsvg.New(width, height)
	all := draw.New(canvas)
	all.SetColor(lightPage)
	all.Fill(all.Rectangle.Path())
	inner := draw.Crop(all, margin, -margin, margin, -margin)
	beside := vg.Length(0)
	if size := legend.Rectangle(inner).Size().X; size > 0 {
		beside = size + margin
		legend.Draw(draw.Crop(inner, inner.Size().X-size, 0, 0, -3*margin))
	}
	p.Draw(draw.Crop(inner, 0, -beside, 0, 0))
	var svg bytes.Buffer
	_, _ = canvas.WriteTo(&svg) // a Buffer returns no error
	return themed(svg.Bytes(), p.Title.Text)
}

// themed adds to an SVG the colours of dark pages and the title for screen readers. Its unit
// becomes the pixel. The inline styles of gonum/plot have the light colours, so that programs that
// know no media queries show a light page.
func themed(svg []byte, title string) []byte {
	var style, name strings.Builder
	style.WriteString("<style>\ntext{font-family:'Liberation Sans',Arial,Helvetica,sans-serif!important}\n@media (prefers-color-scheme:dark){\n")
	fmt.Fprintf(&style, "text{fill:%s}\n", hex(darkInk))
	replace := func(light, dark color.RGBA) {
		for _, property := range []string{"fill", "stroke"} {
			fmt.Fprintf(&style, "[style*=\"%s:%s\"]{%[1]s:%[3]s!important}\n", property, hex(light), hex(dark))
		}
	}
	replace(lightPage, darkPage)
	replace(lightInk, darkInk)
	replace(lightGrid, darkGrid)
	for i := range MaxSeries {
		replace(lightColours[i], darkColours[i])
	}
	_ = xml.EscapeText(&name, []byte(title)) // a Builder returns no error
	style.WriteString("}\n</style>\n")
	head, body, _ := bytes.Cut(svg, []byte("xlink\">\n"))
	head = bytes.ReplaceAll(head, []byte("pt\""), []byte("\""))
	return fmt.Appendf(head, "xlink\" role=\"img\">\n<title>%s</title>\n%s%s", &name, &style, body)
}

// hex writes a colour as gonum/plot does.
func hex(c color.RGBA) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) }
