package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// tree lists a folder: contents of small files, targets of links.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		rel = filepath.ToSlash(rel)
		if d.Type()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(p)
			all[rel] = "-> " + filepath.ToSlash(to)
			return err
		}
		b, err := os.ReadFile(p)
		all[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The cache has the layout of the hub's Python library, to the file. What is there is not fetched
// again.
func TestPullLayout(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege there")
	}
	files := map[string]string{
		"m-Q4_K_M.gguf": noise(5000, 1), "m-Q8_0.gguf": noise(9000, 2), "config.json": "{}", "README.md": "no",
		"sub/model-Q6_K-00001-of-00002.gguf": noise(100, 3), "sub/model-Q6_K-00002-of-00002.gguf": "",
	}
	h := newHub(t, files)
	h.token = "hf_secret"
	c := h.client(t.TempDir())
	c.Token = h.token
	if p := h.mustPull(c, ""); p != filepath.Join(c.Cache, "models--org--some.model", "snapshots",
		testCommit, "m-Q4_K_M.gguf") {
		t.Error(p)
	}
	if p := h.mustPull(c, "q6_k"); !strings.HasSuffix(filepath.ToSlash(p), "/sub/model-Q6_K-00001-of-00002.gguf") {
		t.Error(p)
	}
	one := h.sha["m-Q4_K_M.gguf"]
	two := h.sha["sub/model-Q6_K-00001-of-00002.gguf"]
	three := h.sha["sub/model-Q6_K-00002-of-00002.gguf"]
	snapshot := "models--org--some.model/snapshots/" + testCommit
	want := map[string]string{
		"models--org--some.model/refs/main":                 testCommit,
		"models--org--some.model/blobs/" + one:              files["m-Q4_K_M.gguf"],
		"models--org--some.model/blobs/" + two:              noise(100, 3),
		"models--org--some.model/blobs/" + three:            "",
		snapshot + "/m-Q4_K_M.gguf":                         "-> ../../blobs/" + one,
		snapshot + "/sub/model-Q6_K-00001-of-00002.gguf":    "-> ../../../blobs/" + two,
		snapshot + "/sub/model-Q6_K-00002-of-00002.gguf":    "-> ../../../blobs/" + three,
		".locks/models--org--some.model/" + one + ".lock":   "",
		".locks/models--org--some.model/" + two + ".lock":   "",
		".locks/models--org--some.model/" + three + ".lock": "",
	}
	if got := tree(t, c.Cache); !maps.Equal(got, want) {
		t.Errorf("the cache is %q", got)
	}
	requests := h.contents.Load()
	h.mustPull(c, "Q4_K_M")
	if h.contents.Load() != requests {
		t.Error("a file in the cache was fetched again")
	}
	// A blob that another program fetched for another commit is linked.
	if err := os.RemoveAll(filepath.Join(c.Cache, snapshot)); err != nil {
		t.Fatal(err)
	}
	h.sameFile(h.mustPull(c, "Q4_K_M"), "m-Q4_K_M.gguf")
	if h.contents.Load() != requests {
		t.Error("a blob in the cache was fetched again")
	}
}

