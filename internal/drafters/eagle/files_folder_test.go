package eagle_test

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/grovellm/grove/gguf"
	. "github.com/grovellm/grove/internal/drafters/drafttest"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
)

// The published forms, with the fields of real heads but small numbers: EAGLE-3's authors' for
// Llama 3.1, the same as written by SGLang's training code, vLLM's speculators for Qwen3, and
// EAGLE-2's.
const (
	authors = `{"architectures": ["LlamaForCausalLM"], "bos_token_id": 1, "eos_token_id": 2, "hidden_act": "silu", "hidden_size": 8,
		"initializer_range": 0.02, "intermediate_size": 24, "max_position_embeddings": 2048, "model_type": "llama", "num_attention_heads": 4,
		"num_key_value_heads": 2, "num_hidden_layers": 1, "pad_token_id": 0, "rms_norm_eps": 1e-05, "tie_word_embeddings": false,
		"torch_dtype": "float16", "use_cache": true, "vocab_size": 20, "draft_vocab_size": 6}`
	trained = `{"architectures": ["LlamaForCausalLMEagle3"], "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 5, 8], "use_aux_hidden_state": true},
		"hidden_act": "silu", "hidden_size": 8, "intermediate_size": 24, "max_position_embeddings": 2048, "model_type": "llama", "head_dim": 4,
		"num_attention_heads": 2, "num_key_value_heads": 1, "num_hidden_layers": 1, "rms_norm_eps": 1e-05, "rope_theta": 1000000,
		"tie_word_embeddings": false, "vocab_size": 20, "draft_vocab_size": 20}`
	vllm = `{"architectures": ["Eagle3Speculator"], "speculators_model_type": "eagle3", "speculators_version": "0.3.0", "draft_vocab_size": 6,
		"target_hidden_size": null, "norm_before_residual": true, "torch_dtype": "bfloat16", "eagle_aux_hidden_state_layer_ids": [2, 6, 9],
		"transformer_layer_config": {"model_type": "llama", "hidden_size": 8, "intermediate_size": 24, "num_hidden_layers": 1,
			"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 4, "vocab_size": 20, "rms_norm_eps": 1e-06,
			"rope_theta": 1000000, "rope_scaling": null, "max_position_embeddings": 4096, "hidden_act": "silu", "attention_bias": false},
		"speculators_config": {"algorithm": "eagle3", "default_proposal_method": "greedy",
			"proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 3, "verifier_accept_k": 1, "accept_tolerance": 0.0}],
			"verifier": {"name_or_path": "Qwen/Qwen3-8B", "architectures": ["Qwen3ForCausalLM"]}}}`
	second = `{"architectures": ["LlamaForCausalLM"], "bias": false, "hidden_act": "silu", "hidden_size": 8, "intermediate_size": 24,
		"max_position_embeddings": 2048, "model_type": "llama", "num_attention_heads": 2, "num_key_value_heads": 2, "num_hidden_layers": 1,
		"rms_norm_eps": 1e-05, "vocab_size": 20}`
)

// layer returns a model.Config with what they share.
func layer(change func(c *model.Config)) model.Config {
	c := model.Config{Arch: "llama", Vocab: 20, Hidden: 8, Layers: 1, Heads: 2, KVHeads: 1, HeadDim: 4, FFN: 24,
		Context: 2048, NormEps: 1e-5,
		Rope: model.RopeConfig{Base: 1e4, Dims: 4, Scale: 1}}
	change(&c)
	return c
}

// tensorsOf lists a folder's tensors by name and shape, according to its config. The first layer is
// called first.
func tensorsOf(first string, c *eagle.Config) map[string][]int {
	h := c.Hidden
	q := c.Heads * c.HeadDim
	kv := c.KVHeads * c.HeadDim
	in := 2 * h
	list := map[string][]int{"fc.weight": {h, 3 * h}, "norm.weight": {h}, "lm_head.weight": {c.DraftVocab, h},
		first + "hidden_norm.weight": {h}, first + "input_layernorm.weight": {h}}
	if c.Version == 2 {
		in = h
		list = map[string][]int{"fc.weight": {h, 2 * h}, "embed_tokens.weight": {c.Vocab, h}}
	}
	maps.Copy(list, map[string][]int{
		first + "self_attn.q_proj.weight": {q, in}, first + "self_attn.k_proj.weight": {kv, in},
		first + "self_attn.v_proj.weight": {kv, in},
		first + "self_attn.o_proj.weight": {h, q}, first + "mlp.gate_proj.weight": {c.FFN, h},
		first + "mlp.up_proj.weight":   {c.FFN, h},
		first + "mlp.down_proj.weight": {h, c.FFN}, first + "post_attention_layernorm.weight": {h},
	})
	return list
}

