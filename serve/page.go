package serve

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/speculate"
)

//go:embed page/dist
var pageFiles embed.FS

// pageFile is a file of the page, ready to send.
type pageFile struct {
	kind, tag    string
	whole, small []byte // uncompressed, and compressed
}

// page holds the page's files by path.
var page = sync.OnceValue(func() map[string]*pageFile {
	files := map[string]*pageFile{}
	for path, kind := range map[string]string{"/page/index.html": "text/html", "/page/app.js": "text/javascript",
		"/page/app.css": "text/css", "/page/licenses.txt": "text/plain"} {
		data, _ := pageFiles.ReadFile(strings.Replace(path[1:], "/", "/dist/", 1))
		var small bytes.Buffer
		w := gzip.NewWriter(&small)
		_, _ = w.Write(data)
		_ = w.Close()
		files[path] = &pageFile{kind + "; charset=utf-8", fmt.Sprintf(`"%x"`, sha256.Sum256(data)), data, small.Bytes()}
	}
	files["/"] = files["/page/index.html"]
	delete(files, "/page/index.html") // its links begin at the page
	return files
})

// pagePolicy lets the page load its own files and call this server, and nothing else. Text never becomes HTML.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// showPage answers with a file of the page.
func (s *Server) showPage(x *exchange) error {
	f := page()[x.r.URL.Path]
	if f == nil {
		return newError(http.StatusNotFound, "invalid_request_error", "not_found", "%s: the web page has no such file",
			x.r.URL.Path)
	}
	h, data := x.Header(), f.whole
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", f.tag)
	h.Set("Cache-Control", "no-cache") // revalidate each time, with the ETag
	if strings.Contains(x.r.Header.Get("Accept-Encoding"), "gzip") {
		data = f.small
		h.Set("Content-Encoding", "gzip")
	}
	http.ServeContent(x, x.r, "", time.Time{}, bytes.NewReader(data))
	return nil
}

// status is what the page needs to know about the server; figures are in the metrics.
type status struct {
	Model    string   `json:"model"`
	Chat     bool     `json:"chat"` // the model has a chat template
	Context  int      `json:"context"`
	Budget   int      `json:"budget"`
	Drafter  string   `json:"drafter"`
	Drafters []string `json:"drafters"` // that can run
}

// status answers GET /status for the model that the query names, or else the first one. It loads the model.
func (s *Server) status(x *exchange) error {
	m, err := x.useModel(x.r.URL.Query().Get("model"))
	if err != nil {
		return err
	}
	m.listing.Do(func() {
		m.ready = []string{registry.Plain}
		for _, f := range registry.Families() {
			if _, err := registry.New(f.Name, inside.Target(m)); err == nil {
				m.ready = append(m.ready, f.Name)
			}
		}
	})
	a := status{m.Name, true, m.Context(), speculate.DefaultBudget, m.Drafter, m.ready}
	if a.Drafter == "" {
		a.Drafter = registry.Plain
	} else if name, err := registry.Resolve(a.Drafter, inside.Target(m)); err == nil {
		a.Drafter = name
	}
	if _, err := m.Layout(); err != nil {
		a.Chat = false
	}
	return x.writeJSON(http.StatusOK, &a)
}
