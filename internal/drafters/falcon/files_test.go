package falcon_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grovellm/grove/draft"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/falcon"
	"github.com/grovellm/grove/internal/drafters/grow"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/testing/testdata"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
)

// authors is config.json of a published head, but with small numbers.
const authors = `{"architectures": ["Qwen2ForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 32,
	"initializer_range": 0.02, "intermediate_size": 48, "max_position_embeddings": 2048, "model_type": "llama", "num_attention_heads": 4,
	"num_key_value_heads": 2, "num_hidden_layers": 1, "pad_token_id": 0, "rms_norm_eps": 1e-06, "rope_theta": 1000000,
	"tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 420, "k_mask": 2, "qkv_bias": true}`

// shapes returns the tensors that the authors' code strictly requires for that file: those of its Model.
func shapes(biases bool) map[string][]int {
	list := map[string][]int{"embed_tokens.weight": {420, 32}, "layers.0.post_attention_layernorm.weight": {32}}
	for i, in := range []int{64, 32} {
		for name, shape := range map[string][]int{"weight_ih": {128, in}, "weight_hh": {128, 32}, "bias_ih": {128},
			"bias_hh": {128}} {
			list[fmt.Sprintf("lstm.%s_l%d", name, i)] = shape
		}
	}
	for name, shape := range map[string][]int{"self_attn.q_proj": {32, 32}, "self_attn.k_proj": {16, 32},
		"self_attn.v_proj": {16, 32},
		"self_attn.o_proj": {32, 32}, "mlp.gate_proj": {48, 32}, "mlp.up_proj": {48, 32}, "mlp.down_proj": {32, 48}} {
		list["layers.0."+name+".weight"] = shape
		if rest := strings.TrimPrefix(name, "self_attn."); biases && rest != name && rest != "o_proj" {
			list["layers.0."+name+".bias"] = shape[:1]
		}
	}
	return list
}

// published writes a head as its authors do: config.json, with some fields changed, and
// pytorch_model.bin. The matrices for the previous state are uniform, as PyTorch initialises them,
// or, if they are trained, normal.
func published(t *testing.T, trained bool, change map[string]any) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(authors), &m); err != nil {
		t.Fatal(err)
	}
	maps.Copy(m, change)
	rng, arrays := rand.New(rand.NewPCG(4, 4)), map[string]testdata.Array{}
	list := shapes(true)
	for _, name := range slices.Sorted(maps.Keys(list)) {
		var data []byte
		for range Must(numtype.CountElements(list[name]))(t) {
			x := rng.NormFloat64() / 6
			if strings.Contains(name, "_hh_") && !trained {
				x = (rng.Float64()*2 - 1) / math.Sqrt(32)
			}
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(x)))
		}
		arrays[name] = testdata.Array{Shape: list[name], Data: data}
	}
	dir := t.TempDir()
	testfile.Write(t, filepath.Join(dir, "pytorch_model.bin"), testdata.Torch(t, arrays))
	testfile.Write(t, filepath.Join(dir, "config.json"), Must(json.Marshal(m))(t))
	return dir
}

// The authors' files are read: the shape; the reading of the LSTM that the matrices for the previous
// state imply; and the head's results, which are those of its definition with the same numbers.
func TestPublishedFiles(t *testing.T) {
	m := OpenTarget(t, 400)
	for name, c := range map[string]struct {
		trained   bool
		change    map[string]any
		recurrent bool
	}{
		"as released":      {},
		"recurrent":        {trained: true, recurrent: true},
		"said recurrent":   {change: map[string]any{"lstm_recurrent": true}, recurrent: true},
		"said not so":      {trained: true, change: map[string]any{"lstm_recurrent": false}},
		"without defaults": {change: map[string]any{"num_target_layers": 3}},
	} {
		dir := published(t, c.trained, c.change)
		h, err := falcon.Open(registry.Head{Name: dir}, As(m))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if h.Block != 2 || h.Recurrent != c.recurrent || !slices.Equal(h.Taps, []int{3}) || h.Arch != "llama" ||
			h.Rope.Base != 1e6 {
			t.Errorf("%s: %+v", name, h.Config)
		}
		f := Must(safetensors.OpenFolder(dir))(t)
		defer f.Close()
		numbers := func(name string) []float32 { return Must(Must(f.Load(name))(t).Float32s())(t) }
		in := numbers("lstm.weight_ih_l1")
		state := numbers("lstm.bias_hh_l1")
		bias := numbers("lstm.bias_ih_l1")
		row := make([]float32, 32)
		h.LSTM[1].In.W.Row(row, 70)
		if !slices.Equal(row, in[70*32:71*32]) || h.LSTM[1].State.W != nil != c.recurrent {
			t.Errorf("%s: the second layer of the LSTM is another", name)
		}
		if want := bias[7] + state[7]; !c.recurrent && h.LSTM[1].In.Bias[7] != want {
			t.Errorf("%s: a bias is %g, want %g", name, h.LSTM[1].In.Bias[7], want)
		}
		d := newDrafter(t, h, &grow.Linear{K: 5}, shortlist.Options{}, m)
		s := Begin(t, d, draft.Options{}, 1)
		defer s.Close()
		Commit(t, d, s.Prompt([]int32{5, 9, 77, 3, 200, 11, 4}, h.Hidden, true))
		q := s.Request(6, 5, nil)
		Propose(t, d, q)
		o := oracle{h}
		lines := o.text(s)
		states := o.states(lines)
		for node := 1; node < 3; node++ {
			want := o.logs(states[len(lines)-3+node])[q.Tree.Token[node]]
			if got := float64(q.Tree.LogProb[node]); math.Abs(got-want) > 1e-4 {
				t.Errorf("%s: token %d has log-probability %g, want %g", name, node, got, want)
			}
		}
	}
	if _, err := headfile.ReadConfig[falcon.Config](registry.Head{Name: published(t, false,
		map[string]any{"k_mask": 0})}, nil); err == nil || !strings.Contains(err.Error(), "k_mask") {
		t.Errorf("a head without k_mask: %v", err)
	}
}

