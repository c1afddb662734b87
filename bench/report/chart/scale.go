package chart

import (
	"math"
	"strconv"

	"github.com/dustin/go-humanize"
	"gonum.org/v1/plot"
)

// A Scale places values on an axis.
type Scale int

// Scales.
const (
	Linear Scale = iota
	Log          // values above 0
	Nines        // shares of 1: as much room from 90 % to 99 % as from 0 to 90 %
)

const mostNines = 0.999999

// An Axis has a title with its unit. Values outside its limits are drawn at its ends.
type Axis struct {
	Title string
	Scale Scale
	From  float64 // 0 takes the least value on Log
	To    float64 // 0 takes the greatest value
}

// fit sets the limits that are missing.
func (a Axis) fit(values []float64) Axis {
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if a.Scale == Log && v <= 0 || a.Scale == Nines && v >= 1 {
			continue // it has no place but an end of the axis
		}
		least, most = min(least, v), max(most, v)
	}
	if least > most {
		least, most = 1, 1
	}
	if a.From == 0 && a.Scale == Log {
		a.From = least
	}
	if a.To == 0 {
		a.To = most
	}
	switch {
	case a.Scale == Nines:
		a.To = min(max(1-(1-a.To)/2, 0.9), mostNines) // with room for the greatest shares
	case a.Scale == Log && a.To <= a.From:
		a.To = 10 * a.From
	case a.To <= a.From:
		a.To = a.From + 1
	}
	return a
}

func (a Axis) clamp(v float64) float64 { return min(max(v, a.From), a.To) }

func (a Axis) apply(to *plot.Axis) {
	to.Label.Text, to.Label.Padding, to.Padding = a.Title, 6, 0
	to.Label.TextStyle.Font.Size, to.Tick.Label.Font.Size = textSize, textSize-1
	switch a.Scale {
	case Log:
		to.Scale, to.Tick.Marker = plot.LogScale{}, plot.TickerFunc(logTicks)
	case Nines:
		to.Scale, to.Tick.Marker = nines{}, plot.TickerFunc(ninesTicks)
	case Linear:
		to.Tick.Marker = plot.TickerFunc(linearTicks)
	}
}

// limit restores the limits that Plot.Add changed.
func (a Axis) limit(to *plot.Axis) { to.Min, to.Max = a.From, a.To }

type nines struct{}

// Normalize is the place of x between least, at 0, and most, at 1.
func (nines) Normalize(least, most, x float64) float64 {
	place := func(v float64) float64 { return -math.Log10(1 - v) }
	return (place(x) - place(least)) / (place(most) - place(least))
}

func ninesTicks(_, most float64) (ticks []plot.Tick) {
	for _, v := range []float64{0, 0.5, 0.9, 0.99, 0.999, 0.9999} {
		if v <= most {
			ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(100*v, 'f', -1, 64) + " %"})
		}
	}
	return ticks
}

// logTicks labels the powers of ten, and twice and five times them where there is room.
func logTicks(least, most float64) (ticks []plot.Tick) {
	for unit := math.Pow(10, math.Floor(math.Log10(least))); unit <= most; unit *= 10 {
		for _, times := range []float64{1, 2, 5} {
			tick := plot.Tick{Value: times * unit}
			if tick.Value < least*(1-1e-9) || tick.Value > most*(1+1e-9) {
				continue // a label there would take room away from the axis
			}
			if times == 1 || most/least < 300 {
				tick.Label = Number(tick.Value)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

func linearTicks(least, most float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(least, most)
	for i, tick := range ticks {
		if !tick.IsMinor() {
			ticks[i].Label = Number(tick.Value)
		}
	}
	return ticks
}

// Number writes a value with three significant digits, and commas between thousands. Halves round
// away from 0.
func Number(v float64) string {
	unit := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(v))+1e-9))
	if v != 0 {
		v = math.Round(v*unit) / unit
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64) // without the error of the division
	return humanize.Commaf(rounded)
}
