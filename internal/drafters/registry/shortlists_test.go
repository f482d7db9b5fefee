package registry_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/synthetic/shortlist"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/tensor"
)

// A drafter's router is the first among the files that the target was opened with, or the one
// named. Files that are no routers are skipped; a router that does not fit is an error.
func TestRouterOfATarget(t *testing.T) {
	pool := par.New(1)
	defer pool.Close()
	const vocab, hidden = 100, 16
	dir := t.TempDir()
	file := func(name string, vocab, hidden int) registry.Head {
		h := registry.Head{Name: filepath.Join(dir, name)}
		if err := synth.Write(h.Name, rand.New(rand.NewPCG(1, uint64(vocab))), vocab, hidden, tensor.F32); err != nil {
			t.Fatal(err)
		}
		return h
	}
	good, other := file("good.gguf", vocab, hidden), file("other.gguf", vocab+1, hidden)
	ranks := registry.Head{Name: filepath.Join(dir, "ranks.gguf")} // also GGUF, but no router
	if err := shortlist.Rank(make([]int64, vocab), nil, "").WriteFile(ranks.Name); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(good.Name)
	if err != nil {
		t.Fatal(err)
	}
	w, err := gemm.New(gemm.F32, vocab, hidden)
	if err != nil {
		t.Fatal(err)
	}
	d := shortlist.Drafter{Pool: pool, Head: &nn.Linear{W: w}, Vocab: vocab, Embed: w}
	routed := shortlist.Options{Method: "dynaspec"}
	named := func(path string) shortlist.Options { return shortlist.Options{Method: "dynaspec-fixed", Router: path} }
	folder, absent := registry.Head{Name: dir}, filepath.Join(dir, "absent.gguf")
	for name, c := range map[string]struct {
		heads []registry.Head
		o     shortlist.Options
		say   string // part of the error
	}{
		"the first router":      {[]registry.Head{folder, ranks, good}, routed, ""},
		"its contents":          {[]registry.Head{{Name: "embedded", Data: data}}, routed, ""},
		"by path":               {nil, named(good.Name), ""},
		"none":                  {[]registry.Head{folder, ranks}, routed, "there is no router"},
		"another vocabulary's":  {[]registry.Head{other}, routed, "of 101 tokens, the vocabulary has 100"},
		"no router by path":     {[]registry.Head{good}, named(ranks.Name), "not a router"},
		"a folder by path":      {[]registry.Head{good}, named(dir), "a folder"},
		"nothing by path":       {[]registry.Head{good}, named(absent), "absent.gguf"},
		"too many tokens":       {[]registry.Head{good}, shortlist.Options{Method: "dynaspec", Size: 101}, "size=101"},
		"too many of the text":  {[]registry.Head{good}, shortlist.Options{Method: "dynaspec", Extra: 101}, "extra=101"},
		"a list without a name": {[]registry.Head{good}, shortlist.Options{Method: "many"}, "want freq"},
	} {
		m, err := registry.Shortlists(c.o, d, "head", registry.Target{Vocab: vocab, Heads: c.heads})
		if c.say == "" && (err != nil || m == nil) || c.say != "" &&
			(err == nil || !strings.Contains(err.Error(), c.say)) {
			t.Errorf("%s: %v, want %q", name, err, c.say)
		}
	}
	if m, err := registry.Shortlists(shortlist.Options{}, d, "head", registry.Target{}); m != nil || err != nil {
		t.Errorf("without a method: %v, %v", m, err)
	}
	d.Embed = nil
	if _, err := registry.Shortlists(routed, d, "head", registry.Target{Vocab: vocab,
		Heads: []registry.Head{good}}); err == nil || !strings.Contains(err.Error(), "lacks the states that a router reads") {
		t.Errorf("a drafter whose rows have no feature: %v", err)
	}
}

// Of the values that clients may name without limit, only the latest are kept, in addition to all others.
func TestSomeAreKept(t *testing.T) {
	var s registry.Shared
	made := 0
	newest := func() (any, error) { made++; return made, nil }
	get := func(from func(any, func() (any, error)) (any, error), key any, isNew bool) {
		t.Helper()
		before := made
		if _, err := from(key, newest); err != nil || made > before != isNew {
			t.Errorf("%v: %d were made and then %d, %v", key, before, made, err)
		}
	}
	get(s.Get, "head", true)
	for i := range 1000 {
		get(s.GetSome, i, true)
		get(s.GetSome, i, false)
	}
	get(s.GetSome, 990, false)
	get(s.GetSome, 10, true)
	get(s.GetSome, 10, false)
	get(s.Get, "head", false)
}
