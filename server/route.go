package server

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/delayq/delayq/internal/wire"
)

// A verb is what a path and a method do.
type verb struct {
	name   string // in metrics
	right  Right  // on the queue; "" for any right on any
	status int    // of a success; 200 if zero
	run    func(*request) (any, error)
}

// repeatable reports whether a verb may be executed again when the reply to the first try is not
// known any more. What a first receive took comes back when its leases end.
func (v verb) repeatable() bool { return v.name == "receive" || v.name == "get" }

// ofQueue are the verbs below /v1/queues/{queue}/, by path and method.
var ofQueue = map[string]map[string]verb{
	"messages": {
		http.MethodPost: {"push", Push, http.StatusCreated, (*request).push},
		http.MethodGet:  {"peek", Read, 0, (*request).peek},
	},
	"messages/batch": {http.MethodPost: {"push_batch", Push, 0, (*request).pushBatch}},
	"get":            {http.MethodPost: {"get", Read, 0, (*request).get}},
	"cancel":         {http.MethodPost: {"cancel", Push, 0, (*request).cancel}},
	"reschedule":     {http.MethodPost: {"reschedule", Push, 0, (*request).reschedule}},
	"receive":        {http.MethodPost: {"receive", Consume, 0, (*request).receive}},
	"receive/end":    {http.MethodPost: {"receive_end", Consume, 0, (*request).endReceive}},
	"ack":            {http.MethodPost: {"ack", Consume, 0, (*request).ack}},
	"nack":           {http.MethodPost: {"nack", Consume, 0, (*request).nack}},
	"release":        {http.MethodPost: {"release", Consume, 0, (*request).release}},
	"extend":         {http.MethodPost: {"extend", Consume, 0, (*request).extend}},
	"stats":          {http.MethodGet: {"stats", Read, 0, (*request).stats}},
	"dead": {
		http.MethodPost: {"dead", Consume, 0, (*request).dead},
		http.MethodGet:  {"dead_list", Read, 0, (*request).listDead},
	},
	"dead/ids":     {http.MethodGet: {"dead_ids", Read, 0, (*request).listDeadIDs}},
	"dead/redrive": {http.MethodPost: {"dead_redrive", Admin, 0, (*request).redrive}},
	"dead/delete":  {http.MethodPost: {"dead_delete", Admin, 0, (*request).deleteDead}},
	"dead/trim":    {http.MethodPost: {"dead_trim", Admin, 0, (*request).trimDead}},
	"purge":        {http.MethodPost: {"purge", Admin, 0, (*request).purge}},
	"pause":        {http.MethodPost: {"pause", Admin, 0, (*request).pause}},
	"resume":       {http.MethodPost: {"resume", Admin, 0, (*request).resume}},
}

// ofStore are the verbs of no queue.
var ofStore = map[string]map[string]verb{
	"/v1/store":  {http.MethodGet: {"store", "", 0, (*request).store}},
	"/v1/queues": {http.MethodGet: {"queues", "", 0, (*request).list}},
}

// parameters are the names in the query of a URL that a verb knows.
var parameters = map[string][]string{
	"peek":      {"cursor", "limit"},
	"dead_list": {"cursor", "limit", "died_before", "reason_prefix"},
	"dead_ids":  {"cursor", "limit"},
}

const queuesPath = "/v1/queues/"

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set(instanceHeader, s.instance)
	s.boundBody(w, r)
	path := r.URL.EscapedPath()
	switch path {
	case "/healthz":
		s.health(w)
		return
	case "/readyz":
		s.ready(w, r)
		return
	case "/metrics":
		s.serveMetrics(w, r)
		return
	case "/openapi.json":
		serveDocument(w)
		return
	}
	verbs, queue := ofStore[path], ""
	if rest, ok := strings.CutPrefix(path, queuesPath); ok {
		name, action, _ := strings.Cut(rest, "/")
		if unescaped, err := url.PathUnescape(name); err == nil {
			verbs, queue = ofQueue[action], unescaped
		}
	}
	if verbs == nil {
		s.fail(w, r, wire.New(wire.NoSuchPath, "GET /openapi.json has all paths"))
		return
	}
	v, ok := verbs[r.Method]
	if !ok {
		w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(verbs)), ", "))
		s.fail(w, r, wire.New(wire.BadMethod, "the header Allow has the methods of this path"))
		return
	}
	s.serve(w, r, v, queue)
}
