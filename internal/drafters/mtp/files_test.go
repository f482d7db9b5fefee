package mtp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/gguf"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/mtp"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// golden has the names and shapes of a layer with 2 heads of 16, one of keys, and an MLP of 64 over
// hidden states of 32: in GGUF, with Qwen's names, and with MiMo's.
var golden = []struct {
	gguf, qwen, mimo string
	shape            []int
}{
	{"blk.0.nextn.eh_proj.weight", "mtp.fc.weight", "model.mtp_layers.0.input_proj.weight", []int{32, 64}},
	{"blk.0.nextn.enorm.weight", "mtp.pre_fc_norm_embedding.weight", "model.mtp_layers.0.token_layernorm.weight", []int{32}},
	{"blk.0.nextn.hnorm.weight", "mtp.pre_fc_norm_hidden.weight", "model.mtp_layers.0.hidden_layernorm.weight", []int{32}},
	{"blk.0.nextn.shared_head_norm.weight", "mtp.norm.weight", "model.mtp_layers.0.final_layernorm.weight", []int{32}},
	{"blk.0.attn_norm.weight", "mtp.layers.0.input_layernorm.weight", "model.mtp_layers.0.input_layernorm.weight", []int{32}},
	{"blk.0.attn_q.weight", "mtp.layers.0.self_attn.q_proj.weight", "model.mtp_layers.0.self_attn.q_proj.weight",
		[]int{32, 32}},
	{"blk.0.attn_k.weight", "mtp.layers.0.self_attn.k_proj.weight", "model.mtp_layers.0.self_attn.k_proj.weight",
		[]int{16, 32}},
	{"blk.0.attn_v.weight", "mtp.layers.0.self_attn.v_proj.weight", "model.mtp_layers.0.self_attn.v_proj.weight",
		[]int{16, 32}},
	{"blk.0.attn_output.weight", "mtp.layers.0.self_attn.o_proj.weight", "model.mtp_layers.0.self_attn.o_proj.weight",
		[]int{32, 32}},
	{"blk.0.ffn_norm.weight", "mtp.layers.0.post_attention_layernorm.weight",
		"model.mtp_layers.0.post_attention_layernorm.weight", []int{32}},
	{"blk.0.ffn_gate.weight", "mtp.layers.0.mlp.gate_proj.weight", "model.mtp_layers.0.mlp.gate_proj.weight", []int{64, 32}},
	{"blk.0.ffn_up.weight", "mtp.layers.0.mlp.up_proj.weight", "model.mtp_layers.0.mlp.up_proj.weight", []int{64, 32}},
	{"blk.0.ffn_down.weight", "mtp.layers.0.mlp.down_proj.weight", "model.mtp_layers.0.mlp.down_proj.weight", []int{32, 64}},
	{"blk.0.attn_q_norm.weight", "mtp.layers.0.self_attn.q_norm.weight", "", []int{16}},
	{"blk.0.attn_k_norm.weight", "mtp.layers.0.self_attn.k_norm.weight", "", []int{16}},
	{"blk.0.attn_q.bias", "", "model.mtp_layers.0.self_attn.q_proj.bias", []int{32}},
	{"blk.0.attn_k.bias", "", "model.mtp_layers.0.self_attn.k_proj.bias", []int{16}},
	{"blk.0.attn_v.bias", "", "model.mtp_layers.0.self_attn.v_proj.bias", []int{16}},
}

// layer makes the layer that golden lists, of MiMo's kind with biases or of Qwen's with norms of queries
// and keys, for a target with similar layers. It returns its shape, its weights and its network.
func layer(t Fataler, target model.Config, mimo bool, seed uint64) (*mtp.Config, []tensor.Tensor,
	func(m *model.Network) *eagle.Network) {
	t.Helper()
	c := &mtp.Config{Config: eagle.Config{Base: headfile.Base{Config: target, Taps: []int{target.Layers},
		DraftVocab: target.Vocab}, Version: eagle.Native, StateFirst: mimo}}
	c.Arch = "qwen3"
	c.Layers = 1
	c.Tied = false
	c.Name = ""
	c.TargetLayers = target.Layers
	c.Rope.Neighbours = false
	w := &synthetic.Weights{Type: tensor.F32, Seed: seed}
	if mimo {
		c.Arch, w.Extra = "llama", []string{"blk.0.attn_q.bias", "blk.0.attn_k.bias", "blk.0.attn_v.bias"}
	}
	if err := c.Parts().Load(w); err != nil {
		t.Fatal(err)
	}
	return c, w.Made, func(m *model.Network) *eagle.Network {
		again := *w
		return Must(mtp.NewNetwork(*c, &again, nil, m))(t)
	}
}

