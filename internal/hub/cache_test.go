package hub

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/files/filelock"
	"github.com/grovellm/grove/internal/testing/cases"
)

// names are the possible names in a repository in the tests below.
var testFiles = map[string]string{
	"m-Q4_K_M.gguf": "one", "m-Q8_0.gguf": "two", "copy-Q6_K.gguf": "two", "config.json": "{}",
	"m-BF16-00001-of-00002.gguf": "three", "m-BF16-00002-of-00002.gguf": "four",
	"model.safetensors": "five", "tokenizer.json": "six",
}

// A model that was pulled is found and listed; a removed one is not; a content is removed with the
// last file that links to it, and no earlier.
func TestPulledFoundRemoved(t *testing.T) {
	models := map[string][]string{
		"q4_k_m": {"m-Q4_K_M.gguf"}, "q8_0": {"m-Q8_0.gguf"}, "q6_k": {"copy-Q6_K.gguf"},
		"bf16": {"m-BF16-00001-of-00002.gguf", "m-BF16-00002-of-00002.gguf"}, "safetensors": {"config.json",
			"model.safetensors", "tokenizer.json"},
	}
	h := newHub(t, testFiles)
	cases.Check(t, 25, func(r *rapid.T) {
		c := h.client(t.TempDir())
		have := map[string]bool{}
		for range rapid.IntRange(1, 10).Draw(r, "steps") {
			name := rapid.SampledFrom(slices.Sorted(maps.Keys(models))).Draw(r, "model")
			if rapid.Bool().Draw(r, "pull") {
				h.mustPull(c, name)
				have[name] = true
			} else {
				before := cacheBytes(t, c.Cache)
				freed, err := c.Remove(Name{testRepo, name})
				if have[name] != (err == nil) || err != nil && !errors.Is(err, ErrNotCached) {
					r.Fatalf("remove %s, which is there: %v: %v", name, have[name], err)
				}
				refs := int64(0)
				if len(have) == 1 && have[name] {
					refs = 40 // refs/main goes with the last model
				}
				if gone := before - cacheBytes(t, c.Cache); gone != freed || gone < refs {
					r.Fatalf("%d bytes are gone, %d were freed", gone, freed)
				}
				delete(have, name)
			}
			contents := map[string]bool{}
			for name := range models {
				path, err := c.Find(Name{testRepo, name})
				if have[name] != (err == nil) {
					r.Fatalf("find %s, which is there: %v: %v", name, have[name], err)
				}
				if have[name] {
					for _, f := range models[name] {
						contents[testFiles[f]] = true
						path = filepath.Join(filepath.Dir(path), f)
						if name == "safetensors" {
							path, _ = c.Find(Name{testRepo, name})
							path = filepath.Join(path, f)
						}
						h.sameFile(path, f)
					}
				}
			}
			blobs, _ := os.ReadDir(filepath.Join(c.folder(testRepo), "blobs"))
			list, err := c.Entries()
			if err != nil || len(list) != len(have) || len(blobs) != len(contents) {
				r.Fatalf("%d of %d models are listed, %d of %d blobs are there: %v", len(list), len(have),
					len(blobs), len(contents), err)
			}
		}
		if _, err := c.Remove(Name{Repo: testRepo}); (err == nil) != (len(have) > 0) {
			r.Fatal(err)
		}
		if _, err := os.Stat(c.folder(testRepo)); !os.IsNotExist(err) {
			r.Fatal("the repository is still there", err)
		}
	})
}

// cacheBytes is the size of the blobs, references and files in a cache.
func cacheBytes(t *testing.T, cache string) (n int64) {
	for name, text := range tree(t, cache) {
		if !strings.HasPrefix(text, "->") && !strings.HasPrefix(name, ".locks") {
			n += int64(len(text))
		}
	}
	return n
}

// A snapshot that cannot be read is listed as such, with the models of other repositories.
func TestUnreadableSnapshot(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("paths may be longer there")
	}
	c := New("http://none", t.TempDir())
	model := mkdir(filepath.Join(c.Cache, "models--org--whole/snapshots/a/m-Q8_0.gguf"))
	if err := os.WriteFile(model, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(c.Cache, "models--org--bad", "snapshots", "a")
	if err := os.MkdirAll(bad, 0o777); err != nil {
		t.Fatal(err)
	}
	dir, err := os.OpenRoot(bad)
	for range 20 { // folders whose path is too long for the system
		name := strings.Repeat("x", 250)
		if err == nil {
			err = dir.Mkdir(name, 0o777)
		}
		if err != nil {
			t.Fatal(err)
		}
		in, inErr := dir.OpenRoot(name)
		_ = dir.Close()
		dir = in
		err = inErr
	}
	_ = dir.Close()
	list, err := c.Entries()
	if err != nil || len(list) != 2 || list[0].State != "unreadable" || list[0].Path != bad || list[1].Type != "Q8_0" {
		t.Errorf("%+v, %v", list, err)
	}
}