// folder writes a config.json with some fields changed (a nil deletes one), and tensors of zeros.
// tokens are a draft vocabulary.
func folder(t testing.TB, config string, change map[string]any, list map[string][]int, tokens []int32,
	vocab int) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(config), &m); err != nil {
		t.Fatal(err)
	}
	for k, v := range change {
		m[k] = v
		if v == nil {
			delete(m, k)
		}
	}
	dir, w := t.TempDir(), safetensors.NewWriter()
	for name, shape := range list {
		w.AddTensor(Must(tensor.FromFloat32s(name, tensor.F16, shape,
			make([]float32, Must(numtype.CountElements(shape))(t))))(t))
	}
	if tokens != nil {
		d2t, t2d := []byte{}, make([]byte, vocab)
		for i, id := range tokens {
			d2t = binary.LittleEndian.AppendUint64(d2t, uint64(int64(id)-int64(i)))
			t2d[int(id)%vocab] = 1
		}
		w.AddTensor(tensor.Tensor{Name: "d2t", Type: numtype.I64, Shape: []int{len(tokens)}, Data: d2t})
		w.AddTensor(tensor.Tensor{Name: "t2d", Type: numtype.Bool, Shape: []int{vocab}, Data: t2d})
	}
	if err := w.WriteFile(filepath.Join(dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	testfile.Write(t, filepath.Join(dir, "config.json"), Must(json.Marshal(m))(t))
	return dir
}

var sixTokens = []int32{0, 1, 3, 7, 12, 19}

func TestPublishedFolders(t *testing.T) {
	target := model.Config{Hidden: 8, Vocab: 20, Layers: 12}
	four := layer(func(c *model.Config) {
		c.Heads = 4
		c.KVHeads = 2
		c.HeadDim = 2
		c.Rope.Dims = 2
	})
	qwen := layer(func(c *model.Config) { c.Rope.Base = 1e6 })
	long := layer(func(c *model.Config) {
		c.Rope.Base = 1e6
		c.NormEps = 1e-6
		c.Context = 4096
	})
	normed := eagle.Config{Base: headfile.Base{Config: long, Taps: []int{2, 6, 9}, DraftVocab: 6},
		Version: 3, NormBeforeResidual: true}
	for name, c := range map[string]struct {
		config, first string
		change        map[string]any
		tokens        []int32
		want          eagle.Config
	}{
		"authors": {authors, "midlayer.", nil, sixTokens,
			eagle.Config{Base: headfile.Base{Config: four, Taps: []int{2, 6, 9}, DraftVocab: 6}, Version: 3}},
		"trained": {trained, "midlayer.", nil, nil, eagle.Config{Base: headfile.Base{Config: qwen, Taps: []int{2, 6, 9},
			DraftVocab: 20}, Version: 3}},
		"vllm": {vllm, "layers.0.", nil, sixTokens, normed},
		"vllm unsaid": {vllm, "layers.0.", map[string]any{"norm_before_residual": nil,
			"eagle_aux_hidden_state_layer_ids": nil}, sixTokens, normed},
		"second": {second, "layers.0.", nil, nil,
			eagle.Config{Base: headfile.Base{Config: layer(func(c *model.Config) { c.KVHeads = 2 }), Taps: []int{12},
				DraftVocab: 20}, Version: 2}},
		"second, shallow": {second, "layers.0.", map[string]any{"num_target_layers": 2}, nil,
			eagle.Config{Base: headfile.Base{Config: layer(func(c *model.Config) { c.KVHeads = 2 }), Taps: []int{2},
				DraftVocab: 20, TargetLayers: 2}, Version: 2}},
	} {
		dir := folder(t, c.config, c.change, tensorsOf(c.first, &c.want), c.tokens, 20)
		target.Layers = cmp.Or(c.want.TargetLayers, 12)
		got, err := headfile.ReadConfig[eagle.Config](registry.Head{Name: dir}, &target)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := gocmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		f := Must(headfile.Read(registry.Head{Name: dir}, (&eagle.Config{}).Kind()))(t)
		if !slices.Equal(f.Tokens, c.tokens) {
			t.Errorf("%s: the draft vocabulary is %v", name, f.Tokens)
		}
		f.Close()
	}
}

func TestRefusedFolders(t *testing.T) {
	base := eagle.Config{Base: headfile.Base{Config: layer(func(c *model.Config) {}), DraftVocab: 6}, Version: 3}
	good := tensorsOf("layers.0.", &base)
	with := func(name string, shape ...int) map[string][]int {
		list := maps.Clone(good)
		list[name] = shape
		if shape == nil {
			delete(list, name)
		}
		return list
	}
	for want, c := range map[string]struct {
		change map[string]any
		list   map[string][]int
		tokens []int32
	}{
		"":                               {nil, good, sixTokens},
		"another head of vLLM's":         {map[string]any{"speculators_model_type": "peagle"}, good, sixTokens},
		"is a tensor mask_hidden":        {nil, with("mask_hidden", 1, 1, 24), sixTokens},
		"is a Hydra head":                {map[string]any{"speculators_model_type": "hydra"}, good, sixTokens},
		"target_hidden_size\" is 16":     {map[string]any{"target_hidden_size": 16}, good, sixTokens},
		"draft_vocab_size\" is 0":        {map[string]any{"draft_vocab_size": 0}, good, sixTokens},
		"model_type \"\" is not one":     {map[string]any{"transformer_layer_config": nil}, good, sixTokens},
		"want true or false":             {map[string]any{"norm_before_residual": "no"}, good, sixTokens},
		"has no tensors fc.weight":       {nil, with("fc.weight"), sixTokens},
		"extra.weight\" does not belong": {nil, with("extra.weight", 3), sixTokens},
		"lm_head.weight\" has shape":     {nil, with("lm_head.weight", 7, 8), sixTokens},
		"tensor norm.weight is missi":    {nil, with("norm.weight"), sixTokens},
		"says which":                     {nil, good, nil},
		"entry 5 names token 20":         {nil, good, []int32{0, 1, 3, 7, 12, 20}},
		"padding hides":                  {map[string]any{"eagle_aux_hidden_state_layer_ids": nil}, good, sixTokens},
		"taps layers [2 6 99]": {map[string]any{"eagle_aux_hidden_state_layer_ids": []int{2, 6, 99}}, good,
			sixTokens},
		"want 1 to the vocabulary's": {map[string]any{"draft_vocab_size": 21}, with("lm_head.weight", 21, 8),
			sixTokens},
		"taps 999 layers": {map[string]any{"eagle_aux_hidden_state_layer_ids": make([]int, 999)}, good,
			sixTokens},
	} {
		dir := folder(t, vllm, c.change, c.list, c.tokens, 20)
		_, err := headfile.ReadConfig[eagle.Config](registry.Head{Name: dir},
			&model.Config{Hidden: 8, Vocab: 20, Layers: 12, Padded: 5})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), dir)) {
			t.Errorf("%q: %v", want, err)
		}
	}
	dir := folder(t, vllm, nil, good, sixTokens, 20)
	if _, err := model.Open(dir, model.Options{}); err == nil || !strings.Contains(err.Error(), "a drafter's head") {
		t.Errorf("a head for a model: %v", err)
	}
}