// Heads are written with the names and shapes of the models' own, in GGUF and in folders. They come
// back from either unchanged, and draft the same.
func TestFiles(t *testing.T) {
	m := OpenTarget(t, 400)
	for _, mimo := range []bool{false, true} {
		c, weights, made := layer(t, m.Config, mimo, 5)
		dir := t.TempDir()
		file, folder := filepath.Join(dir, "head.gguf"), filepath.Join(dir, "head")
		if err := errors.Join(headfile.WriteGGUF(file, "", c, weights, nil, nil, tensor.F32),
			headfile.WriteFolder(folder, c, weights, nil)); err != nil {
			t.Fatal(err)
		}
		wantFile := map[string][]int{}
		wantFolder := map[string][]int{}
		gotFile := map[string][]int{}
		gotFolder := map[string][]int{}
		for _, g := range golden {
			if name := map[bool]string{true: g.mimo, false: g.qwen}[mimo]; name != "" {
				wantFile[g.gguf], wantFolder[name] = g.shape, g.shape
			}
		}
		f, x := Must(gguf.Open(file))(t), Must(safetensors.OpenFolder(folder))(t)
		defer f.Close()
		defer x.Close()
		for _, info := range f.Tensors {
			gotFile[info.Name] = Must(f.Load(info.Name))(t).Shape
		}
		for _, info := range x.Tensors {
			gotFolder[info.Name] = info.Shape
		}
		if d := cmp.Diff(wantFile, gotFile) + cmp.Diff(wantFolder, gotFolder); d != "" {
			t.Errorf("MiMo %v: files have other tensors: %s", mimo, d)
		}
		want := drafted(t, made(&m.Network), m)
		for _, path := range []string{file, folder} {
			n := Must(mtp.Open(registry.Head{Name: path}, As(m)))(t)
			got := n.Config
			got.Name, got.Rope.Neighbours = "", false // files of llama layers have pairs: other bits
			if d := cmp.Diff(c.Config, got); d != "" {
				t.Errorf("%s: the shape came back otherwise: %s", path, d)
			}
			x := drafted(t, n, m)
			for i := range want {
				if math.Abs(float64(x[i]-want[i])) > 1e-4 {
					t.Errorf("%s drafts %v, want %v", path, x, want)
					break
				}
			}
		}
	}
}

// drafted returns the log-probabilities and the tokens of a chain after a text.
func drafted(t *testing.T, n *eagle.Network, m *model.Model) []float32 {
	t.Helper()
	d := newDrafter(t, n, &grow.Linear{K: 6}, m)
	s := Begin(t, d, draft.Options{}, 1)
	defer s.Close()
	Commit(t, d, s.Prompt([]int32{5, 9, 77, 3, 90}, n.Hidden, true))
	q := s.Request(7, 6, nil)
	Propose(t, d, q)
	x := slices.Clone(q.Tree.LogProb)
	for _, token := range q.Tree.Token {
		x = append(x, float32(token))
	}
	return x
}

// target returns the shape of a model of Qwen 3's kind or, as MiMo is, of Qwen 2's.
func target(mimo bool) synth.Shape {
	s := synth.Shape{
		Name: "target", Arch: "qwen3", Vocab: 640, Hidden: 32, Layers: 3, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 64,
		Context: 400, NormEps: 1e-6, RopeBase: 1e4, RopeDims: 16, Tokens: synth.Qwen2,
	}
	if mimo {
		s.Arch = "qwen2"
	}
	return s
}

// inGGUF rewrites a model's file with a layer after the model's, as llama.cpp stores it. what says
// which tensors of the model to keep.
func inGGUF(t *testing.T, from, to string, layers int, weights []tensor.Tensor, what func(name string) bool) {
	t.Helper()
	f := Must(gguf.Open(from))(t)
	defer f.Close()
	w := new(gguf.Writer)
	ggufkeys.SetAll(w, f)
	arch, _ := gguf.Get[string](f, "general.architecture")
	w.Set(arch+".block_count", uint32(layers+1))
	w.Set(arch+".nextn_predict_layers", uint32(1))
	for _, info := range f.Tensors {
		if x := Must(f.Load(info.Name))(t); what(info.Name) {
			w.AddTensor(x)
		}
	}
	for _, x := range weights {
		x.Name = strings.Replace(x.Name, "blk.0.", fmt.Sprintf("blk.%d.", layers), 1)
		w.AddTensor(x)
	}
	if err := w.WriteFile(to); err != nil {
		t.Fatal(err)
	}
}

