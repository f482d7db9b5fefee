package hub

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	testRepo   = "org/some.model"
	testCommit = "0123456789abcdef0123456789abcdef01234567"
)

// content is the content of a file of the fake hub.
type content interface {
	io.ReaderAt
	Size() int64
}

// hashOf is a content's name as a blob: by SHA-256 for large files, by git's SHA-1 for others.
func hashOf(t testing.TB, c content, lfs bool) string {
	t.Helper()
	h := sha256.New()
	if !lfs {
		h = sha1.New()
		fmt.Fprintf(h, "blob %d\x00", c.Size())
	}
	if _, err := io.Copy(h, io.NewSectionReader(c, 0, c.Size())); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// fakeHub is a hub with one repository. It redirects to a second host that sends the contents.
type fakeHub struct {
	t     testing.TB
	files map[string]content
	sha   map[string]string // hashes

	answer func(v map[string]any) // changes the list of files
	// answers in place of the hub, when it returns true
	front func(w http.ResponseWriter, r *http.Request) bool
	back  func(w http.ResponseWriter, r *http.Request) bool            // in place of the second host
	wrap  func(http.ResponseWriter, *http.Request) http.ResponseWriter // around the second host's answers

	token     string
	listed    atomic.Int64
	contents  atomic.Int64 // requests for contents
	sent      atomic.Int64 // bytes of contents
	hub, host *httptest.Server
}

func newHub(t testing.TB, files map[string]string) *fakeHub {
	h := &fakeHub{t: t, files: map[string]content{}, sha: map[string]string{}}
	for name, text := range files {
		h.add(name, strings.NewReader(text))
	}
	h.hub = httptest.NewServer(http.HandlerFunc(h.serveHub))
	h.host = httptest.NewServer(http.HandlerFunc(h.serveContent))
	for _, s := range []*httptest.Server{h.hub, h.host} {
		s.Config.ErrorLog = nil
		t.Cleanup(s.Close)
	}
	return h
}

func isLFS(name string) bool { return isWeights(name) || name == "tokenizer.json" }

func (h *fakeHub) add(name string, c content) {
	h.files[name], h.sha[name] = c, hashOf(h.t, c, isLFS(name))
}

func (h *fakeHub) serveHub(w http.ResponseWriter, r *http.Request) {
	if h.front != nil && h.front(w, r) {
		return
	}
	if got := r.Header.Get("Authorization"); got != "" && got != "Bearer "+h.token {
		h.t.Errorf("%s: Authorization %q", r.URL, got)
	}
	if r.URL.Path == "/api/models/"+testRepo+"/revision/main" {
		h.listed.Add(1)
		list := []any{}
		for name, c := range h.files {
			f := map[string]any{"rfilename": name, "size": c.Size(), "blobId": h.sha[name]}
			if isLFS(name) {
				f["blobId"] = testCommit // of the pointer
				f["lfs"] = map[string]any{"sha256": h.sha[name], "size": c.Size(), "pointerSize": 134}
			}
			list = append(list, f)
		}
		v := map[string]any{"id": testRepo, "sha": testCommit, "siblings": list,
			"gguf": map[string]any{"architecture": "llama"}}
		if h.answer != nil {
			h.answer(v)
		}
		if err := json.NewEncoder(w).Encode(v); err != nil {
			h.t.Error(err)
		}
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/"+testRepo+"/resolve/"+testCommit+"/")
	if !ok || h.files[name] == nil {
		w.Header().Set("X-Error-Code", "EntryNotFound")
		http.NotFound(w, r)
		return
	}
	http.Redirect(w, r, h.host.URL+"/"+h.sha[name]+"?signature=secret", http.StatusFound)
}

func (h *fakeHub) serveContent(w http.ResponseWriter, r *http.Request) {
	h.contents.Add(1)
	if got := r.Header.Get("Authorization"); got != "" {
		h.t.Errorf("another host sees Authorization %q", got)
	}
	if h.back != nil && h.back(w, r) {
		return
	}
	if h.wrap != nil {
		w = h.wrap(w, r)
	}
	for name, hash := range h.sha {
		if strings.HasSuffix(r.URL.Path, "/"+hash) {
			w.Header().Set("ETag", `"e`+hash+`"`)
			c := h.files[name]
			http.ServeContent(&counting{w, &h.sent}, r, "", time.Time{}, io.NewSectionReader(c, 0, c.Size()))
			return
		}
	}
	http.NotFound(w, r)
}

type counting struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n.Add(int64(n))
	return n, err
}

// cutter cuts the connection after some bytes.
type cutter struct {
	http.ResponseWriter
	left int64
}

func (c *cutter) Write(p []byte) (int, error) {
	if int64(len(p)) >= c.left {
		_, _ = c.ResponseWriter.Write(p[:c.left])
		c.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	c.left -= int64(len(p))
	return c.ResponseWriter.Write(p)
}

// client is one that does not wait long.
func (h *fakeHub) client(cache string) *Client {
	c := New(h.hub.URL, cache)
	c.pause = time.Millisecond
	c.stall = 10 * time.Second
	c.chunk = 1 << 10
	c.sync = func(*os.File) error { return nil } // a test needs no durable files
	h.t.Cleanup(c.http.CloseIdleConnections)
	return c
}

// pull lists the repository and fetches a model of it.
func (h *fakeHub) pull(c *Client, what string) (string, error) {
	l, err := c.List(h.t.Context(), testRepo)
	if err != nil {
		return "", err
	}
	m, err := Choose(l.Files, what)
	if err != nil {
		return "", err
	}
	return c.Pull(h.t.Context(), l, &m, nil)
}

func (h *fakeHub) mustPull(c *Client, what string) string {
	h.t.Helper()
	p, err := h.pull(c, what)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// sameFile compares a file with the hub's.
func (h *fakeHub) sameFile(path, name string) {
	h.t.Helper()
	f, err := os.Open(path)
	if err != nil {
		h.t.Fatal(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() != h.files[name].Size() {
		h.t.Fatalf("%s: %v, %v", path, info, err)
	}
	if hashOf(h.t, io.NewSectionReader(f, 0, h.files[name].Size()), isLFS(name)) != h.sha[name] {
		h.t.Fatalf("%s is not what the hub has", path)
	}
}

// isPrefix checks that an incomplete file is a prefix of the content, and returns its size.
func (h *fakeHub) isPrefix(cache, name string) int64 {
	h.t.Helper()
	have, err := os.ReadFile(filepath.Join(cache, "models--org--some.model", "blobs", h.sha[name]+incomplete))
	if os.IsNotExist(err) {
		return 0
	}
	want := make([]byte, len(have))
	if _, err2 := h.files[name].ReadAt(want, 0); err != nil || err2 != nil && err2 != io.EOF || string(have) != string(want) {
		h.t.Fatalf("the incomplete file of %s, of %d bytes, is no prefix: %v, %v", name, len(have), err, err2)
	}
	return int64(len(have))
}

// noise is text without repetition, of n bytes.
func noise(n int, seed uint64) string {
	var b strings.Builder
	for x := seed*2 + 1; b.Len() < n; {
		x = x*6364136223846793005 + 1442695040888963407
		fmt.Fprintf(&b, "%016x", x^x>>29)
	}
	return b.String()[:n]
}

// generated is a large content that is computed as it is read.
type generated int64

var block = sync.OnceValue(func() []byte { return []byte(noise(1<<16, 9)) })

func (g generated) Size() int64 { return int64(g) }

func (g generated) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) && off < int64(g) {
		b := block()
		at, number := off%int64(len(b)), off/int64(len(b))
		k := copy(p[n:], b[at:min(int64(len(b)), at+int64(g)-off)])
		for i := range min(k, 8) { // no two blocks begin alike
			if at+int64(i) < 8 {
				p[n+i] ^= byte(number >> (8 * (at + int64(i))))
			}
		}
		n, off = n+k, off+int64(k)
	}
	if n < len(p) {
		err = io.EOF
	}
	return n, err
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
