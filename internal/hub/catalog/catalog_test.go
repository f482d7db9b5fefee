package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/hub"
	"github.com/grovellm/grove/internal/hub/catalog"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
)

// files are models of two shapes, in both formats, and a head for each shape.
type files struct {
	dir    string
	models map[string]string // file or folder to shape
	heads  map[string]string
}

func write(t testing.TB) files {
	f := files{t.TempDir(), map[string]string{}, map[string]string{}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, shape := range []string{"tiny-qwen3", "tiny-llama2"} {
		s, err := synth.Lookup(shape)
		must(err)

		gguf := shape + ".gguf"
		folder := shape + "-hf"
		head := shape + "-head.gguf"
		must(synth.Write(context.Background(), filepath.Join(f.dir, gguf), s, synth.Options{Type: tensor.Q8_0, Seed: 1}))
		must(synth.WriteHF(context.Background(), filepath.Join(f.dir, folder), s, synth.Options{Seed: 2}))
		f.models[gguf] = shape
		f.models[folder] = shape
		f.heads[head] = shape
		target, err := model.ReadFolder(filepath.Join(f.dir, folder))
		must(err)
		c := synthetic.Config[eagle.Config](rand.New(rand.NewPCG(1, 3)), "eagle3", target, tensor.F32)
		c.Taps, c.TargetLayers = []int{1, 2}, target.Layers
		weights, err := synthetic.Tensors(&c, tensor.F32, 1)
		must(err)
		must(headfile.WriteGGUF(filepath.Join(f.dir, head), "head", &c, weights, synthetic.Tokens(&c, 1), nil, tensor.F32))
		must(headfile.WriteFolder(filepath.Join(f.dir, head+"-hf"), &c, weights, synthetic.Tokens(&c, 1)))
		f.heads[head+"-hf"] = shape
	}
	return f
}

// A folder has the models that lie in it or up to two folders deeper; each drafts with the heads that fit
// it. Other files are left out, with a note.
func TestFolder(t *testing.T) {
	f := write(t)
	cases.Check(t, 40, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(f.dir, "case")
		if err != nil {
			rt.Fatal(err)
		}
		want := map[string][]string{} // heads by the name of the model
		var heads []string
		place := func(name string) string {
			to := filepath.Join(dir, rapid.SampledFrom([]string{"", "", "sub", "sub/sub"}).Draw(rt, name), name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o777), os.Symlink(filepath.Join(f.dir, name), to)); err != nil {
				rt.Fatal(err)
			}
			return to
		}
		subset := func(all map[string]string, what string) []string {
			names := slices.Sorted(maps.Keys(all))
			return slices.DeleteFunc(names, func(string) bool { return rapid.Bool().Draw(rt, what) })
		}
		for _, name := range subset(f.models, "no model") {
			want[strings.TrimSuffix(filepath.Base(place(name)), ".gguf")] = nil
		}
		for _, name := range subset(f.heads, "no head") {
			heads = append(heads, place(name))
		}
		broken := rapid.Bool().Draw(rt, "a broken file")
		if broken {
			testfile.Write(rt, filepath.Join(dir, "broken.gguf"), []byte("GGUF"))
			if runtime.GOOS == "linux" { // elsewhere names are Unicode
				model := filepath.Join(f.dir, "tiny-qwen3.gguf")
				if err := os.Symlink(model, filepath.Join(dir, "bad\xff.gguf")); err != nil {
					rt.Fatal(err)
				}
			}
		}
		for name := range want {
			for _, head := range heads {
				if strings.HasPrefix(filepath.Base(head), name[:len("tiny-qwen")]) {
					want[name] = append(want[name], head)
				}
			}
		}
		list, notes, err := catalog.Find(dir)
		if len(want) == 0 {
			if err == nil || !strings.Contains(err.Error(), "no model found") {
				rt.Fatalf("an empty folder: %v, %v", list, err)
			}
			return
		}
		if err != nil || len(list) != len(want) || (len(notes) > 0) != broken {
			rt.Fatalf("%v, %q, %v: want %v", list, notes, err, want)
		}
		for _, m := range list {
			heads, known := want[m.Name]
			slices.Sort(heads)
			slices.Sort(m.Heads)
			if !known || !slices.Equal(heads, m.Heads) || m.Draft != "" || m.Drafter != "" {
				rt.Errorf("%+v: want heads %q", m, heads)
			}
			if n, err := m.Bytes(); err != nil || n < 1000 {
				rt.Errorf("%s takes %d bytes, %v", m.Name, n, err)
			}
		}
	})
}

