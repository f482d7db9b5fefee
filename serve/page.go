package serve

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/draft"
)

// The page's files, which serve/page bundles.
//
//go:embed page/dist
var pageFiles embed.FS

// pageFile is a file of the page as it is sent.
type pageFile struct {
	kind, tag    string
	whole, small []byte // as it is, and compressed
}

// pageTypes are the page's files with their content types.
var pageTypes = map[string]string{
	"index.html": "text/html; charset=utf-8", "app.js": "text/javascript; charset=utf-8",
	"app.css": "text/css; charset=utf-8", "licenses.txt": "text/plain; charset=utf-8",
}

// page has the page's files by path. index.html names the others by paths with a hash of their contents, so browsers
// may keep those for good.
var page = sync.OnceValue(func() map[string]*pageFile {
	files, index := map[string]*pageFile{}, []byte(nil)
	entry := func(at, name string, data []byte) {
		sum := sha256.Sum256(data)
		f := &pageFile{kind: pageTypes[name], tag: hex.EncodeToString(sum[:8]), whole: data}
		var small bytes.Buffer
		w, _ := gzip.NewWriterLevel(&small, gzip.BestCompression)
		_, _ = w.Write(data)
		_ = w.Close()
		f.small = small.Bytes()
		if name != "index.html" {
			at = "/page/" + f.tag + "/" + name
			index = bytes.ReplaceAll(index, []byte("/page/"+name), []byte(at))
		}
		files[at] = f
	}
	index, _ = pageFiles.ReadFile("page/dist/index.html")
	list, _ := fs.Glob(pageFiles, "page/dist/*")
	for _, file := range list {
		if name := path.Base(file); name != "index.html" {
			data, _ := pageFiles.ReadFile(file)
			entry("", name, data)
		}
	}
	entry("/", "index.html", index)
	return files
})

// pagePolicy lets the page load its files and call this server, and nothing else. Text never becomes HTML.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// showPage answers with a file of the page.
func (s *Server) showPage(x *exchange) error {
	f := page()[x.r.URL.Path]
	if f == nil {
		return newError(http.StatusNotFound, "invalid_request_error", "not_found", "%s: the page has no such file",
			x.r.URL.Path)
	}
	h := x.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Vary", "Accept-Encoding")
	h.Set("ETag", `"`+f.tag+`"`)
	if h.Set("Cache-Control", "no-cache"); x.r.URL.Path != "/" {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if strings.Contains(x.r.Header.Get("If-None-Match"), h.Get("ETag")) {
		x.WriteHeader(http.StatusNotModified)
		return nil
	}
	data := f.whole
	if strings.Contains(x.r.Header.Get("Accept-Encoding"), "gzip") {
		data = f.small
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(data)))
	_, err := x.Write(data) // of a HEAD request, net/http drops it
	return err
}

// status is what the page shows of the server.
type status struct {
	Model    string          `json:"model"`
	Chat     bool            `json:"chat"` // the model has a chat template
	Context  int             `json:"context"`
	Budget   int             `json:"budget"`
	Drafter  string          `json:"drafter"`
	Drafters []string        `json:"drafters"` // that can run
	Running  int             `json:"running"`
	Waiting  int             `json:"waiting"`
	Prompt   int64           `json:"prompt_tokens"`
	Cached   int64           `json:"cached_tokens"`
	Tokens   int64           `json:"generated_tokens"`
	Cache    int64           `json:"cache_bytes"`
	Prefixes int64           `json:"cache_prefix_bytes"`
	Limit    int64           `json:"cache_limit_bytes"`
	Served   []statusDrafter `json:"served"`
}

type statusDrafter struct {
	Drafter string  `json:"drafter"`
	Rounds  int     `json:"rounds"`
	Tau     float64 `json:"tokens_per_round"`
	Accept  float64 `json:"acceptance_rate"`
	Speedup float64 `json:"speedup"` // 0: not known yet
}

// status answers GET /status.
func (s *Server) status(x *exchange) error {
	m, err := s.loaded()
	if err != nil {
		return err
	}
	_, noTemplate := m.Layout()
	e := m.EngineStats()
	a := status{Model: m.Name, Chat: noTemplate == nil, Context: m.Context(), Budget: grove.DefaultBudget,
		Drafter: m.Drafter, Drafters: m.drafters(), Running: e.Running, Waiting: e.Waiting, Prompt: e.PromptTokens,
		Cached: e.CachedTokens, Tokens: e.Tokens, Cache: e.CacheBytes, Prefixes: e.PrefixBytes, Limit: e.CacheLimit,
		Served: []statusDrafter{}}
	if a.Drafter == "" {
		a.Drafter = draft.Plain
	}
	for _, d := range byDrafter(e.Drafters, m.Drafter) {
		a.Served = append(a.Served, statusDrafter{d.Name, d.Rounds, d.Tau(), d.AcceptRate(), d.Speedup})
	}
	return x.writeJSON(http.StatusOK, &a)
}

// drafters lists the families that can run with the model without options.
func (m *Model) drafters() []string {
	m.listing.Do(func() {
		m.ready = []string{draft.Plain}
		for _, f := range draft.Families() {
			if _, err := draft.New(f.Name, m.Target()); err == nil {
				m.ready = append(m.ready, f.Name)
			}
		}
	})
	return m.ready
}
