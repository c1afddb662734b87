package dashboard

import (
	"context"
	"net/http"
	"strconv"
	"strings"
)

type queueRow struct {
	Name string
	figures
}

type queuesData struct {
	Find          string
	Rows          []queueRow
	Shown, All    string
	Before, After string // numbers of pages, "" for none
	Lacks         string // why there are more queues than these
}

// queuesPage shows all queues.
func (h *Handler) queuesPage(w http.ResponseWriter, r *http.Request) {
	if err := h.authorize(r, View, ""); err != nil {
		h.fail(w, r, &failure{http.StatusForbidden, "You may not see the queues: " + visible(err.Error())})
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), pageLimit)
	defer cancel()
	listed, err := h.handles.all(ctx)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	d := queuesData{Find: r.URL.Query().Get("find")}
	if listed.lacks != nil {
		d.Lacks = short(strings.ReplaceAll(listed.lacks.Error(), "\n", "; "), 500)
	}
	var may []string
	for _, name := range listed.names {
		if strings.Contains(strings.ToLower(name), strings.ToLower(d.Find)) && h.authorize(r, View, name) == nil {
			may = append(may, name)
		}
	}
	d.All = count(int64(len(may)))
	number, _ := strconv.Atoi(r.URL.Query().Get("page"))
	number = min(max(number, 1), 1+max(len(may)-1, 0)/queuesShown)
	if number > 1 {
		d.Before = strconv.Itoa(number - 1)
	}
	if number*queuesShown < len(may) {
		d.After = strconv.Itoa(number + 1)
	}
	shown := may[min((number-1)*queuesShown, len(may)):min(number*queuesShown, len(may))]
	all := h.snapshot(ctx, shown)
	for _, name := range shown {
		d.Rows = append(d.Rows, queueRow{name, all[name]})
	}
	d.Shown = count(int64(len(shown)))
	h.render(w, r, http.StatusOK, "queues", &page{Title: "Queues", Live: shown, Data: d})
}
