package chart

import (
	"math"
	"strconv"
	"strings"
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

// An Axis has a title with its unit.
type Axis struct {
	Title string
	Scale Scale
	From  float64 // on Log, what is below stands at the edge; 0 takes the least value
	To    float64 // 0 takes the greatest value
}

// span is an axis with its ends, which lies between two places of the picture.
type span struct {
	Axis
	at, reach float64 // where From is, and how far it is from there to To
}

// over fits an axis to values.
func (a Axis) over(values []float64, at, reach float64) span {
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if a.shows(v) {
			least, most = math.Min(least, v), math.Max(most, v)
		}
	}
	if least > most {
		least, most = 1, 1
	}
	if a.From == 0 {
		a.From = map[Scale]float64{Log: least}[a.Scale]
	}
	if a.To == 0 {
		a.To = most
	}
	return span{a.widened(), at, reach}
}

// shows says whether the axis has a place for a value, and not only an edge.
func (a Axis) shows(v float64) bool {
	switch a.Scale {
	case Log:
		return v > 0
	case Nines:
		return v < 1
	case Linear:
	}
	return true
}

// widened ends at marks.
func (a Axis) widened() Axis {
	switch a.Scale {
	case Log:
		a.From, a.To = roundDown(a.From), roundUp(a.To)
		if a.From == a.To {
			a.To *= 10
		}
	case Linear:
		if a.To <= a.From {
			a.To = a.From + 1
		}
	case Nines:
		room := 1 - (1-a.To)/2 // for what is beyond the last share
		a.To = math.Min(math.Max(room, 0.9), mostNines)
	}
	return a
}

// roundDown is 1, 2 or 5 times a power of ten.
func roundDown(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(v)+1e-9))
	for _, times := range []float64{5, 2} {
		if v >= times*unit*(1-1e-9) {
			return times * unit
		}
	}
	return unit
}

func roundUp(v float64) float64 {
	down := roundDown(v)
	switch {
	case down >= v*(1-1e-9):
		return down
	case math.Round(down/math.Pow(10, math.Floor(math.Log10(down)+1e-9))) == 2:
		return down / 2 * 5
	}
	return roundDown(down * 2.1)
}

func (s span) place(v float64) float64 {
	from, to := s.bend(s.From), s.bend(s.To)
	return s.at + s.reach*math.Max(0, math.Min(1, (s.bend(v)-from)/(to-from)))
}

func (s span) bend(v float64) float64 {
	switch s.Scale {
	case Log:
		return math.Log10(math.Max(v, s.From))
	case Nines:
		return -math.Log10(1 - math.Min(v, mostNines))
	case Linear:
	}
	return v
}

// marks are values to label.
func (s span) marks() (marks []float64) {
	switch s.Scale {
	case Nines:
		for _, v := range []float64{0, 0.5, 0.9, 0.99, 0.999, 0.9999} {
			if v <= s.To+1e-9 {
				marks = append(marks, v)
			}
		}
	case Log:
		return s.decades()
	case Linear:
		step := roundUp((s.To - s.From) / 6)
		for i := math.Ceil(s.From/step - 1e-9); i*step <= s.To*(1+1e-9); i++ {
			marks = append(marks, i*step)
		}
	}
	return marks
}

// decades are powers of ten, and more where these are few.
func (s span) decades() (marks []float64) {
	times := []float64{1}
	if math.Log10(s.To/s.From) < 2.5 {
		times = []float64{1, 2, 5}
	}
	for unit := math.Pow(10, math.Floor(math.Log10(s.From)+1e-9)); unit <= s.To; unit *= 10 {
		for _, t := range times {
			if v := t * unit; v >= s.From*(1-1e-9) && v <= s.To*(1+1e-9) {
				marks = append(marks, v)
			}
		}
	}
	return marks
}

func (s span) label(v float64) string {
	if s.Scale == Nines {
		return strconv.FormatFloat(100*v, 'f', -1, 64) + " %"
	}
	return Number(v)
}

// Number writes a value with three digits that count, and commas between thousands.
func Number(v float64) string {
	if v == 0 {
		return "0"
	}
	exponent := int(math.Floor(math.Log10(math.Abs(v)) + 1e-9))
	decimals := max(0, 2-exponent)
	unit := math.Pow(10, float64(2-exponent))
	text := strconv.FormatFloat(math.Round(v*unit)/unit, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		return strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return commas(text)
}

func commas(digits string) string {
	sign, digits := "", digits
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}
