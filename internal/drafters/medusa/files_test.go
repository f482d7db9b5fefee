package medusa_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/gguf"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/medusa"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/safetensors"
	kinds "github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tree"
)

// proposal returns the tree that heads propose after some text, which distinguishes heads.
func proposal(t testing.TB, n *medusa.Network, m *model.Model) *tree.Tree {
	t.Helper()
	return afterText(t, newDrafter(t, medusa.Options{Tree: medusa.Static}, n, m), n.Hidden)
}

func afterText(t testing.TB, d draft.Drafter, hidden int) *tree.Tree {
	t.Helper()
	s := Begin(t, d, draft.Options{}, 7)
	defer s.Close()
	Commit(t, d, s.Prompt([]int32{3, 1, 4, 1, 5, 9, 2, 6, 5, 3}, hidden, true))
	q := s.Request(60, 20, nil)
	Propose(t, d, q)
	return q.Tree
}

// Heads come back unchanged from a file of any type and from a folder: their shape and, to the bit,
// their proposals.
func TestFilesRoundTrip(t *testing.T) {
	m := OpenTarget(t, 400)
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 9))
		kind := []tensor.Type{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0}[seed%4]
		c := synthetic.Config[medusa.Config](rng, "", m.Config, kind)
		c.Name = fmt.Sprint("heads ", seed)
		weights, tokens := Must(synthetic.Tensors(&c, kind, seed))(t), synthetic.Tokens(&c, seed)
		want := proposal(t, Must(medusa.NewNetwork(c, synthetic.Head(&c, kind, seed), tokens, &m.Network))(t), m)
		dir := t.TempDir()
		file, folder := filepath.Join(dir, "heads.gguf"), filepath.Join(dir, "heads")
		if err := headfile.WriteGGUF(file, c.Name, &c, weights, tokens, nil, kind); err != nil {
			t.Fatal(err)
		}
		opened := []registry.Head{{Name: file}, {Name: "embedded", Data: Must(os.ReadFile(file))(t)}}
		switch err := headfile.WriteFolder(folder, &c, weights, tokens); {
		case (err == nil) != (tokens == nil):
			t.Errorf("a draft vocabulary %v: a folder is written with %v", tokens != nil, err)
		case err == nil:
			opened = append(opened, registry.Head{Name: folder})
		}
		for _, h := range opened {
			got := Must(headfile.ReadConfig[medusa.Config](h, &m.Config))(t)
			expect := c
			if h.Name == folder {
				expect.Name = "" // folders do not have it
				expect.DraftVocab = got.DraftVocab
			}
			if d := cmp.Diff(expect, got); d != "" {
				t.Errorf("%s: the shape came back otherwise: %s", h.Name, d)
			}
			head := Must(medusa.Open(h, As(m)))(t)
			if h.Name == folder && kind != tensor.F32 { // F32 there: the same numbers, but multiplied in another way
				continue
			}
			if err := Same(proposal(t, head, m), want); err != nil {
				t.Errorf("%s, %v: %v", h.Name, kind, err)
			}
		}
	}
}

// layout is a published form: config.json, and the tensors with their shapes, for H = 8 and V = 20.
type layout struct {
	file, config string
	tensors      map[string][]int
	want         medusa.Config
}