// A folder has exactly the tensors that the authors' code strictly loads, whichever of them the
// head lacks.
func TestWrittenFolders(t *testing.T) {
	m := OpenTarget(t, 400)
	for _, recurrent := range []bool{false, true} {
		c, err := headfile.ReadConfig[falcon.Config](registry.Head{Name: published(t, recurrent, nil)}, &m.Config)
		if err != nil {
			t.Fatal(err)
		}
		weights := Must(synthetic.Tensors(&c, tensor.F32, 1))(t)
		weights = append(weights, Must(tensor.FromFloat32s("token_embd.weight", tensor.F32, []int{420, 32},
			make([]float32, 420*32)))(t))
		dir := t.TempDir()
		if err := headfile.WriteFolder(dir, &c, weights, nil); err != nil {
			t.Fatal(err)
		}
		f := Must(safetensors.OpenFolder(dir))(t)
		defer f.Close()
		got := map[string][]int{}
		for _, x := range f.Tensors {
			got[x.Name] = x.Shape
		}
		if d := cmp.Diff(shapes(false), got); d != "" {
			t.Errorf("recurrent %v: the folder has other tensors: %s", recurrent, d)
		}
		again, err := headfile.ReadConfig[falcon.Config](registry.Head{Name: dir}, &m.Config)
		if err != nil || again.Recurrent != recurrent || again.Block != 2 {
			t.Errorf("recurrent %v came back as %+v, %v", recurrent, again, err)
		}
	}
}

// A head comes back unchanged from a file of any type and from a folder: its shape, and what it
// drafts.
func TestFilesRoundTrip(t *testing.T) {
	m := OpenTarget(t, 400)
	for seed := range uint64(8) {
		kind := []tensor.Type{tensor.F32, tensor.BF16, tensor.Q8_0}[seed%3]
		c := synthetic.Config[falcon.Config](rand.New(rand.NewPCG(seed, 9)), "falcon", m.Config, kind)
		weights := Must(synthetic.Tensors(&c, kind, seed))(t)
		made := Must(falcon.NewNetwork(c, synthetic.Head(&c, kind, seed), nil, &m.Network))(t)
		dir := t.TempDir()
		file, folder := filepath.Join(dir, "head.gguf"), filepath.Join(dir, "head")
		if err := errors.Join(headfile.WriteGGUF(file, "", &c, weights, nil, nil, kind),
			headfile.WriteFolder(folder, &c, weights, nil)); err != nil {
			t.Fatal(err)
		}
		want := drafted(t, made, m)
		for _, path := range []string{file, folder} {
			h := Must(falcon.Open(registry.Head{Name: path}, As(m)))(t)
			got := h.Config
			got.Name, got.TargetLayers = c.Name, c.TargetLayers
			if d := cmp.Diff(c, got); d != "" {
				t.Errorf("%s: the shape came back otherwise: %s", path, d)
			}
			if x := drafted(t, h, m); (path == file || kind == tensor.F32) && !slices.Equal(x, want) {
				t.Errorf("%s, %v: it drafts %v, want %v", path, kind, x, want)
			}
		}
	}
}

// drafted returns the log-probabilities and the tokens of a chain after a text.
func drafted(t *testing.T, n *falcon.Network, m *model.Model) []float32 {
	t.Helper()
	d := newDrafter(t, n, &grow.Linear{K: 6}, shortlist.Options{}, m)
	s := Begin(t, d, draft.Options{}, 1)
	defer s.Close()
	Commit(t, d, s.Prompt([]int32{5, 9, 77, 3, 200}, n.Hidden, true))
	q := s.Request(7, 6, nil)
	Propose(t, d, q)
	x := append([]float32(nil), q.Tree.LogProb...)
	for _, token := range q.Tree.Token {
		x = append(x, float32(token))
	}
	return x
}