// Written folders have the names that other programs look for, and no others.
func TestNames(t *testing.T) {
	m, _ := FileTarget(t)
	c := synthetic.Config[eagle.Config](rand.New(rand.NewPCG(3, 3)), "eagle3", m.Config, tensor.F32)
	c.Arch = "llama"
	c.Layers = 1
	c.Taps = []int{1, 2, 3}
	c.DraftVocab = 50
	c.NormBeforeResidual = false
	c.NormBeforeFC = false
	c.FCNorm = false
	c.NormOutput = false
	weights, tokens := Must(synthetic.Tensors(&c, tensor.F32, 1))(t), synthetic.Tokens(&c, 1)
	dir := t.TempDir()
	file := filepath.Join(dir, "head.gguf")
	if err := errors.Join(headfile.WriteGGUF(file, "x", &c, weights, tokens, nil, tensor.Q8_0),
		headfile.WriteFolder(filepath.Join(dir, "authors"), &c, weights, tokens),
		headfile.WriteSpeculators(filepath.Join(dir, "vllm"), &c, weights, tokens, m.Config)); err != nil {
		t.Fatal(err)
	}
	f := Must(gguf.Open(file))(t)
	defer f.Close()
	got := map[string]string{}
	for _, x := range f.Tensors {
		got["gguf"] += fmt.Sprintf(" %s", x.Name)
	}
	for key := range f.Meta() {
		if rest, ok := strings.CutPrefix(key, "eagle3."); ok {
			got["keys"] += " " + rest
		}
	}
	for _, form := range []string{"authors", "vllm"} {
		s := Must(safetensors.OpenFolder(filepath.Join(dir, form)))(t)
		for _, x := range s.Tensors {
			got[form] += " " + x.Name
		}
		s.Close()
	}
	const rest = "input_layernorm.weight ~mlp.down_proj.weight ~mlp.gate_proj.weight ~mlp.up_proj.weight ~post_attention_layernorm.weight " +
		"~self_attn.k_proj.weight ~self_attn.o_proj.weight ~self_attn.q_proj.weight ~self_attn.v_proj.weight"
	for form, want := range map[string]string{
		"gguf": "d2t fc.weight blk.0.attn_norm_2.weight output_norm.weight output.weight blk.0.attn_norm.weight blk.0.ffn_norm.weight blk.0.attn_q.weight " +
			"blk.0.attn_k.weight blk.0.attn_v.weight blk.0.ffn_gate.weight blk.0.attn_output.weight blk.0.ffn_up.weight blk.0.ffn_down.weight",
		"keys": "vocab_size context_length embedding_length block_count feed_forward_length attention.head_count rope.dimension_count rope.freq_base " +
			"attention.head_count_kv attention.layer_norm_rms_epsilon attention.key_length attention.value_length target_layers target_hidden_size " +
			"norm_before_residual norm_before_fc",
		"authors": "d2t fc.weight lm_head.weight ~hidden_norm.weight ~" + rest + " norm.weight t2d",
		"vllm":    "d2t fc.weight ~hidden_norm.weight ~" + rest + " lm_head.weight norm.weight t2d",
	} {
		want = strings.ReplaceAll(want, "~", map[string]string{"authors": "midlayer.", "vllm": "layers.0."}[form])
		a, b := strings.Fields(got[form]), strings.Fields(want)
		slices.Sort(a)
		slices.Sort(b)
		if d := gocmp.Diff(b, a); d != "" {
			t.Errorf("%s: %s", form, d)
		}
	}
}