// A folder is fetched with the files next to its weights. check runs before the weights, and can
// refuse them.
func TestPullFolder(t *testing.T) {
	t.Parallel()
	h := newHub(t, map[string]string{
		"config.json": "{}", "tokenizer.json": noise(3000, 1), "model.safetensors.index.json": "{}", "notes.json": "no",
		"model-00001-of-00002.safetensors": noise(4000, 2), "model-00002-of-00002.safetensors": noise(2000, 3),
		"consolidated.safetensors": "no", "onnx/model.onnx": "no",
	})
	c := h.client(t.TempDir())
	l, err := c.List(t.Context(), testRepo)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Choose(l.Files, "")
	if err != nil {
		t.Fatal(err)
	}
	refusal := errors.New("no")
	saw := 0
	if _, err := c.Pull(t.Context(), l, &m, func(dir string) error {
		saw = len(tree(t, dir))
		return refusal
	}); !errors.Is(err, refusal) || saw != 3 {
		t.Errorf("%v after %d files", err, saw)
	}
	if _, err := c.Find(Name{Repo: testRepo}); !errors.Is(err, ErrNotCached) {
		t.Errorf("half a model is found: %v", err)
	}
	dir, err := c.Pull(t.Context(), l, &m, func(string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if names := slices.Sorted(maps.Keys(tree(t, dir))); len(names) != 5 {
		t.Error(names)
	}
	for _, f := range m.Files {
		h.sameFile(filepath.Join(dir, f.Path), f.Path)
	}
	if found, err := c.Find(Name{testRepo, "safetensors"}); err != nil || found != dir {
		t.Errorf("%s, %v", found, err)
	}
}

// Wherever connections are cut and however often the command is stopped, the file on disk is at any
// moment a prefix of the content, no byte on disk is fetched again, and the file is complete in the
// end.
func TestCuts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		size := rapid.IntRange(0, 40_000).Draw(r, "size")
		h := newHub(t, map[string]string{"a.gguf": noise(size, uint64(size))})
		defer h.hub.Close()
		defer h.host.Close()
		cuts := rapid.SliceOfN(rapid.IntRange(0, size+100), 0, 30).Draw(r, "cuts")
		stops := rapid.SliceOfN(rapid.IntRange(0, size+100), 0, 3).Draw(r, "stops")
		ranges := rapid.Bool().Draw(r, "ranges")
		var mu sync.Mutex
		h.wrap = func(w http.ResponseWriter, req *http.Request) http.ResponseWriter {
			mu.Lock()
			defer mu.Unlock()
			if !ranges {
				req.Header.Del("Range")
			}
			if len(cuts) == 0 {
				return w
			}
			w = &cutter{w, int64(cuts[0]) + 1}
			cuts = cuts[1:]
			return w
		}
		c := h.client(t.TempDir())
		defer c.http.CloseIdleConnections()
		c.chunk = int64(rapid.IntRange(1000, 30_000).Draw(r, "chunk"))
		c.connections = rapid.IntRange(1, 6).Draw(r, "connections")
		for attempt := 0; ; attempt++ {
			had := h.isPrefix(c.Cache, "a.gguf")
			ctx, cancel := context.WithCancel(t.Context())
			c.Progress = func(stage string, done, total int64) {
				if stage != "fetching" {
					return
				}
				if total != int64(size)-had || done > total {
					r.Errorf("%d of %d, with %d of %d there", done, total, had, size)
				}
				if attempt < len(stops) && done >= int64(stops[attempt]) {
					cancel()
				}
			}
			l, err := c.List(ctx, testRepo)
			if err != nil {
				r.Fatal(err)
			}
			m, err := Choose(l.Files, "")
			if err != nil {
				r.Fatal(err)
			}
			path, err := c.Pull(ctx, l, &m, nil)
			cancel()
			if err == nil {
				h.sameFile(path, "a.gguf")
				return
			}
			if attempt > 40 {
				r.Fatalf("never done: %v", err)
			}
			if kept := h.isPrefix(c.Cache, "a.gguf"); kept < had {
				r.Fatalf("%d bytes of %d are left", kept, had)
			}
		}
	})
}