// Publishers put a config.json next to GGUF files, which are the models then.
func TestRepositoryOfFiles(t *testing.T) {
	f, dir := write(t), t.TempDir()
	repo := filepath.Join(dir, "repository")
	err := os.Mkdir(repo, 0o777)
	for from, to := range map[string]string{"tiny-qwen3.gguf": "a.gguf", "tiny-qwen3-hf/config.json": "config.json"} {
		err = errors.Join(err, os.Symlink(filepath.Join(f.dir, from), filepath.Join(repo, to)))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, repo} {
		if list, notes, err := catalog.Find(path); err != nil || len(list) != 1 || list[0].Name != "a" || notes != nil {
			t.Errorf("%s: %v, %q, %v", path, list, notes, err)
		}
	}
}

// The folder of an EAGLE-2 head has the config.json of a model, and is none.
func TestHeadLikeModel(t *testing.T) {
	f, dir := write(t), t.TempDir()
	target, err := model.ReadFolder(filepath.Join(f.dir, "tiny-llama2-hf"))
	if err != nil {
		t.Fatal(err)
	}
	c := synthetic.Config[eagle.Config](rand.New(rand.NewPCG(1, 3)), "eagle2", target, tensor.F32)
	weights, err := synthetic.Tensors(&c, tensor.F32, 1)
	if err != nil {
		t.Fatal(err)
	}
	output, err := tensor.FromFloat32s("output.weight", tensor.F32, []int{target.Vocab, target.Hidden},
		make([]float32, target.Vocab*target.Hidden))
	if err != nil {
		t.Fatal(err)
	}
	head := filepath.Join(dir, "head")
	err = errors.Join(headfile.WriteFolder(head, &c, append(weights, output), synthetic.Tokens(&c, 1)),
		os.Symlink(filepath.Join(f.dir, "tiny-llama2-hf"), filepath.Join(dir, "m")))
	if err != nil {
		t.Fatal(err)
	}
	list, notes, err := catalog.Find(dir)
	if err != nil || len(list) != 1 || !slices.Equal(list[0].Heads, []string{head}) || notes != nil {
		t.Errorf("%+v, %q, %v", list, notes, err)
	}
}

// The current folder has its own name.
func TestCurrentFolder(t *testing.T) {
	f := write(t)
	t.Chdir(filepath.Join(f.dir, "tiny-qwen3-hf"))
	if list, _, err := catalog.Find("."); err != nil || len(list) != 1 || list[0].Name != "tiny-qwen3-hf" {
		t.Errorf("%v, %v", list, err)
	}
}

// A folder whose weights are not there yet, and a file with weights of an unknown type, are left out with a note, as a
// file that is cut short is.
func TestUnusableModels(t *testing.T) {
	f := write(t)
	weights, err := filepath.Glob(filepath.Join(f.dir, "tiny-qwen3-hf", "*.safetensors"))
	if err != nil || len(weights) != 1 {
		t.Fatal(weights, err)
	}
	file := filepath.Join(f.dir, "tiny-llama2.gguf")
	data, err := os.ReadFile(file)
	if err = errors.Join(err, os.Remove(weights[0])); err != nil {
		t.Fatal(err)
	}
	const tensorName, sizes = "blk.0.attn_q.weight", 4 + 2*8
	data[bytes.Index(data, []byte(tensorName))+len(tensorName)+sizes] = 99 // its type
	testfile.Write(t, file, data)
	list, notes, err := catalog.Find(f.dir)
	slices.Sort(notes)
	if err != nil || len(list) != len(f.models)-2 || len(notes) != 2 || !strings.Contains(notes[0], "of type 99") ||
		!strings.Contains(notes[1], "tiny-qwen3-hf is left out") {
		t.Errorf("%v, %q, %v: want %d models and two notes", list, notes, err, len(f.models)-2)
	}
}

