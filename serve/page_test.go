package serve_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/serve"
)

// maxPage is the most bytes that the page may send, compressed.
const maxPage = 250_000

// The page and its files have headers that let browsers cache them and restrict the page to them; no key is needed.
func TestPage(t *testing.T) {
	s := start(t, nil, serve.Options{Keys: []string{"secret"}})
	status, header, index := s.send("GET", "/", "", "Accept-Encoding", "identity")
	if status != 200 || !strings.HasPrefix(header.Get("Content-Type"), "text/html") {
		t.Fatalf("status %d, %v", status, header)
	}
	paths := []string{"/"}
	for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(index, -1) {
		if !strings.HasPrefix(m[1], "data:") {
			if strings.HasPrefix(m[1], "/") {
				t.Errorf("the page links to %s, which below a path of a proxy is not its own", m[1])
			}
			paths = append(paths, "/"+m[1])
		}
	}
	if len(paths) < 4 {
		t.Fatalf("the page names %q", paths)
	}
	weight := 0
	for _, path := range paths {
		_, header, whole := s.send("GET", path, "", "Accept-Encoding", "identity")
		policy := header.Get("Content-Security-Policy")
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") ||
			!strings.Contains(policy, "default-src 'none'") || header.Get("X-Content-Type-Options") != "nosniff" ||
			header.Get("Cache-Control") != "no-cache" || header.Get("ETag") == "" {
			t.Errorf("%s: headers %v", path, header)
		}
		status, again, body := s.send("GET", path, "", "If-None-Match", header.Get("ETag"))
		if status != http.StatusNotModified || body != "" || again.Get("ETag") != header.Get("ETag") {
			t.Errorf("%s: with its ETag the status is %d, %q", path, status, body)
		}
		if status, head, _ := s.send("HEAD", path, ""); status != 200 || head.Get("Content-Type") != header.Get("Content-Type") {
			t.Errorf("%s: HEAD: status %d, %v", path, status, head)
		}
		_, header, small := s.send("GET", path, "", "Accept-Encoding", "gzip")
		r, err := gzip.NewReader(strings.NewReader(small))
		if err != nil || header.Get("Content-Encoding") != "gzip" || header.Get("Vary") != "Accept-Encoding" {
			t.Fatalf("%s: %v, %v", path, err, header)
		}
		if data, err := io.ReadAll(r); err != nil || string(data) != whole {
			t.Errorf("%s: compressed it is another file: %v", path, err)
		}
		weight += len(small)
	}
	if weight > maxPage {
		t.Errorf("the page has %d bytes compressed: at most %d", weight, maxPage)
	}
	for _, path := range []string{"/page/", "/page/dist/app.js", "/page/../page.go"} {
		if status, _, _ := s.send("GET", path, ""); status != 404 && status != 401 {
			t.Errorf("%s: status %d", path, status)
		}
	}
	if status, _, _ := s.send("POST", "/", ""); status != 405 {
		t.Errorf("POST: status %d", status)
	}
}

// The server's status for the page needs a key, and is true.
func TestStatus(t *testing.T) {
	s := start(t, nil, serve.Options{Keys: []string{"secret"}})
	if status, _, _ := s.send("GET", "/status", ""); status != 401 {
		t.Errorf("without a key: status %d", status)
	}
	status, _, text := s.send("GET", "/status", "", "X-Api-Key", "secret")
	if status != 200 {
		t.Fatalf("status %d: %s", status, text)
	}
	after := object(t, text)
	var drafters []string
	for _, d := range after["drafters"].([]any) {
		drafters = append(drafters, d.(string))
	}
	if after["model"] != "test/model" || after["drafter"] != "lookup" || after["chat"] != true ||
		!slices.Contains(drafters, registry.Plain) || !slices.Contains(drafters, "eagle3") {
		t.Errorf("status %v", after)
	}
	for _, d := range drafters { // all that are offered can be asked for
		body := `{"prompt": "a", "max_tokens": 2, "drafter": "` + d + `"}`
		if status, _, text := s.send("POST", "/v1/completions", body, "X-Api-Key", "secret"); status != 200 {
			t.Errorf("drafter %s: status %d: %s", d, status, text)
		}
	}
	m, _ := embedded()
	s.SetModel(&serve.Model{Model: m, Drafter: registry.Auto})
	_, _, text = s.send("GET", "/status", "", "X-Api-Key", "secret")
	if name, _, _ := registry.Split(object(t, text)["drafter"].(string)); !slices.Contains(drafters, name) {
		t.Errorf("auto is shown as %s: want the drafter that it stands for", name)
	}
}

// The bundle's requests are relative to the page: it may be under a proxy's path.
func TestPageBelowAPath(t *testing.T) {
	data, err := os.ReadFile("page/dist/app.js")
	if err != nil {
		t.Fatal(err)
	}
	calls := regexp.MustCompile(`fetch\(.{4}`).FindAllString(string(data), -1)
	if len(calls) == 0 {
		t.Error("there are no calls")
	}
	for _, call := range calls {
		if !strings.HasPrefix(call, `fetch("."`) {
			t.Errorf("%s… leads elsewhere", call)
		}
	}
}

// The bundle does not request anything from other hosts.
func TestPageNamesNoHost(t *testing.T) {
	known := regexp.MustCompile(`^https?://(www\.w3\.org/|)$`) // names of namespaces; a prefix of links in text
	for _, name := range []string{"app.js", "app.css", "index.html"} {
		data, err := os.ReadFile("page/dist/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, url := range regexp.MustCompile(`https?://([\w.-]+/?)?`).FindAllString(string(data), -1) {
			if !known.MatchString(url) {
				t.Errorf("%s names %s", name, url)
			}
		}
	}
}
