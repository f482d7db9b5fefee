package hub

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// flip sends one byte other than it is.
type flip struct {
	http.ResponseWriter
	once *sync.Once
}

func (f *flip) Write(p []byte) (int, error) {
	f.once.Do(func() { p = slices.Clone(p); p[len(p)/2] ^= 1 })
	return f.ResponseWriter.Write(p)
}

// withHeader changes an answer's headers.
type withHeader struct {
	http.ResponseWriter
	change func(h http.Header)
}

func (w *withHeader) WriteHeader(status int) {
	w.change(w.Header())
	w.ResponseWriter.WriteHeader(status)
}

// Whatever a server says about lengths, ranges and versions, the cache accepts only the content
// with the hash in the hub's list. If the content is right nevertheless, it is accepted.
func TestLies(t *testing.T) {
	t.Parallel()
	header := func(key string, value func(i int64) string) func(h *fakeHub) {
		return func(h *fakeHub) {
			h.wrap = func(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
				return &withHeader{w, func(head http.Header) { head.Set(key, value(h.contents.Load())) }}
			}
		}
	}
	is := func(s string) func(int64) string { return func(int64) string { return s } }
	for name, lie := range map[string]struct {
		tell func(h *fakeHub)
		want string // of the error; empty: the file comes
	}{
		"a wrong byte": {func(h *fakeHub) {
			once := new(sync.Once)
			h.wrap = func(w http.ResponseWriter, _ *http.Request) http.ResponseWriter { return &flip{w, once} }
		}, "does not match its hash"},
		"another file of the same length": {func(h *fakeHub) {
			h.files["a.gguf"] = strings.NewReader(noise(5000, 77))
		}, "does not match its hash"},
		"a shorter file": {func(h *fakeHub) {
			h.files["a.gguf"] = strings.NewReader(noise(4000, 1))
			h.answer = func(v map[string]any) { lfsOf(v)["size"] = 5000 }
		}, "of 5000"},
		"a longer file": {func(h *fakeHub) {
			h.files["a.gguf"] = strings.NewReader(noise(6000, 1))
			h.answer = func(v map[string]any) { lfsOf(v)["size"] = 5000 }
		}, "of 5000"},
		"a shorter whole file": {func(h *fakeHub) { h.answerWhole(noise(4000, 1)) }, "sent 4000 bytes, but the hub lists 5000"},
		"a longer whole file":  {func(h *fakeHub) { h.answerWhole(noise(6000, 1)) }, "sent 6000 bytes, but the hub lists 5000"},
		"a longer list": {func(h *fakeHub) {
			h.answer = func(v map[string]any) { lfsOf(v)["size"] = 5001 }
		}, "of 5001"},
		"a hash": {func(h *fakeHub) {
			h.answer = func(v map[string]any) { lfsOf(v)["sha256"] = strings.Repeat("0", 64) }
		}, "does not match its hash"},
		"no hash": {func(h *fakeHub) { h.answer = func(v map[string]any) { lfsOf(v)["sha256"] = "../../x" } },
			"cannot be verified"},
		"no size":          {func(h *fakeHub) { h.answer = func(v map[string]any) { lfsOf(v)["size"] = -1 } }, "cannot be verified"},
		"no commit":        {func(h *fakeHub) { h.answer = func(v map[string]any) { v["sha"] = "../.." } }, "as the commit"},
		"a path outside":   {func(h *fakeHub) { h.move("../../a.gguf") }, "outside the repository"},
		"an absolute path": {func(h *fakeHub) { h.move("/a.gguf") }, "outside the repository"},
		"other paths":      {func(h *fakeHub) { h.add("/runs/17:30:11", strings.NewReader("x")) }, ""},
		"another range":    {header("Content-Range", is("bytes 7-1023/5000")), "instead of bytes"},
		"no range":         {header("Content-Range", is("")), "instead of bytes"},
		"unknown length": {header("Content-Range", func(i int64) string { return fmt.Sprintf("bytes %d-9/*", (i-1)*1024) }),
			""},
		"another ETag each": {header("ETag", func(i int64) string { return fmt.Sprintf(`"%d"`, i) }), ""},
		"a weak ETag":       {header("ETag", is(`W/"x"`)), ""},
		"no ETag":           {header("ETag", is("")), ""},
		"no ranges at all": {func(h *fakeHub) {
			h.wrap = func(w http.ResponseWriter, r *http.Request) http.ResponseWriter { r.Header.Del("Range"); return w }
		}, ""},
		"not JSON": {func(h *fakeHub) {
			h.front = func(w http.ResponseWriter, r *http.Request) bool { fmt.Fprint(w, "<html>"); return true }
		}, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, map[string]string{"a.gguf": noise(5000, 1)})
			lie.tell(h)
			c := h.client(t.TempDir())
			c.connections = 1 // requests in order
			path, err := h.pull(c, "a.gguf")
			if lie.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				h.sameFile(path, "a.gguf")
				return
			}
			if err == nil || !strings.Contains(err.Error(), lie.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v, want %q", err, lie.want)
			}
			for name := range tree(t, c.Cache) {
				if strings.Contains(name, "snapshots") || strings.Contains(name, "blobs") && !strings.HasSuffix(name, incomplete) {
					t.Errorf("the cache has %s", name)
				}
			}
			if strings.Contains(lie.want, "other bytes") && len(tree(t, c.Cache)) != 1 {
				t.Errorf("wrong bytes stay: %q", slices.Collect(maps.Keys(tree(t, c.Cache))))
			}
		})
	}
}

