// Package chart draws line and bar charts as SVG that reads well on light and dark pages, and to those who cannot tell all colours apart: series
// differ by dashes and marks too.
package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// MaxSeries is how many series can be told apart.
const MaxSeries = 8

// The colours follow Okabe and Ito, darkened or lightened where they would be faint on their page.
var (
	lightColours = [MaxSeries]string{"#0072b2", "#d55e00", "#00805d", "#a8518a", "#7a5c00", "#1f2328", "#3f97cf", "#6e7781"}
	darkColours  = [MaxSeries]string{"#56b4e9", "#ff8f4d", "#2bd4a0", "#e6a1cd", "#f0e442", "#f0f6fc", "#9ecbff", "#9aa4af"}
	dashes       = [MaxSeries]string{"", "8 3", "3 3", "10 3 2 3", "14 4", "", "2 5", "6 2 2 2 2 2"}
)

const (
	width      = 760.0
	lineHeight = 18.0
	fontSize   = 13
	glyph      = 7.7 // the width of most letters
)

// canvas collects the elements of a picture.
type canvas struct{ bytes.Buffer }

// begin writes what comes before the elements. The title is read to those who do not see.
func begin(title string, height float64) *canvas {
	c := new(canvas)
	c.printf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\">\n", width, height, width, height)
	c.printf("<title>%s</title>\n<style>\n%s</style>\n", escape(title), style())
	c.printf("<rect class=\"page\" width=\"%g\" height=\"%g\"/>\n", width, height)
	c.text(16, 24, "start", "head", title)
	return c
}

func (c *canvas) end() []byte {
	c.WriteString("</svg>\n")
	return c.Bytes()
}

func (c *canvas) printf(format string, args ...any) { _, _ = fmt.Fprintf(c, format, args...) }

func (c *canvas) text(x, y float64, anchor, class, text string) {
	c.printf("<text class=%q x=\"%.1f\" y=\"%.1f\" text-anchor=%q>%s</text>\n", class, x, y, anchor, escape(text))
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	c.printf("<line class=%q x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class, x1, y1, x2, y2)
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes all
	return b.String()
}

func style() string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "text{font:%dpx system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif}\n", fontSize)
	b.WriteString(".head{font-weight:600;font-size:15px}.ours{font-weight:600}\n.whisker{stroke-width:1.5}.halo{stroke-width:4}\npath,.mark{fill:none;stroke-width:2.2;stroke-linejoin:round}\n")
	for i, dash := range dashes {
		if dash != "" {
			_, _ = fmt.Fprintf(&b, "path.s%d{stroke-dasharray:%s}\n", i, dash)
		}
	}
	b.WriteString(theme("#ffffff", "#1f2328", "#59636e", "#dde3e9", lightColours))
	b.WriteString("@media (prefers-color-scheme:dark){\n" + theme("#0d1117", "#f0f6fc", "#a8b1bb", "#2c333c", darkColours) + "}\n")
	return b.String()
}

func theme(page, ink, pale, grid string, colours [MaxSeries]string) string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, ".page{fill:%s}text{fill:%s}.pale{fill:%s}.grid{stroke:%s}.axis{stroke:%s}"+
		".whisker{stroke:%s}.halo{stroke:%s}\n",
		page, ink, pale, grid, pale, ink, page)
	for i, colour := range colours {
		_, _ = fmt.Fprintf(&b, ".s%d{stroke:%s}.bar.s%d{fill:%s;stroke:none}\n", i, colour, i, colour)
	}
	return b.String()
}