var published = map[string]layout{
	"the authors'": {
		"medusa_lm_head.safetensors", `{"base_model_name_or_path": "lmsys/vicuna-7b-v1.3", "medusa_num_heads": 2, "medusa_num_layers": 2, "transformers_version": "4.31.0"}`,
		map[string][]int{
			"0.0.linear.weight": {8, 8}, "0.0.linear.bias": {8}, "0.1.linear.weight": {8, 8}, "0.1.linear.bias": {8},
			"0.2.weight":        {20, 8},
			"1.0.linear.weight": {8, 8}, "1.0.linear.bias": {8}, "1.1.linear.weight": {8, 8}, "1.1.linear.bias": {8},
			"1.2.weight": {20, 8},
		},
		medusa.Config{Base: headfile.Base{Config: model.Config{Vocab: 20, Hidden: 8}, DraftVocab: 20},
			Depths: 2, ResBlocks: 2, OwnOutputs: true},
	},
	"the authors', saved with the target": {
		"model.safetensors", `{"medusa_num_heads": 1, "medusa_num_layers": 1}`,
		map[string][]int{"medusa_head.0.0.linear.weight": {8, 8}, "medusa_head.0.0.linear.bias": {8},
			"medusa_head.0.1.weight": {20, 8}},
		medusa.Config{Base: headfile.Base{Config: model.Config{Vocab: 20, Hidden: 8}, DraftVocab: 20},
			Depths: 1, ResBlocks: 1, OwnOutputs: true},
	},
	"text-generation-inference's": {
		"medusa_lm_head.safetensors", `{"medusa_num_heads": 3, "medusa_num_layers": 1, "base_model_name_or_path": "x"}`,
		map[string][]int{
			"0.0.linear.weight": {8, 8}, "0.0.linear.bias": {8}, "1.0.linear.weight": {8, 8}, "1.0.linear.bias": {8},
			"2.0.linear.weight": {8, 8}, "2.0.linear.bias": {8},
		},
		medusa.Config{Base: headfile.Base{Config: model.Config{Vocab: 20, Hidden: 8}}, Depths: 3, ResBlocks: 1},
	},
	"vLLM's": {
		"model.safetensors", `{"model_type": "medusa", "hidden_size": 8, "vocab_size": 20, "num_heads": 2, "num_hidden_layers": 1, "truncated_vocab_size": 6}`,
		map[string][]int{
			"blocks.0.layers.0.weight": {8, 8}, "blocks.1.layers.0.weight": {8, 8}, "lm_heads.0.weight": {6, 8},
			"lm_heads.1.weight": {6, 8},
			"token_map":         {6},
		},
		medusa.Config{Base: headfile.Base{Config: model.Config{Vocab: 20, Hidden: 8}, DraftVocab: 6},
			Depths: 2, ResBlocks: 1, OwnOutputs: true},
	},
	"vLLM's, with a map of rows that are all there": {
		"model.safetensors", `{"hidden_size": 8, "vocab_size": 20, "num_heads": 1, "num_hidden_layers": 1, "truncated_vocab_size": 6}`,
		map[string][]int{"blocks.0.layers.0.weight": {8, 8}, "lm_heads.0.weight": {20, 8}, "token_map": {6}},
		medusa.Config{Base: headfile.Base{Config: model.Config{Vocab: 20, Hidden: 8}, DraftVocab: 20},
			Depths: 1, ResBlocks: 1, OwnOutputs: true},
	},
	"vLLM's, with one output matrix": {
		"model.safetensors", `{"hidden_size": 8, "vocab_size": 20, "num_heads": 2, "num_hidden_layers": 1, "original_lm_head": true, "medusa_fc_bias": true}`,
		map[string][]int{
			"blocks.0.layers.0.weight": {8, 8}, "blocks.0.layers.0.bias": {8}, "blocks.1.layers.0.weight": {8, 8},
			"blocks.1.layers.0.bias": {8},
			"lm_heads.0.weight":      {20, 8},
		},
		medusa.Config{Base: headfile.Base{Config: model.Config{Vocab: 20, Hidden: 8}, DraftVocab: 20},
			Depths: 2, ResBlocks: 1},
	},
	"vLLM's, with one output matrix of its own name": {
		"model.safetensors", `{"hidden_size": 8, "vocab_size": 20, "medusa_num_heads": 1, "medusa_num_layers": 1, "original_lm_head": true}`,
		map[string][]int{"blocks.0.layers.0.weight": {8, 8}, "lm_head.weight": {20, 8}},
		medusa.Config{Base: headfile.Base{Config: model.Config{Vocab: 20, Hidden: 8}, DraftVocab: 20},
			Depths: 1, ResBlocks: 1},
	},
}

