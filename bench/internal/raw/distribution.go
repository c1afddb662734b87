package raw

import (
	"math"
	"slices"
	"time"
)

// A Distribution says how late messages were.
type Distribution struct {
	Messages int     `json:"messages"`
	Early    int     `json:"early"` // of the messages
	Least    int64   `json:"least"` // ns, negative where messages were early
	Most     int64   `json:"most"`  // ns
	Points   []Point `json:"points"`
}

// A Point says that this share of the messages was not later than that. The shares are every
// twentieth up to nine tenths, and from there ten to each further nine, as far as there are
// messages to tell them apart. Early messages count as punctual ones.
type Point struct {
	Share float64 `json:"share"`
	Late  int64   `json:"late"` // ns
}

func distribute(late []time.Duration) *Distribution {
	d := &Distribution{Messages: len(late)}
	if len(late) == 0 {
		return d
	}
	sorted := slices.Sorted(slices.Values(late))
	d.Early, _ = slices.BinarySearch(sorted, 0)
	d.Least, d.Most = int64(sorted[0]), int64(sorted[len(sorted)-1])
	for _, share := range shares(len(late)) {
		last := max(0, int(math.Ceil(share*float64(len(sorted))-1e-9))-1)
		d.Points = append(d.Points, Point{Share: share, Late: int64(max(0, sorted[last]))})
	}
	return d
}

func shares(messages int) (all []float64) {
	for i := range 19 {
		all = append(all, float64(i)/20)
	}
	for i := 11; math.Pow10(i/10) < float64(messages); i++ {
		all = append(all, 1-math.Pow(10, -float64(i)/10))
	}
	return append(all, 1)
}

// At is how late the share of the messages that was the most punctual was at most, in ns, and 0
// without messages.
func (d *Distribution) At(share float64) int64 {
	const rounding = 1e-9
	i := slices.IndexFunc(d.Points, func(p Point) bool { return p.Share >= share-rounding })
	if i < 0 {
		return d.Most
	}
	return d.Points[i].Late
}
