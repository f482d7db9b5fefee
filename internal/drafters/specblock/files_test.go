package specblock_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/nn"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
)

// computed returns a head's results for a text of two entries: logits, and the rank head's scores.
func computed(n *specblock.Network, m *model.Model) []float32 {
	e, rng := nn.NewExec(m.Pool()), rand.New(rand.NewPCG(1, 1))
	mat := func(rows, cols int) nn.Mat {
		x := nn.Mat{Rows: rows, Cols: cols, Stride: cols, Data: make([]float32, rows*cols)}
		for i := range x.Data {
			x.Data[i] = float32(rng.NormFloat64())
		}
		return x
	}
	tokens := []int32{3 % int32(n.Vocab), 1}
	rows := 2 * n.Block
	var b specblock.Buffers
	var l specblock.Layout
	n.Text(&l, 0, tokens)
	pages := n.Pages()
	cache := pages.NewCache()
	defer cache.Free()
	var p specblock.Pass
	n.Add(&p, &l, cache, 0)
	c := mat(2, n.Hidden)
	x := mat(rows, n.Hidden)
	out := mat(rows, n.Output())
	n.Condition(e, mat(2, len(n.Taps)*n.Hidden), c)
	n.Run(e, &p, c, x, &b)
	e.Linear(nn.Source{X: x, Norm: &n.Norm}, nn.Proj{Linear: &n.Head, Dst: out})
	if n.RankWidth == 0 {
		return out.Data
	}
	rank := mat(rows, specblock.RankBuckets)
	n.Rank(e, x, mat(rows, specblock.Features), rank, &b)
	return append(out.Data, rank.Data...)
}

// apart returns how far numbers differ, relative to the largest.
func apart(a, b []float32) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	most, gap := 1e-9, 0.0
	for i := range a {
		most, gap = max(most, math.Abs(float64(a[i]))), max(gap, math.Abs(float64(a[i]-b[i])))
	}
	return gap / most
}

// write writes a head in every form.
func write(t testing.TB, c *specblock.Config, vocabulary *gguf.File, kind tensor.Type,
	seed uint64) map[string]registry.Head {
	t.Helper()
	weights, tokens := drafttest.Must(synthetic.Tensors(c, kind, seed))(t), synthetic.Tokens(c, seed)
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "head.gguf"), filepath.Join(dir, "head")
	if err := errors.Join(headfile.WriteGGUF(file, c.Name, c, weights, tokens, vocabulary, kind),
		headfile.WriteFolder(folder, c, weights, tokens)); err != nil {
		t.Fatal(err)
	}
	data := drafttest.Must(os.ReadFile(file))(t)
	if err := headfile.WriteGGUF(file, c.Name, c, weights, tokens, nil, kind); err != nil {
		t.Fatal(err)
	}
	return map[string]registry.Head{"file": {Name: file}, "data": {Name: "embedded", Data: data}, "folder": {Name: folder}}
}

// A head comes back unchanged from a file of any type and from a folder: its shape, its tokens and,
// to the bit, its results.
func TestFilesRoundTrip(t *testing.T) {
	m, vocabulary := drafttest.FileTarget(t)
	for seed := range uint64(12) {
		kind := []tensor.Type{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8_0}[seed%4]
		c := synthetic.Config[specblock.Config](rand.New(rand.NewPCG(seed, 9)), "", m.Config, kind)
		if c.DraftVocab == c.Vocab {
			c.DraftVocab = 0
		}
		c.Name = fmt.Sprint("head ", seed)
		made := drafttest.Must(specblock.NewNetwork(c, synthetic.Head(&c, kind, seed), synthetic.Tokens(&c, seed),
			&m.Network))(t)
		want := computed(made, m)
		for form, h := range write(t, &c, vocabulary, kind, seed) {
			got, err := headfile.ReadConfig[specblock.Config](h, &m.Config)
			if err != nil {
				t.Fatal(err)
			}
			expect := c
			if form == "folder" {
				expect.Name = "" // folders do not have it
				expect.Shift = c.Shift && c.Layers > 1
			}
			if d := cmp.Diff(expect, got); d != "" {
				t.Errorf("%s: the shape came back otherwise: %s", form, d)
			}
			head, err := specblock.Open(h, drafttest.As(m))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(head.Tokens, made.Tokens) {
				t.Errorf("%s: the draft vocabulary came back otherwise", form)
			}
			most := 0.0
			if form == "folder" && kind != tensor.F32 { // F32 there: the same numbers, but multiplied in another way
				most = 0.05
			}
			if d := apart(computed(head, m), want); d > most {
				t.Errorf("%s, %s, %v: numbers are %g apart, want %g at most", form, c.Arch, kind, d, most)
			}
		}
	}
}