// Whatever config.json says, reading it ends in an error that names the folder, or in a shape that
// matches its tensors.
func FuzzConfig(f *testing.F) {
	base := eagle.Config{Base: headfile.Base{Config: layer(func(c *model.Config) {}), DraftVocab: 6}, Version: 3}
	dir := folder(f, vllm, nil, tensorsOf("layers.0.", &base), sixTokens, 20)
	f.Add([]byte(vllm))
	f.Add([]byte(strings.ReplaceAll(vllm, `"hidden_size": 8`, `"hidden_size": 1000000`)))
	f.Add([]byte(strings.ReplaceAll(vllm, `"num_hidden_layers": 1`, `"num_hidden_layers": 4000`)))
	f.Add([]byte(strings.ReplaceAll(vllm, `[2, 6, 9]`, `[-1, null, 1e99]`)))
	f.Add([]byte(`{"transformer_layer_config": [], "draft_vocab_size": -5}`))
	f.Fuzz(func(t *testing.T, config []byte) {
		testfile.Write(t, filepath.Join(dir, "config.json"), config)
		c, err := headfile.ReadConfig[eagle.Config](registry.Head{Name: dir},
			&model.Config{Hidden: 8, Vocab: 20, Layers: 12})
		if err != nil && !strings.Contains(err.Error(), dir) {
			t.Fatalf("an error that does not name the folder: %v", err)
		}
		if err == nil && (c.Hidden != 8 || c.DraftVocab != 6 || c.FFN != 24) {
			t.Fatalf("%+v is not what the tensors make", c)
		}
	})
}

// Empty lists of tapped layers leave the taps to the target's depth, as missing lists do.
func TestEmptyTaps(t *testing.T) {
	base := eagle.Config{Base: headfile.Base{Config: layer(func(c *model.Config) {}), DraftVocab: 6}, Version: 3}
	target := model.Config{Hidden: 8, Vocab: 20, Layers: 12}
	for name, c := range map[string]struct {
		config, first string
		change        map[string]any
		tokens        []int32
	}{
		"vllm": {vllm, "layers.0.", map[string]any{"eagle_aux_hidden_state_layer_ids": []int{}}, sixTokens},
		"authors": {authors, "midlayer.", map[string]any{"eagle_aux_hidden_state_layer_ids": []int{},
			"num_attention_heads": 2, "num_key_value_heads": 1}, sixTokens},
		"trained": {authors, "midlayer.",
			map[string]any{"eagle_config": map[string]any{"eagle_aux_hidden_state_layer_ids": []int{}},
				"num_attention_heads": 2,
				"num_key_value_heads": 1}, sixTokens},
	} {
		dir := folder(t, c.config, c.change, tensorsOf(c.first, &base), c.tokens, 20)
		got, err := headfile.ReadConfig[eagle.Config](registry.Head{Name: dir}, &target)
		if err != nil || !slices.Equal(got.Taps, []int{2, 6, 9}) {
			t.Errorf("%s: taps %v, %v", name, got.Taps, err)
		}
	}
	dir := folder(t, trained, map[string]any{"eagle_config": map[string]any{"use_aux_hidden_state": false}},
		tensorsOf("midlayer.", &base), sixTokens, 20)
	if _, err := headfile.ReadConfig[eagle.Config](registry.Head{Name: dir}, &target); err == nil ||
		!strings.Contains(err.Error(), "use_aux_hidden_state") {
		t.Errorf("a head without taps: %v", err)
	}
}