// A manifest names heads, draft models and drafters, for all models of its folder or for one; a
// missing file is noted.
func TestManifest(t *testing.T) {
	f := write(t)
	t.Setenv("HF_HUB_CACHE", t.TempDir())
	const a, b, head = "tiny-qwen3.gguf", "tiny-llama2.gguf", "tiny-qwen3-head.gguf"
	for _, c := range []struct {
		manifest, file, want string
		notes                int
	}{
		{`{}`, a, "heads [] draft  drafter ", 0},
		{"\ufeff{}", a, "heads [] draft  drafter ", 0},
		{`{"heads": [":` + head + `"], "drafts": [":` + b + `"]}`, a, "heads [" + head + "] draft " + b + " drafter ", 0},
		// it does not draft for itself
		{`{"heads": [":` + head + `"], "drafts": [":` + b + `"]}`, b, "heads [" + head + "] draft  drafter ", 0},
		{`{"heads": [":` + head + `"], "models": {"` + b + `": {"heads": [], "drafter": "lookup"}}}`, b,
			"heads [] draft  drafter lookup", 0},
		{`{"drafter": "lookup", "models": {"` + a + `": {"drafts": [":` + b + `"]}}}`, a, "heads [] draft " + b +
			" drafter lookup", 0},
		{`{"heads": [":` + head + `"], "models": {"` + a + `": {"drafts": [":` + b + `"]}}}`, a, // the folder's heads stay
			"heads [" + head + "] draft " + b + " drafter ", 0},
		{`{"head": [":` + head + `"], "heads": [":no.gguf", ":no.gguf"]}`, a, "heads [] draft  drafter ", 2},
		{`{"heads": [":no.gguf", ":../x", "org/none", "?"]}`, a, "heads [] draft  drafter ", 4},
		{`{"models": {"no.gguf": {}}}`, a, "heads [] draft  drafter ", 1},
	} {
		testfile.Write(t, filepath.Join(f.dir, "grove.json"), []byte(c.manifest))
		list, notes, err := catalog.Find(filepath.Join(f.dir, c.file))
		if err != nil || len(list) != 1 {
			t.Fatal(c.manifest, list, err)
		}
		m := list[0]
		got := strings.ReplaceAll(fmt.Sprintf("heads %v draft %s drafter %s", m.Heads, m.Draft, m.Drafter),
			f.dir+string(filepath.Separator), "")
		if got != c.want || len(notes) != c.notes {
			t.Errorf("%s: %s, %q; want %s", c.manifest, got, notes, c.want)
		}
		if alone, err := (&catalog.Model{Path: m.Path}).Bytes(); err != nil {
			t.Error(err)
		} else if all, err := m.Bytes(); err != nil || (all > alone) != (len(m.Heads) > 0 || m.Draft != "") {
			t.Errorf("%s: with what drafts it takes %d bytes, without %d, %v", c.manifest, all, alone, err)
		}
	}
	for _, bad := range []string{"", "[]", `{"heads": 1}`} {
		testfile.Write(t, filepath.Join(f.dir, "grove.json"), []byte(bad))
		if _, _, err := catalog.Find(filepath.Join(f.dir, a)); err == nil || !strings.Contains(err.Error(), "grove.json") {
			t.Errorf("manifest %q: %v", bad, err)
		}
	}
}

// Pipes among models are left out with a note, and one for a manifest is an error: neither is waited for.
func TestPipes(t *testing.T) {
	f := write(t)
	if !testfile.Pipe(filepath.Join(f.dir, "x.gguf")) {
		t.Skip("no named pipe can be made here")
	}
	list, notes, err := catalog.Find(f.dir)
	if err != nil || len(list) != len(f.models) || !strings.Contains(strings.Join(notes, "\n"), "x.gguf: is not a regular") {
		t.Errorf("%d models, notes %q, error %v", len(list), notes, err)
	}
	testfile.Pipe(filepath.Join(f.dir, hub.Manifest))
	if _, _, err := catalog.Find(f.dir); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Error(err)
	}
}

// In a folder of models, assistants are heads of the Gemma 4 model beside them, in each form.
func TestAssistantsAreHeads(t *testing.T) {
	list, notes, err := catalog.Find(filepath.Join("..", "..", "drafters", "assistant", "testdata", "heads"))
	if err != nil || len(list) != 1 || len(notes) > 0 {
		t.Fatalf("%+v, %v, %v", list, notes, err)
	}
	var names []string
	for _, path := range list[0].Heads {
		text, err := heads.Describe(registry.Head{Name: path})
		if err != nil || !strings.Contains(text, "Gemma 4 assistant: 3 layers, 32 wide") ||
			!strings.Contains(text, "hidden size 48 and 64 tokens") {
			t.Errorf("%s: %s, %v", path, text, err)
		}
		names = append(names, filepath.Base(path))
	}
	slices.Sort(names)
	if list[0].Name != "target" || !slices.Equal(names, []string{"dense", "llama.cpp.gguf", "ordered"}) {
		t.Errorf("%s has the heads %v", list[0].Name, names)
	}
}