// write writes the folder.
func (l *layout) write(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	w := safetensors.NewWriter()
	for _, name := range slices.Sorted(maps.Keys(l.tensors)) {
		shape := l.tensors[name]
		n := 1
		for _, d := range shape {
			n *= d
		}
		x := Must(tensor.FromFloat32s(name, tensor.F32, shape, make([]float32, n)))(t)
		if name == "token_map" {
			x = tensor.Tensor{Name: name, Type: numtype.I64, Shape: shape, Data: make([]byte, 8*n)}
			for i := range n {
				x.Data[8*i] = byte(3*i + 1)
			}
		}
		w.AddTensor(x)
	}
	if err := w.WriteFile(filepath.Join(dir, l.file)); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, filepath.Join(dir, "config.json"), []byte(l.config))
	return dir
}

// Every published form is read, for a target that supplies what the form leaves out. All of its
// tensors are used.
func TestPublishedForms(t *testing.T) {
	target := model.Config{Vocab: 20, Hidden: 8, Layers: 4}
	for name, l := range published {
		h := registry.Head{Name: l.write(t)}
		got, err := headfile.ReadConfig[medusa.Config](h, &target)
		want := l.want
		want.Taps = []int{4}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if text, err := kinds.Describe(h); err != nil || !strings.HasPrefix(text, "Medusa heads: ") {
			t.Errorf("%s: taken for %q, %v", name, text, err)
		}
		f := Must(headfile.Read(h, want.Kind()))(t)
		if wanted := name == "vLLM's"; (f.Tokens != nil) != wanted || wanted &&
			!slices.Equal(f.Tokens, []int32{1, 4, 7, 10, 13, 16}) {
			t.Errorf("%s: tokens %v", name, f.Tokens)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Written folders have the names and shapes that the authors' code and text-generation-inference
// read.
func TestWrittenNames(t *testing.T) {
	for _, name := range []string{"the authors'", "text-generation-inference's"} {
		l := published[name]
		c := l.want
		c.Vocab = 20
		c.Taps = []int{4}
		c.TargetLayers = 4
		c.Template = nil
		if c.Depths == 2 {
			c.Template = medusa.Template{0, 1, 0}
		}
		w := &synthetic.Weights{Type: tensor.F32, Seed: 1}
		for name := range c.Parts().Shapes() {
			if strings.HasSuffix(name, ".bias") {
				w.Extra = append(w.Extra, name)
			}
		}
		if err := c.Parts().Load(w); err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := headfile.WriteFolder(dir, &c, w.Made, nil); err != nil {
			t.Fatal(err)
		}
		f := Must(safetensors.Open(filepath.Join(dir, "medusa_lm_head.safetensors")))(t)
		got := map[string][]int{}
		for _, x := range f.Tensors {
			got[x.Name] = x.Shape
		}
		f.Close()
		if d := cmp.Diff(l.tensors, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		var config map[string]any
		if err := json.Unmarshal(Must(os.ReadFile(filepath.Join(dir, "config.json")))(t), &config); err != nil {
			t.Fatal(err)
		}
		if config["medusa_num_heads"] != float64(c.Depths) || config["medusa_num_layers"] != float64(c.ResBlocks) ||
			c.Depths == 2 && fmt.Sprint(config["medusa_choices"]) != "[[0] [0 0] [1]]" {
			t.Errorf("%s: config.json %v", name, config)
		}
	}
}

// A folder that is not such a head, or not one for the target, is refused with an error that says what is wrong.
func TestRefusedFolders(t *testing.T) {
	target := model.Config{Vocab: 20, Hidden: 8, Layers: 4}
	good := published["the authors'"]
	for want, change := range map[string]func(l *layout){
		"0.1.linear.weight is missing":      func(l *layout) { delete(l.tensors, "0.1.linear.weight") },
		"1.2.weight is missing":             func(l *layout) { delete(l.tensors, "1.2.weight") },
		"1.1.linear.bias\" has shape":       func(l *layout) { l.tensors["1.1.linear.bias"] = []int{9} },
		"2.0.linear.weight does not belong": func(l *layout) { l.tensors["2.0.linear.weight"] = []int{8, 8} },
		"0 Medusa heads":                    func(l *layout) { l.config = `{"medusa_num_heads": 0}` },
		"of 900 residual blocks":            func(l *layout) { l.config = `{"medusa_num_heads": 2, "medusa_num_layers": 900}` },
		"medusa_choices":                    func(l *layout) { l.config = `{"medusa_num_heads": 2, "medusa_num_layers": 2, "medusa_choices": [[1]]}` },
		"no Medusa head":                    func(l *layout) { l.tensors = map[string][]int{"a": {8, 8}} },
		"has shape [8]: want [9]":           func(l *layout) { l.tensors["0.0.linear.weight"] = []int{9, 9} },
	} {
		l := good
		l.tensors = maps.Clone(good.tensors)
		change(&l)
		h := registry.Head{Name: l.write(t)}
		if _, err := headfile.ReadConfig[medusa.Config](h, &target); err == nil ||
			!strings.Contains(err.Error(), h.Name) ||
			!strings.Contains(strings.ReplaceAll(err.Error(), "\"", ""), strings.ReplaceAll(want, "\"", "")) {
			t.Errorf("%v, want an error that names the folder and says %q", err, want)
		}
	}
	other := target
	other.Vocab = 21
	if _, err := headfile.ReadConfig[medusa.Config](registry.Head{Name: good.write(t)}, &other); err == nil ||
		!strings.Contains(err.Error(), "20 tokens") {
		t.Errorf("heads for another target: %v", err)
	}
}

// A key or a tensor of a GGUF file that does not belong to such heads is refused by name, and so is
// a number out of range.
func TestRefusedGGUF(t *testing.T) {
	m := OpenTarget(t, 400)
	c := synthetic.Config[medusa.Config](rand.New(rand.NewPCG(2, 2)), "", m.Config, tensor.F32)
	c.OwnOutputs = false
	c.DraftVocab = c.Vocab
	c.Template = medusa.Template{0, 1}
	weights := Must(synthetic.Tensors(&c, tensor.F32, 1))(t)
	path := filepath.Join(t.TempDir(), "heads.gguf")
	if err := headfile.WriteGGUF(path, "x", &c, weights, nil, nil, tensor.F32); err != nil {
		t.Fatal(err)
	}
	f := Must(gguf.Open(path))(t)
	defer f.Close()
	changed := filepath.Join(t.TempDir(), "changed.gguf")
	for want, change := range map[string]func(w *gguf.Writer){
		"medusa.logit_scale":       func(w *gguf.Writer) { w.Set("medusa.logit_scale", float32(2)) },
		"medusa.a_key_of_tomorrow": func(w *gguf.Writer) { w.Set("medusa.a_key_of_tomorrow", true) },
		"0 Medusa heads":           func(w *gguf.Writer) { w.Set("medusa.head_count", uint32(0)) },
		"1000000 Medusa heads":     func(w *gguf.Writer) { w.Set("medusa.head_count", uint32(1e6)) },
		"of 70 residual":           func(w *gguf.Writer) { w.Set("medusa.block_count", uint32(70)) },
		"parent of node 2 is 5":    func(w *gguf.Writer) { w.Set("medusa.tree", []int32{0, 5}) },
		"want [64 64]":             func(w *gguf.Writer) { w.Set("medusa.embedding_length", uint32(64)) },
		"tap the last":             func(w *gguf.Writer) { w.Set("medusa.target_layers", []int32{1}) },
		"own_outputs":              func(w *gguf.Writer) { w.Set("medusa.own_outputs", "yes") },
		"token_embd.weight": func(w *gguf.Writer) {
			x := make([]float32, c.Vocab*c.Hidden)
			w.AddTensor(Must(tensor.FromFloat32s("token_embd.weight", tensor.F32, []int{c.Vocab, c.Hidden}, x))(t))
		},
	} {
		w := new(gguf.Writer)
		ggufkeys.SetAll(w, f)
		for _, x := range weights {
			w.AddTensor(x)
		}
		change(w)
		if err := w.WriteFile(changed); err != nil {
			t.Fatal(err)
		}
		_, err := headfile.ReadConfig[medusa.Config](registry.Head{Name: changed}, &m.Config)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