// vLLM's first format has EAGLE-1, EAGLE-2 and HASS heads under other names: the head is the same.
// It is refused if it has that format's additional norms.
func TestFirstSpeculators(t *testing.T) {
	m, _ := FileTarget(t)
	c := synthetic.Config[eagle.Config](rand.New(rand.NewPCG(6, 6)), "eagle2", m.Config, tensor.F32)
	c.Arch = "llama"
	weights := Must(synthetic.Tensors(&c, tensor.F32, 1))(t)
	if !slices.ContainsFunc(weights, func(w tensor.Tensor) bool { return w.Name == "output.weight" }) {
		weights = append(weights,
			Must(tensor.FromFloat32s("output.weight", tensor.F32, []int{c.Vocab, c.Hidden},
				make([]float32, c.Vocab*c.Hidden)))(t))
	}
	own := t.TempDir()
	if err := headfile.WriteFolder(own, &c, weights, nil); err != nil {
		t.Fatal(err)
	}
	want := Must(eagle.Open(registry.Head{Name: own}, As(m)))(t)

	var layers map[string]any
	if err := json.Unmarshal(Must(os.ReadFile(filepath.Join(own, "config.json")))(t), &layers); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w := safetensors.NewWriter()
	from := Must(safetensors.OpenFolder(own))(t)
	defer from.Close()
	for _, info := range from.Tensors {
		x, _ := from.Tensor(info.Name)
		x.Name = strings.Replace(strings.Replace(x.Name, "fc.", "fusion_fc.", 1), "layers.0.", "transformer.", 1)
		w.AddTensor(x)
	}
	for _, norms := range []bool{false, true} {
		config := Must(json.Marshal(map[string]any{"architectures": []string{"EagleSpeculator", "LlamaDecoderLayer"},
			"speculators_model_type":         "eagle",
			"transformer_layer_architecture": "LlamaDecoderLayer", "transformer_layer_config": layers,
			"layernorms": norms, "fusion_bias": false}))(t)
		if err := w.WriteFile(filepath.Join(dir, "model.safetensors")); err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, filepath.Join(dir, "config.json"), config)
		got, err := eagle.Open(registry.Head{Name: dir}, As(m))
		switch {
		case norms:
			if err == nil || !strings.Contains(err.Error(), "layernorms") {
				t.Errorf("with norms: %v", err)
			}
		case err != nil:
			t.Error(err)
		case got.Version != 2 || apart(logits(got, m), logits(want, m)) != 0:
			t.Error("the head computes something else")
		}
	}
}

// A head of EAGLE-2 that drafts only some of the tokens stays the same when it is read from its folder.
func TestFolderOfFewerTokens(t *testing.T) {
	m, _ := FileTarget(t)
	c := synthetic.Config[eagle.Config](rand.New(rand.NewPCG(3, 3)), "eagle2", m.Config, tensor.F32)
	c.DraftVocab = m.Config.Vocab / 2
	weights, tokens := Must(synthetic.Tensors(&c, tensor.F32, 1))(t), synthetic.Tokens(&c, 1)
	dir := t.TempDir()
	folder, file := filepath.Join(dir, "hf"), filepath.Join(dir, "head.gguf")
	if err := errors.Join(headfile.WriteFolder(folder, &c, weights, tokens),
		headfile.WriteGGUF(file, "x", &c, weights, tokens, nil, tensor.F32)); err != nil {
		t.Fatal(err)
	}
	from := Must(eagle.Open(registry.Head{Name: folder}, As(m)))(t)
	want := Must(eagle.Open(registry.Head{Name: file}, As(m)))(t)
	if from.DraftVocab != c.DraftVocab || apart(logits(from, m), logits(want, m)) != 0 {
		t.Errorf("the folder has %d tokens of %d, or says something else than the file", from.DraftVocab, c.DraftVocab)
	}
}
