package dashboard

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed static
var staticFiles embed.FS

// page is what all templates get.
type page struct {
	Title    string
	Root     string // the way to the dashboard's root, as "../"
	Version  string // of the static files
	ReadOnly string
	Notice   string
	CSRF     string
	Tab      string
	Queue    string
	Here     string   // the way to the queue's page
	Live     []string // queues whose figures the page shows
	Refresh  int      // seconds, for browsers without scripts; 0 for never
	Data     any
}

// Query is that of the page's figures.
func (p *page) Query() string {
	query := url.Values{}
	for _, name := range p.Live {
		query.Add("q", segment(name))
	}
	return query.Encode()
}

var pages = parsePages()

func parsePages() map[string]*template.Template {
	base := template.Must(template.New("base").Funcs(template.FuncMap{
		"visible": visible, "short": short, "segment": segment, "count": count, "clock": clock,
		"relative": func(t time.Time) string { return relative(t, time.Now()) },
		"iso":      func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"query":    func(v url.Values) template.URL { return template.URL(v.Encode()) }, //nolint:gosec // encoded
	}).ParseFS(templateFiles, "templates/base.html"))
	all := make(map[string]*template.Template)
	files, _ := fs.Glob(templateFiles, "templates/*.html")
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if name != "base" {
			all[name] = template.Must(template.Must(base.Clone()).ParseFS(templateFiles, file))
		}
	}
	return all
}

// render writes a page. It is rendered as a whole before anything is sent.
func (h *Handler) render(w http.ResponseWriter, r *http.Request, status int, name string, p *page) {
	p.Root, p.ReadOnly, p.Version = root(r), h.readOnly, staticVersion
	if p.Queue != "" {
		p.Here = p.Root + "queues/" + segment(p.Queue)
	}
	if h.readOnly == "" {
		p.CSRF = h.csrf.token(w, r)
	}
	if p.Notice == "" {
		p.Notice = h.notices.get(r.URL.Query().Get("notice"))
	}
	var out bytes.Buffer
	if err := pages[name].ExecuteTemplate(&out, "base", p); err != nil {
		h.log.Error("delayq dashboard: a template failed", "error", err)
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = out.WriteTo(w)
}

// show renders a page of the visit's queue.
func (v *visit) show(name string, p *page) error {
	p.Queue = v.name
	v.render(v.w, v.r, http.StatusOK, name, p)
	return nil
}

// staticVersion is a part of the URLs of static files, so that browsers may keep them.
var staticVersion = func() string {
	sum := sha256.New()
	files, _ := fs.Glob(staticFiles, "static/*")
	for _, file := range files {
		data, _ := fs.ReadFile(staticFiles, file)
		sum.Write(data)
	}
	return hex.EncodeToString(sum.Sum(nil))[:12]
}()

func serveStatic(w http.ResponseWriter, r *http.Request) {
	data, err := fs.ReadFile(staticFiles, "static/"+r.PathValue("file"))
	if err != nil {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	if r.URL.Query().Get("v") == staticVersion {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	http.ServeContent(w, r, r.PathValue("file"), time.Time{}, bytes.NewReader(data))
}