// A large file over several connections, ten of which are cut, is complete and verified. It has 128
// MiB, and with GROVE_LARGE=1 in the environment 1 GiB.
func TestLargeFileCutTenTimes(t *testing.T) {
	t.Parallel()
	size := generated(128 << 20)
	if os.Getenv("GROVE_LARGE") != "" {
		size = 1 << 30
	}
	h := newHub(t, nil)
	h.add("big-Q4_0.gguf", size)
	var cuts atomic.Int64
	h.wrap = func(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
		if n := h.contents.Load(); n%3 == 1 && cuts.Load() < 10 {
			return &cutter{w, 1 + 300_000*cuts.Add(1)}
		}
		return w
	}
	c := h.client(t.TempDir())
	c.chunk = int64(size) / 256
	path := h.mustPull(c, "Q4_0")
	if cuts.Load() != 10 {
		t.Errorf("%d cuts", cuts.Load())
	}
	h.sameFile(path, "big-Q4_0.gguf")
	if extra := h.sent.Load() - int64(size); extra > 10*int64(c.chunk) {
		t.Errorf("%d bytes were fetched twice", extra)
	}
}

// An address that the hub redirects to may expire: here after two requests. Then the hub is asked
// again.
func TestExpiredAddress(t *testing.T) {
	t.Parallel()
	h := newHub(t, map[string]string{"a.gguf": noise(9000, 1)})
	var issued, used atomic.Int64
	h.front = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			return false
		}
		used.Store(0)
		http.Redirect(w, r, fmt.Sprintf("%s/%d/%s", h.host.URL, issued.Add(1), h.sha["a.gguf"]), http.StatusFound)
		return true
	}
	h.back = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, fmt.Sprintf("/%d/", issued.Load())) && used.Add(1) <= 2 {
			return false
		}
		http.Error(w, "expired", http.StatusForbidden)
		return true
	}
	c := h.client(t.TempDir())
	c.connections = 1
	h.sameFile(h.mustPull(c, ""), "a.gguf")
	if n := issued.Load(); n != 5 {
		t.Errorf("%d addresses for 9 requests", n)
	}
}

// A connection that brings nothing is given up and tried again.
func TestStall(t *testing.T) {
	t.Parallel()
	for _, after := range []int{-1, 0, 700} { // before the header, before the first byte, in the middle
		h := newHub(t, map[string]string{"a.gguf": noise(900, 1)})
		var n atomic.Int64
		h.back = func(w http.ResponseWriter, r *http.Request) bool {
			if n.Add(1) > 1 {
				return false
			}
			if after >= 0 {
				w.Header().Set("Content-Range", "bytes 0-899/900")
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write([]byte(noise(900, 1)[:after]))
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
			return true
		}
		c := h.client(t.TempDir())
		c.stall = 100 * time.Millisecond
		var note string
		c.Note = func(s string) { note = s }
		h.sameFile(h.mustPull(c, ""), "a.gguf")
		if !strings.Contains(note, "stalled") {
			t.Errorf("note %q", note)
		}
	}
}

// A disk that is too small is refused before anything is fetched. If a disk fills up, the data on
// it stays, and the next command continues.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	h := newHub(t, map[string]string{"a.gguf": noise(50_000, 1)})
	c := h.client(t.TempDir())
	c.space = func(string) (int64, error) { return 49_999, nil }
	if _, err := h.pull(c, ""); err == nil || !strings.Contains(err.Error(), "grove rm") || h.contents.Load() != 0 {
		t.Errorf("%v after %d requests", err, h.contents.Load())
	}
	c.space = freeSpace
	left := 20_000
	c.write = func(f *os.File, p []byte) (int, error) {
		if len(p) <= left {
			left -= len(p)
			return f.Write(p)
		}
		n, err := f.Write(p[:left])
		left = 0
		return n, errors.Join(err, &fs.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC})
	}
	_, err := h.pull(c, "")
	if err == nil || !strings.Contains(err.Error(), "the disk is full: free") || !strings.Contains(err.Error(), "are kept") {
		t.Errorf("error %v", err)
	}
	if n := h.isPrefix(c.Cache, "a.gguf"); n != 20_000 {
		t.Errorf("%d bytes are kept", n)
	}
	c.write = (*os.File).Write
	c.space = func(string) (int64, error) { return 30_000, nil } // existing data needs no space again
	sent := h.sent.Load()
	h.sameFile(h.mustPull(c, ""), "a.gguf")
	if n := h.sent.Load() - sent; n > 40_000 { // answers to the last command may still be on their way
		t.Errorf("%d bytes were fetched", n)
	}
}