// A head that does not fit the target is refused with an error that says what differs.
func TestRefusedHeads(t *testing.T) {
	m := OpenTarget(t, 400)
	path := filepath.Join(t.TempDir(), "head.gguf")
	for want, change := range map[string]func(c *falcon.Config){
		"":                       func(*falcon.Config) {},
		"hidden size 96":         func(c *falcon.Config) { c.Hidden = 96 },
		"vocabulary has 999":     func(c *falcon.Config) { c.Vocab = 999 },
		"made for a target of 9": func(c *falcon.Config) { c.TargetLayers, c.Taps = 9, []int{3} },
		"tap the last":           func(c *falcon.Config) { c.Taps = []int{1} },
	} {
		c := synthetic.Config[falcon.Config](rand.New(rand.NewPCG(3, 3)), "falcon", m.Config, tensor.F32)
		c.TargetLayers = 0
		change(&c)
		if err := headfile.WriteGGUF(path, "x", &c, Must(synthetic.Tensors(&c, tensor.F32, 1))(t), nil, nil,
			tensor.F32); err != nil {
			t.Fatal(err)
		}
		_, err := falcon.Open(registry.Head{Name: path}, As(m))
		if want == "" != (err == nil) || err != nil && (!strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), path)) {
			t.Errorf("%q: %v", want, err)
		}
	}
	for want, change := range map[string]func(c *falcon.Config){
		"predicts 0 tokens":   func(c *falcon.Config) { c.Block = 0 },
		"predicts 17 tokens":  func(c *falcon.Config) { c.Block = 17 },
		"taps 2 layers":       func(c *falcon.Config) { c.Taps = []int{1, 2} },
		"want llama or qwen3": func(c *falcon.Config) { c.Arch = "gptneox" },
	} {
		c := synthetic.Config[falcon.Config](rand.New(rand.NewPCG(3, 3)), "falcon", m.Config, tensor.F32)
		change(&c)
		if c.Validate() == nil || !strings.Contains(c.Validate().Error(), want) {
			t.Errorf("%q: %v", want, c.Validate())
		}
	}
}

// The family opens the target's head, or the given file, with any tree.
func TestFamily(t *testing.T) {
	m := OpenTarget(t, 400)
	target, path := As(m), filepath.Join(t.TempDir(), "head.gguf")
	if _, err := registry.New("falcon", target); err == nil || !strings.Contains(err.Error(), "no Falcon head") {
		t.Errorf("without a head: %v", err)
	}
	c := synthetic.Config[falcon.Config](rand.New(rand.NewPCG(1, 3)), "falcon", m.Config, tensor.F32)
	if err := headfile.WriteGGUF(path, "x", &c, Must(synthetic.Tensors(&c, tensor.F32, 1))(t), nil, nil,
		tensor.F32); err != nil {
		t.Fatal(err)
	}
	target.Heads, target.Shared = []registry.Head{{Name: path}}, new(registry.Shared)
	for _, text := range []string{"falcon", "falcon:k=4,depth=3,n=20+text", "falcon:tree=static",
		"falcon:tree=static,model=" + path, "falcon:tree=best-first,width=3+freq:size=64",
		"falcon:tree=linear,k=3", "falcon:model=" + path + "+context"} {
		if d, err := registry.New(text, target); err != nil || !slices.Equal(d.Taps(), []int{3}) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, say := range map[string]string{
		"falcon:tree=oak": "want one of linear", "falcon:tree=static,k=3": "no such option", "falcon:k=0": "k is 0",
		"falcon:model=" + t.TempDir(): "config.json",
		"falcon+adapt":                "adapt",
	} {
		if _, err := registry.New(text, target); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v, want an error that says %q", text, err, say)
		}
	}
}

// The authors' static tree has 166 nodes with its root, and at each depth as many as the release lists.
func TestStaticTree(t *testing.T) {
	m := OpenTarget(t, 400)
	n := head(t, m, 1, func(c *falcon.Config) { c.Block = 2 })
	target, path := As(m), filepath.Join(t.TempDir(), "head.gguf")
	if err := headfile.WriteGGUF(path, "x", &n.Config, Must(synthetic.Tensors(&n.Config, tensor.F32, 1))(t), nil, nil,
		tensor.F32); err != nil {
		t.Fatal(err)
	}
	d := Must(registry.New("falcon:tree=static,model="+path, target))(t)
	s := Begin(t, d, draft.Options{}, 1)
	defer s.Close()
	Commit(t, d, s.Prompt([]int32{5, 9, 77, 3}, n.Hidden, true))
	q := s.Request(400, 20, nil)
	Propose(t, d, q)
	counts := make([]int, 9)
	for _, depth := range q.Tree.Depth {
		counts[depth]++
	}
	if want := []int{1, 20, 15, 19, 23, 21, 23, 21, 23}; !slices.Equal(counts, want) {
		t.Errorf("nodes by depth: %v, want %v", counts, want)
	}
}
