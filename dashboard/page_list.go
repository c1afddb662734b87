package dashboard

import (
	"net/url"

	"github.com/delayq/delayq"
)

type listData struct {
	List     string
	Dead     bool
	Lacking  string // why there is no list
	Filter   filter
	Rows     []row
	Looked   string // set where a filter has looked at messages
	First    bool   // the list's beginning
	Next     url.Values
	Can      map[string]string
	Gettable bool
}

// row is a message in a list.
type row struct {
	delayq.MessageInfo
	Type, Preview string
	Segment       string
}

// Whole is a message for the list of a store that cannot show one by its id.
func (r row) Whole() string { return viewBody(r.Body, "").Text }

func rowOf(m delayq.MessageInfo) row {
	r := row{MessageInfo: m, Type: m.Headers[delayq.TypeHeader], Preview: preview(m.Body)}
	if m.ID != "" {
		r.Segment = segment(m.ID)
	}
	if m.Err != nil {
		r.Preview = "cannot be read: " + short(m.Err.Error(), 200)
	}
	return r
}

// listPage shows one page of a list of messages.
func listPage(list string) func(v *visit) error {
	return func(v *visit) error {
		query := v.r.URL.Query()
		f, err := readFilter(query)
		if err != nil {
			return invalid(err)
		}
		d := listData{
			List: list, Dead: list == dead, Filter: f, First: query.Get("from") == "", Can: v.can(),
			Gettable: v.queue.Supports(delayq.Getting),
		}
		title, feature := "Messages", delayq.Peeking
		if d.Dead {
			title, feature = "Dead letters", delayq.Redriving
		}
		if !v.queue.Supports(feature) {
			d.Lacking = "This store does not support " + feature.String() + "."
		} else if err := d.fill(v, query.Get("from")); err != nil {
			return err
		}
		return v.show("list", &page{Title: title + " of " + visible(v.name), Tab: list, Data: d})
	}
}

func (d *listData) fill(v *visit, cursor string) error {
	got, err := find(v.ctx, v.lister(v.queue, v.name, d.List), d.Filter, cursor)
	if err != nil {
		return err
	}
	for _, m := range got.rows {
		d.Rows = append(d.Rows, rowOf(m))
	}
	if !d.Filter.Empty() {
		d.Looked = count(int64(got.looked))
	}
	if got.next != "" {
		d.Next = d.Filter.Values()
		d.Next.Set("from", got.next)
	}
	return nil
}