// A cache as other programs leave it is read: files of several commits, none of branch main,
// contents gone.
func TestOthersCache(t *testing.T) {
	t.Parallel()
	c := New("http://none", t.TempDir())
	put := func(name, text string) string {
		p := mkdir(filepath.Join(c.Cache, filepath.FromSlash(name)))
		if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return p
	}
	const repo = "models--org--r/"
	put("datasets--org--d/snapshots/a/x.gguf", "x")
	put("version.txt", "1")
	put(repo+".no_exist/b/adapter.json", "")
	put(repo+"snapshots/aaa/m-Q8_0.gguf", "old")
	put(repo+"snapshots/bbb/config.json", "{}")
	if runtime.GOOS != "windows" {
		if err := os.Symlink("../../blobs/gone", filepath.Join(c.Cache, repo, "snapshots/bbb/m-Q4_0.gguf")); err != nil {
			t.Fatal(err)
		}
	}
	put(repo+"blobs/abc.incomplete", "12345")
	for range 2 {
		path, err := c.Find(Name{"org/r", ""})
		if err != nil || filepath.Base(path) != "m-Q8_0.gguf" {
			t.Errorf("%s, %v", path, err)
		}
		put(repo+"refs/main", "bbb\n") // the model is in the other commit
	}
	list, err := c.Entries()
	if err != nil || len(list) != 2 || list[0].Type != "Q8_0" || list[0].Bytes != 3 ||
		list[1].State != "incomplete" || list[1].Bytes != 5 {
		t.Errorf("%+v, %v", list, err)
	}
	if since := time.Since(list[0].Used); since > time.Minute || since < -time.Minute {
		t.Errorf("used %v ago", since)
	}
	for _, n := range []Name{{"org/r", "Q4_0"}, {"org/none", ""}} {
		if _, err := c.Find(n); !errors.Is(err, ErrNotCached) {
			t.Errorf("%v: %v", n, err)
		}
		if _, err := c.Remove(n); n.What == "" && !errors.Is(err, ErrNotCached) {
			t.Errorf("%v: %v", n, err)
		}
	}
	if list, err := New("http://none", filepath.Join(c.Cache, "none")).Entries(); err != nil || list != nil {
		t.Error(list, err)
	}
}

// What a process is fetching cannot be removed under its hands.
func TestRemoveLocked(t *testing.T) {
	t.Parallel()
	h := newHub(t, testFiles)
	c := h.client(t.TempDir())
	h.mustPull(c, "q8_0")
	lock, err := filelock.Take(c.lockPath(testRepo, h.sha["m-Q8_0.gguf"]))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Remove(Name{Repo: testRepo}); err == nil || !strings.Contains(err.Error(), "fetching from it") {
		t.Error(err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if freed, err := c.Remove(Name{Repo: testRepo}); err != nil || freed != 3+40 {
		t.Error(freed, err)
	}
}

// A content that the hub's Python library keeps for all repositories is removed with the last link
// to it, and only if that is certain.
func TestRemoveSharedContent(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("symbolic links need a privilege there")
	}
	h := newHub(t, testFiles)
	for _, x := range []struct{ version, links, other string }{
		{"1\n", "models--org--some.model/blobs/HASH\nmodels--org--gone/blobs/HASH\n", ""},
		{"1\n", "models--org--some.model/blobs/HASH\nmodels--org--b/blobs/HASH\n", "models--org--b/blobs/HASH"},
		{"2\n", "models--org--some.model/blobs/HASH\n", ""},
		{"1\n", "", ""},
	} {
		c := h.client(t.TempDir())
		h.mustPull(c, "q8_0")
		name := strings.Repeat("ab", 32)
		content := filepath.Join(c.Cache, "blobs", "ab", name)
		blob := filepath.Join(c.folder(testRepo), "blobs", h.sha["m-Q8_0.gguf"])
		put := func(path, text string) {
			path = mkdir(filepath.Join(c.Cache, filepath.FromSlash(strings.ReplaceAll(path, "HASH", h.sha["m-Q8_0.gguf"]))))
			writeFile(t, path, text)
		}
		put("blobs/.huggingface-shared-blobs", x.version)
		put("blobs/ab/"+name, testFiles["m-Q8_0.gguf"])
		if x.links != "" {
			put("blobs/ab/"+name+".refs", strings.ReplaceAll(x.links, "HASH", h.sha["m-Q8_0.gguf"]))
		}
		if x.other != "" {
			put(x.other, "a link")
		}
		if err := errors.Join(os.Remove(blob), os.Symlink("../../blobs/ab/"+name, blob)); err != nil {
			t.Fatal(err)
		}
		freed, err := c.Remove(Name{testRepo, ""})
		_, gone := os.Lstat(content)
		if want := x.version == "1\n" && x.links != "" && x.other == ""; err != nil || os.IsNotExist(gone) != want ||
			(freed == 40+int64(len(testFiles["m-Q8_0.gguf"]))) != want {
			t.Errorf("%q, %q: %d freed, %v, the content: %v", x.version, x.links, freed, err, gone)
		}
	}
}