// Without symbolic links files lie in the snapshot, and all else is the same.
func TestNoSymlinks(t *testing.T) {
	t.Parallel()
	h := newHub(t, map[string]string{"a-Q8_0.gguf": noise(500, 1), "b-Q4_0.gguf": noise(500, 1)})
	c := h.client(t.TempDir())
	c.symlink = func(string, string) error { return errors.New("no privilege") }
	h.sameFile(h.mustPull(c, "q8_0"), "a-Q8_0.gguf")
	h.sameFile(h.mustPull(c, "q4_0"), "b-Q4_0.gguf") // the same content
	for name, text := range tree(t, c.Cache) {
		if strings.HasPrefix(text, "->") || strings.Contains(name, "blobs") {
			t.Errorf("the cache has %s", name)
		}
	}
	requests := h.contents.Load()
	h.mustPull(c, "q8_0")
	if h.contents.Load() != requests {
		t.Error("a file in the cache was fetched again")
	}
	if freed, err := c.Remove(Name{testRepo, "q8_0"}); err != nil || freed != 500 {
		t.Errorf("%d, %v", freed, err)
	}
	// A blob of another program is copied.
	blob := mkdir(c.blob(testRepo, File{Hash: h.sha["a-Q8_0.gguf"]}))
	if err := os.WriteFile(blob, []byte(noise(500, 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	h.sameFile(h.mustPull(c, "q8_0"), "a-Q8_0.gguf")
	if h.contents.Load() != requests || !hasSize(blob, 500) {
		t.Error("the blob was not copied")
	}
}

// If several run at the same time, one fetches; the others wait and use its result.
func TestTogether(t *testing.T) {
	t.Parallel()
	h := newHub(t, map[string]string{"a.gguf": noise(20_000, 1)})
	cache := t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			path, err := h.pull(h.client(cache), "")
			if err != nil {
				t.Error(err)
				return
			}
			h.sameFile(path, "a.gguf")
		})
	}
	all.Wait()
	if n := h.sent.Load(); n != 20_000 {
		t.Errorf("%d bytes were sent", n)
	}
}

// Offline, nothing is asked for.
func TestOffline(t *testing.T) {
	t.Parallel()
	h := newHub(t, map[string]string{"a.gguf": "x"})
	c := h.client(t.TempDir())
	c.Offline = true
	if _, err := h.pull(c, ""); err == nil || !strings.Contains(err.Error(), "HF_HUB_OFFLINE") || h.listed.Load() != 0 {
		t.Error(err)
	}
}

// Pauses double, up to half a minute, and a little chance is added.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New("http://none", "")
		c.tries = 9
		last := time.Now()
		var pauses []time.Duration
		err := c.retry(t.Context(), c.tries, func() (bool, error) {
			pauses = append(pauses, time.Since(last))
			last = time.Now()
			return false, errors.New("no")
		})
		if err == nil || len(pauses) != c.tries {
			t.Fatalf("%v after %v", err, pauses)
		}
		for i, p := range pauses[1:] {
			if want := min(time.Second<<i, 30*time.Second); p < want || p > want*5/4+time.Millisecond {
				t.Errorf("pause %d is %v, want %v and at most a quarter more", i, p, want)
			}
		}
	})
}

// mkdir makes the folder of a path.
func mkdir(path string) string {
	if err := makeFolders(path); err != nil {
		panic(err)
	}
	return path
}

// If the cache cannot be written, the error says so, and what to do.
func TestCacheIsNoFolder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, below := range []string{"hub/.locks/x.lock", "hub/models--a--b/refs/main"} {
		if err := makeFolders(filepath.Join(file, below)); err == nil || !strings.Contains(err.Error(), "HF_HUB_CACHE") {
			t.Errorf("%s: %v", below, err)
		}
	}
}