// A folder as released: its names, its config.json, and the draft vocabulary in a separate PyTorch
// file.
func TestReleasedFolder(t *testing.T) {
	c := specblock.Config{Base: headfile.Base{Config: model.Config{Arch: "llama", Vocab: 5, Hidden: 8, Layers: 2,
		Heads: 2, KVHeads: 1,
		HeadDim: 4, FFN: 24, Context: 2048, NormEps: 1e-5,
		Rope: model.RopeConfig{Base: 1e4, Dims: 4, Scale: 1}}, DraftVocab: 3, Taps: []int{2, 6, 9}},
		Block: 4, RankWidth: 16, Shift: true, Broadcast: true,
		SamePosition: true, RankNormed: true}
	weights := drafttest.Must(synthetic.Tensors(&c, tensor.F32, 1))(t)
	dir := t.TempDir()
	if err := headfile.WriteFolder(dir, &c, weights, []int32{0, 2, 4}); err != nil {
		t.Fatal(err)
	}
	f := drafttest.Must(safetensors.OpenFolder(dir))(t)
	var names []string
	for _, x := range f.Tensors {
		names = append(names, strings.TrimSuffix(x.Name, ".weight"))
	}
	slices.Sort(names)
	want := []string{"input_layer.condition_proj", "input_layer.condition_norm", "input_layer.token_norm",
		"input_layer.query_norm",
		"input_layer.position_queries", "input_layer.fuse", "shift_proj.0", "norm", "lm_head", "rank_head.0",
		"rank_head.2", "t2d", "d2t"}
	for _, part := range []string{"input_layernorm", "post_attention_layernorm", "self_attn.q_proj",
		"self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
		"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"} {
		want = append(want, "layers.0."+part, "layers.1."+part)
	}
	slices.Sort(want)
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
	w := safetensors.NewWriter()
	for _, x := range f.Tensors {
		if t, _ := f.Tensor(x.Name); t.Name != "d2t" && t.Name != "t2d" {
			w.AddTensor(t)
		}
	}
	apart := filepath.Join(t.TempDir(), "model.safetensors")
	if err := w.WriteFile(apart); err != nil {
		t.Fatal(err)
	}
	f.Close()

	released := `{"architectures": ["LlamaForCausalLMSpecBlock"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 8, "intermediate_size": 24,
		"num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 2, "rms_norm_eps": 1e-05, "vocab_size": 5, "draft_vocab_size": 3,
		"max_position_embeddings": 2048, "diffspec_draft_token_num": 4, "rank_classes": 4, "tie_word_embeddings": false}`
	read := func(change ...string) (specblock.Config, error) {
		text := strings.NewReplacer(change...).Replace(released)
		testfile.Write(t, filepath.Join(dir, "config.json"), []byte(text))
		return headfile.ReadConfig[specblock.Config](registry.Head{Name: dir},
			&model.Config{Hidden: 8, Vocab: 5, Layers: 12})
	}
	got, err := read()
	if d := cmp.Diff(c, got); d != "" || err != nil {
		t.Errorf("%v, %s", err, d)
	}
	if err := os.Rename(apart, filepath.Join(dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	if _, err := read(); err == nil || !strings.Contains(err.Error(), "vocab_mapping.pt") {
		t.Errorf("no list of the draft vocabulary: %v", err)
	}
	testfile.Write(t, filepath.Join(dir, "vocab_mapping.pt"), drafttest.Must(os.ReadFile("testdata/vocab_mapping.pt"))(t))
	x := drafttest.Must(headfile.Read(registry.Head{Name: dir}, (&specblock.Config{}).Kind()))(t)
	if !slices.Equal(x.Tokens, []int32{0, 2, 4}) {
		t.Errorf("the draft vocabulary is %v", x.Tokens)
	}
	x.Close()
	for want, change := range map[string][2]string{
		"\"diffspec_draft_token_num\" is missing": {`"diffspec_draft_token_num": 4, `, ""},
		"\"rank_classes\" is 5":                   {`"rank_classes": 4`, `"rank_classes": 5`},
		"\"rank_offset\" has 2 numbers":           {`"rank_classes": 4`, `"rank_offset": [1, 2]`},
		"offsets are [0 0 0 101]":                 {`"rank_classes": 4`, `"rank_offset": [0, 0, 0, 101]`},
		"\"target_hidden_size\" is 16":            {`"rank_classes": 4`, `"target_hidden_size": 16`},
		"position_queries.weight\" has shape":     {`token_num": 4`, `token_num": 5`},
		"block size is 999":                       {`token_num": 4`, `token_num": 999`},
		"must be equal":                           {`draft_vocab_size": 3`, `draft_vocab_size": 4`},
	} {
		if _, err := read(change[0], change[1]); err == nil || !strings.Contains(err.Error(), want) &&
			!strings.Contains(err.Error(), "has shape") || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// A head that does not fit the target is refused with an error that says what differs; so are files
// and weights of other kinds.
func TestRefusedHeads(t *testing.T) {
	m, vocabulary := drafttest.FileTarget(t)
	good := synthetic.Config[specblock.Config](rand.New(rand.NewPCG(3, 3)), "", m.Config, tensor.F32)
	good.Taps = []int{1, 2, 3}
	good.TargetLayers = m.Config.Layers
	good.DraftVocab = 50
	var path string
	for want, change := range map[string]func(c *specblock.Config){
		"":                       func(*specblock.Config) {},
		"hidden size 96":         func(c *specblock.Config) { c.Hidden = 96 },
		"vocabulary has 999":     func(c *specblock.Config) { c.Vocab = 999 },
		"made for a target of 9": func(c *specblock.Config) { c.TargetLayers = 9 },
		"taps layers [1 2 7]":    func(c *specblock.Config) { c.Taps, c.TargetLayers = []int{1, 2, 7}, 0 },
	} {
		c := good
		change(&c)
		path = write(t, &c, vocabulary, tensor.F32, 1)["file"].Name
		_, err := specblock.Open(registry.Head{Name: path}, drafttest.As(m))
		if want == "" != (err == nil) || err != nil && (!strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), path)) {
			t.Errorf("%q: %v", want, err)
		}
	}
	weights, tokens := drafttest.Must(synthetic.Tensors(&good, tensor.F32, 1))(t), synthetic.Tokens(&good, 1)
	pairs := good
	pairs.Rope.Neighbours = true
	for want, f := range map[string]func() error{
		"is missing": func() error {
			return headfile.WriteGGUF(path, "x", &good, weights[:len(weights)-1], tokens, nil, tensor.F32)
		},
		"occurs twice": func() error {
			return headfile.WriteFolder(t.TempDir(), &good, append(slices.Clone(weights), weights[0]), tokens)
		},
		"says which": func() error {
			return headfile.WriteGGUF(path, "x", &good, weights, nil, nil,
				tensor.F32)
		},
		"neighbouring pairs": func() error {
			return headfile.WriteGGUF(path, "x", &pairs, weights, tokens, nil,
				tensor.F32)
		},
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := headfile.Read(registry.Head{Name: vocabulary.Path}, (&specblock.Config{}).Kind()); !errors.Is(err,
		headfile.ErrKind) {
		t.Errorf("a model for a head: %v", err)
	}
}

func FuzzOpen(f *testing.F) {
	m, vocabulary := drafttest.FileTarget(f)
	c := synthetic.Config[specblock.Config](rand.New(rand.NewPCG(7, 9)), "", m.Config, tensor.F32)
	data := drafttest.Must(os.ReadFile(write(f, &c, vocabulary, tensor.F32, 7)["file"].Name))(f)
	drafttest.FuzzHead(f, m, data, specblock.Open, func(_ *testing.T, n *specblock.Network) { computed(n, m) })
}