// move lists a.gguf under another name.
func (h *fakeHub) move(name string) {
	h.add(name, h.files["a.gguf"])
	delete(h.files, "a.gguf")
}

func (h *fakeHub) answerWhole(text string) {
	h.back = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = w.Write([]byte(text))
		return true
	}
}

// lfsOf is what a list says of its first large file.
func lfsOf(v map[string]any) map[string]any {
	for _, f := range v["siblings"].([]any) {
		if lfs, ok := f.(map[string]any)["lfs"].(map[string]any); ok {
			return lfs
		}
	}
	return nil
}

// A wrong beginning on the disk is found out by the hash, and the file is fetched whole.
func TestWrongPrefix(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3000, 5000, 7000} {
		h := newHub(t, map[string]string{"a.gguf": noise(5000, 1)})
		c := h.client(t.TempDir())
		part := mkdir(filepath.Join(c.Cache, "models--org--some.model", "blobs", h.sha["a.gguf"]+incomplete))
		if err := os.WriteFile(part, make([]byte, n), 0o666); err != nil {
			t.Fatal(err)
		}
		h.sameFile(h.mustPull(c, ""), "a.gguf")
	}
}

// A refusal says what to do; a temporary failure is retried, after the pause that the server asks
// for.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		status int
		header string // Key: value
		times  int64  // that it answers so; 0: for ever
		token  string
		want   string // of the error
	}{
		{401, "", 0, "", "or set HF_TOKEN"},
		{401, "", 0, "t", "your token does not give access"},
		{403, "X-Error-Code: GatedRepo", 0, "t", "access is granted on request"},
		{403, "", 0, "t", "your token does not give access"},
		{404, "", 0, "", "no such repository"},
		{404, "X-Error-Code: EntryNotFound", 0, "", "no such file"},
		{410, "", 0, "", "answered 410"},
		{429, "Retry-After: 1", 1, "", ""},
		{429, "Retry-After: 3600", 0, "", "asks to wait 1h0m0s"},
		{429, `RateLimit: "api";r=0;t=3600`, 0, "", "asks to wait 1h0m0s"},
		{503, `RateLimit: "api";r=7;t=3600`, 2, "", ""},
		{429, "", 2, "", ""},
		{500, "", 2, "", ""},
		{503, "Retry-After: soon", 2, "", ""},
		{500, "", 0, "", "run the command again"},
		{302, "Location: /", 0, "", "redirects endlessly"},
	} {
		for _, where := range []string{"/api/", "/" + testRepo + "/"} {
			t.Run(fmt.Sprint(x.status, x.header, where), func(t *testing.T) {
				h := newHub(t, map[string]string{"a.gguf": noise(500, 1)})
				h.token = x.token
				var times atomic.Int64
				h.front = func(w http.ResponseWriter, r *http.Request) bool {
					if !strings.HasPrefix(r.URL.Path, where) && r.URL.Path != "/" || x.times > 0 && times.Add(1) > x.times {
						return false
					}
					if key, value, ok := strings.Cut(x.header, ": "); ok {
						w.Header().Set(key, value)
					}
					w.WriteHeader(x.status)
					return true
				}
				c := h.client(t.TempDir())
				c.Token = x.token
				var notes []string
				c.Note = func(s string) { notes = append(notes, s) }
				begin := time.Now()
				path, err := h.pull(c, "")
				switch {
				case x.want == "" && err != nil:
					t.Error(err)
				case x.want == "":
					h.sameFile(path, "a.gguf")
					if len(notes) != int(x.times) {
						t.Errorf("notes %q", notes)
					}
				case err == nil || !strings.Contains(err.Error(), x.want):
					t.Errorf("error %v, want %q", err, x.want)
				}
				if x.status == 429 && x.header == "Retry-After: 1" && time.Since(begin) < time.Second {
					t.Error("it did not wait as long as asked for")
				}
			})
		}
	}
}