// inFolder rewrites a model's folder with a layer after the model's, with MiMo's or Qwen's names.
func inFolder(t *testing.T, from, to string, c *mtp.Config, weights []tensor.Tensor) {
	t.Helper()
	f := Must(safetensors.OpenFolder(from))(t)
	defer f.Close()
	_, list, err := headfile.Folder(c, weights, nil, tensor.F32, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := safetensors.NewWriter()
	for _, info := range f.Tensors {
		w.AddTensor(Must(Must(f.Load(info.Name))(t).ReadAll())(t))
	}
	for _, x := range list {
		w.AddTensor(x.Tensor)
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(Must(os.ReadFile(filepath.Join(from, "config.json")))(t), &fields); err != nil {
		t.Fatal(err)
	}
	fields["mtp_num_hidden_layers"] = 1
	if c.StateFirst {
		delete(fields, "mtp_num_hidden_layers")
		fields["model_type"] = "mimo"
		fields["architectures"] = []string{"MiMoForCausalLM"}
		fields["num_nextn_predict_layers"] = 1
	}
	os.Remove(filepath.Join(to, "model.safetensors"))
	os.Remove(filepath.Join(to, "model.safetensors.index.json"))
	if err := errors.Join(os.WriteFile(filepath.Join(to, "config.json"), Must(json.Marshal(fields))(t), 0o666),
		w.WriteFile(filepath.Join(to, "model.safetensors"))); err != nil {
		t.Fatal(err)
	}
}

// A model whose file has a layer after its own computes the same as without it. The layer is found
// without being requested, and drafts what it drafts from a separate file. So does a GGUF file that
// has only the layer.
func TestInsideTheTarget(t *testing.T) {
	for _, mimo := range []bool{false, true} {
		dir, shape := t.TempDir(), target(mimo)
		at := func(name string) string { return filepath.Join(dir, name) }
		o := synth.Options{Type: tensor.F32, Seed: 3}
		if err := errors.Join(synth.Write(t.Context(), at("bare.gguf"), shape, o), synth.WriteHF(t.Context(), at("bare"),
			shape, o)); err != nil {
			t.Fatal(err)
		}
		bare := Must(grove.Open(at("bare.gguf"), grove.Options{Threads: 1}))(t)
		defer bare.Close()
		c, weights, made := layer(t, inside.Target(bare).Model.Config, mimo, 5)
		inGGUF(t, at("bare.gguf"), at("both.gguf"), 3, weights, func(string) bool { return true })
		inGGUF(t, at("bare.gguf"), at("layer.gguf"), 3, weights, func(name string) bool { return name == "token_embd.weight" })
		inFolder(t, at("bare"), at("both"), c, weights)

		m := inside.Target(bare).Model
		want, logits := drafted(t, made(&m.Network), m), lastLogits(t, m)
		for _, path := range []string{"both.gguf", "both"} {
			g, err := grove.Open(at(path), grove.Options{Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			if inside.Target(g).Model.Config.Layers != 3 || inside.Target(g).Model.Config.Ahead != 1 ||
				!slices.Equal(lastLogits(t, inside.Target(g).Model), logits) {
				t.Errorf("%s: %d layers and %d behind them, or other logits", path, inside.Target(g).Model.Config.Layers,
					inside.Target(g).Model.Config.Ahead)
			}
			h := inside.Target(g).Heads
			if len(h) != 1 || !h[0].Inside {
				t.Fatalf("%s: heads %v", path, h)
			}
			if got := drafted(t, Must(mtp.Open(h[0], inside.Target(g)))(t), inside.Target(g).Model); !slices.Equal(got, want) {
				t.Errorf("%s drafts %v, want %v", path, got, want)
			}
			for _, text := range []string{"mtp", "mtp:tree=linear,k=3", "mtp:tree=best-first+text"} {
				if d, err := registry.New(text, inside.Target(g)); err != nil || !slices.Equal(d.Taps(), []int{3}) {
					t.Errorf("%s, %s: %v", path, text, err)
				}
			}
			if auto := Must(registry.Resolve("auto", inside.Target(g)))(t); !strings.HasPrefix(auto, "mtp:") {
				t.Errorf("%s: auto is %s", path, auto)
			}
			if heads.Is(registry.Head{Name: at(path)}) {
				t.Errorf("%s: a model is taken for a head", path)
			}
		}
		if got := drafted(t, Must(mtp.Open(registry.Head{Name: at("layer.gguf")}, inside.Target(bare)))(t),
			m); !slices.Equal(got, want) {
			t.Errorf("the layer alone drafts %v, want %v", got, want)
		}
		if _, err := model.Open(at("layer.gguf"), model.Options{}); !errors.Is(err, model.ErrHead) ||
			!heads.Is(registry.Head{Name: at("layer.gguf")}) {
			t.Errorf("the layer alone opens as a model: %v", err)
		}
		if _, err := registry.New("mtp", inside.Target(bare)); err == nil || !strings.Contains(err.Error(), "no MTP head") {
			t.Errorf("a model without a layer: %v", err)
		}

		// Missing parts, and parts that grove does not compute, are reported by name.
		inGGUF(t, at("bare.gguf"), at("broken.gguf"), 3, nil, func(string) bool { return true })
		if _, err := model.Open(at("broken.gguf"), model.Options{}); err == nil ||
			!strings.Contains(err.Error(), "nextn_predict_layers") {
			t.Errorf("a file without the layer that it names: %v", err)
		}
		gate := Must(tensor.FromFloat32s("blk.0.attn_gate.weight", tensor.F32, []int{32, 32}, make([]float32, 1024)))(t)
		inGGUF(t, at("bare.gguf"), at("gated.gguf"), 3, append(weights, gate), func(string) bool { return true })
		if _, err := mtp.Open(registry.Head{Name: at("gated.gguf"), Inside: true}, inside.Target(bare)); err == nil ||
			!strings.Contains(err.Error(), "attn_gate") {
			t.Errorf("a layer with a tensor that grove does not compute: %v", err)
		}
	}
}

// lastLogits returns those of the last token of a text.
func lastLogits(t *testing.T, m *model.Model) []float32 {
	t.Helper()
	p, c := m.NewPass(), m.NewCache()
	defer c.Free()
	if err := p.Prefill(t.Context(), c, []int32{3, 250, 17, 390, 101}, true); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(p.Logits(0, 0))
}

// A head that does not fit the target is refused with an error that says what differs.
func TestRefusedHeads(t *testing.T) {
	m := OpenTarget(t, 400)
	path := filepath.Join(t.TempDir(), "head.gguf")
	for want, change := range map[string]func(c *mtp.Config){
		"":                       func(*mtp.Config) {},
		"hidden size 96":         func(c *mtp.Config) { c.Hidden = 96 },
		"vocabulary has 999":     func(c *mtp.Config) { c.Vocab, c.DraftVocab = 999, 999 },
		"made for a target of 9": func(c *mtp.Config) { c.TargetLayers = 9 },
		"tap the last":           func(c *mtp.Config) { c.TargetLayers, c.Taps = 0, []int{1} },
	} {
		c, _, _ := layer(t, m.Config, false, 1)
		change(c)
		if err := headfile.WriteGGUF(path, "x", c, Must(synthetic.Tensors(c, tensor.F32, 1))(t), nil, nil,
			tensor.F32); err != nil {
			t.Fatal(err)
		}
		_, err := mtp.Open(registry.Head{Name: path}, As(m))
		if want == "" != (err == nil) || err != nil && (!strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), path)) {
			t.Errorf("%q: %v", want, err)
		}
	}
	for want, change := range map[string]func(c *mtp.Config){
		"2 layers": func(c *mtp.Config) { c.Layers = 2 }, "EAGLE version is 3": func(c *mtp.Config) { c.Version = 3 },
		"8 experts": func(c *mtp.Config) { c.Experts, c.Used = 8, 2 }, "want llama or qwen3": func(c *mtp.Config) {
			c.Arch = "gptneox"
		},
	} {
		c, _, _ := layer(t, m.Config, false, 1)
		change(c)
		if c.Validate() == nil || !strings.Contains(c.Validate().Error(), want) {
			t.Errorf("%q: %v", want, c.Validate())
		}
	}
}
