package main

import (
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/peagle"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/spark"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// writeHead writes a random head for a target as GGUF.
func writeHead(t *testing.T, path string, s headfile.Shape) {
	t.Helper()
	weights, err := synthetic.Tensors(s, tensor.F32, 1)
	if err == nil {
		err = headfile.WriteGGUF(path, "head", s, weights, synthetic.Tokens(s, 1), nil, tensor.F32)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The folders for vLLM have the fields and tensors that it reads, of each kind of head; grove reads
// them again as the same head.
func TestExportVLLM(t *testing.T) {
	target, dir := tiny(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	f, err := gguf.Open(target)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.ReadGGUF(f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 3))
	e3 := synthetic.Config[eagle.Config](rng, "eagle3", m, tensor.F32)
	e3.DraftVocab = 40
	e3.Taps = []int{1, 2, 3}
	e3.TargetLayers = m.Layers
	e3.Layers = 1
	e3.Arch = "llama"
	e3.NormBeforeFC = false
	e3.FCNorm = false
	e3.NormOutput = false
	flash := synthetic.Config[jet.Config](rng, "", m, tensor.F32)
	flash.Causal = false
	flash.Block = 8
	flash.Taps = []int{1, 2, 4}
	flash.TargetLayers = m.Layers
	flash.Layers = 1
	causal := flash
	causal.Causal = true
	parallel := peagle.Config{Config: e3, Depths: 4, Mask: 7}
	e2 := synthetic.Config[eagle.Config](rng, "eagle2", m, tensor.F32)
	block := synthetic.Config[specblock.Config](rng, "specblock", m, tensor.F32)
	dspark := spark.Config{Config: flash, Variant: "dspark", Anchor: true, Rank: 8, Markov: "vanilla",
		Confidence: spark.TokenConfident}
	gated := dspark
	gated.Markov = "gated"
	flash2 := spark.Config{Config: flash, Variant: "dflash2", Rank: 8, Kernel: 2, Group: 4, Top: 5}
	for name, s := range map[string]headfile.Shape{"dspark": &dspark, "gated": &gated, "flash2": &flash2, "eagle3": &e3,
		"flash": &flash, "jet": &causal, "peagle": &parallel, "eagle2": &e2, "block": &block} {
		writeHead(t, at(name+".gguf"), s)
	}
	layer := []string{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj",
		"mlp.up_proj", "mlp.down_proj",
		"input_layernorm", "post_attention_layernorm"}
	names := func(layer []string, more ...string) (all []string) {
		for _, l := range layer {
			all = append(all, "layers.0."+l+".weight")
		}
		all = append(all, more...)
		slices.Sort(all)
		return all
	}
	normed := append([]string{"self_attn.q_norm", "self_attn.k_norm"}, layer...)
	verifier := map[string]any{"name_or_path": "org/target", "architectures": []any{"Qwen3ForCausalLM"}}
	config := func(kind string, tokens int) map[string]any {
		return map[string]any{"algorithm": kind, "default_proposal_method": "greedy", "verifier": verifier,
			"proposal_methods": []any{map[string]any{"proposal_type": "greedy", "speculative_tokens": float64(tokens),
				"verifier_accept_k": 1.0, "accept_tolerance": 0.0}}}
	}
	for _, c := range []struct {
		head, method, tokens string
		args                 []string
		fields               map[string]any // of config.json; nil: there is none
		layers               bool           // those of the layers are separate
		tensors              []string
	}{
		{"eagle3", "eagle3", "5", nil, map[string]any{
			"architectures": []any{"Eagle3Speculator"}, "speculators_model_type": "eagle3",
			"speculators_config": config("eagle3", 5), "torch_dtype": "bfloat16",
			"draft_vocab_size": 40.0, "eagle_aux_hidden_state_layer_ids": []any{1.0, 2.0, 3.0},
			"norm_before_residual": e3.NormBeforeResidual,
			"norm_before_fc":       false, "fc_norm": false, "norm_output": e3.NormOutput, "target_hidden_size": float64(m.Hidden),
			"tie_word_embeddings": false,
		}, true, names(append([]string{"hidden_norm"}, layer...), "embed_tokens.weight", "fc.weight", "norm.weight",
			"lm_head.weight", "d2t", "t2d")},
		{"peagle", "eagle3", `4,"parallel_drafting":true`, nil, map[string]any{
			"architectures": []any{"PEagleSpeculator"}, "speculators_model_type": "peagle",
			"speculators_config": config("peagle", 4), "torch_dtype": "bfloat16",
			"draft_vocab_size": 40.0, "eagle_aux_hidden_state_layer_ids": []any{1.0, 2.0, 3.0},
			"norm_before_residual": e3.NormBeforeResidual,
			"norm_before_fc":       false, "fc_norm": false, "norm_output": e3.NormOutput, "mask_token_id": 7.0,
		}, true, names(append([]string{"hidden_norm"}, layer...), "embed_tokens.weight", "fc.weight", "mask_hidden",
			"norm.weight", "lm_head.weight", "d2t", "t2d")},
		{"flash", "dflash", "3", []string{"--tokens", "3"}, map[string]any{
			"architectures": []any{"DFlashSpeculator"}, "speculators_model_type": "dflash",
			"speculators_config": config("dflash", 7), "torch_dtype": "bfloat16",
			"block_size": 8.0, "mask_token_id": float64(flash.Mask),
			"aux_hidden_state_layer_ids": []any{1.0, 2.0, 4.0}, "draft_vocab_size": float64(m.Vocab),
			"sample_from_anchor": false, "sliding_window_non_causal": true, "dflash_config": nil,
		}, true, names(normed, "fc.weight", "hidden_norm.weight", "norm.weight")},
		{"dspark", "dspark", "8", nil, map[string]any{
			"architectures": []any{"DSparkDraftModel"}, "speculators_model_type": "dspark",
			"speculators_config": config("dspark", 8), "torch_dtype": "bfloat16",
			"block_size": 8.0, "mask_token_id": float64(flash.Mask),
			"aux_hidden_state_layer_ids": []any{1.0, 2.0, 4.0}, "draft_vocab_size": float64(m.Vocab),
			"sample_from_anchor": true, "sliding_window_non_causal": true, "markov_rank": 8.0, "markov_head_type": "vanilla",
			"enable_confidence_head": true, "confidence_head_with_markov": true,
		}, true, names(normed, "fc.weight", "hidden_norm.weight", "norm.weight", "markov_head.markov_w1.weight",
			"markov_head.markov_w2.weight",
			"confidence_head.proj.weight")},
		{"flash2", "dflash2", "7", nil, map[string]any{
			"architectures": []any{"DFlash2DraftModel"}, "speculators_model_type": "dflash2",
			"speculators_config": config("dflash2", 7), "torch_dtype": "bfloat16",
			"block_size": 8.0, "mask_token_id": float64(flash.Mask),
			"aux_hidden_state_layer_ids": []any{1.0, 2.0, 4.0}, "draft_vocab_size": float64(m.Vocab),
			"sample_from_anchor": false, "sliding_window_non_causal": true, "conv_kernel_size": 2.0, "conv_group_size": 4.0,
			"selector_rank":  8.0,
			"selector_top_k": 5.0,
		}, true, names(append([]string{"attention_conv.kernel_projection", "mlp_conv.kernel_projection"}, normed...),
			"fc.weight", "hidden_norm.weight",
			"norm.weight", "layers.0.attention_conv.base_kernel", "layers.0.mlp_conv.base_kernel",
			"candidate_selector.predecessor_codebook",
			"candidate_selector.successor_codebook", "candidate_selector.hidden_projection.weight")},
		{"jet", "dflash", "7", nil, map[string]any{
			"architectures": []any{"DFlashDraftModel"}, "speculators_model_type": nil, "block_size": 8.0,
			"transformer_layer_config": nil,
			"dflash_config": map[string]any{"mask_token_id": float64(flash.Mask), "target_layer_ids": []any{0.0, 1.0, 3.0},
				"causal": true, "causal_head": true},
		}, false, names(normed, "fc.weight", "hidden_norm.weight", "norm.weight")},
	} {
		to := at("for-" + c.head)
		var printed struct{ Serve, Notes []string }
		out := must(t, "", append([]string{"export", "vllm", at(c.head + ".gguf"), to, "--target", target, "--verifier",
			"org/target", "--json"}, c.args...)...)
		if err := json.Unmarshal([]byte(out), &printed); err != nil {
			t.Fatal(err)
		}
		want := []string{"vllm", "serve", "org/target", "--speculative-config",
			`{"method":"` + c.method + `","model":"` + to + `","num_speculative_tokens":` + c.tokens + `}`}
		if !slices.Equal(printed.Serve, want) || !strings.Contains(printed.Notes[len(printed.Notes)-1], "chains") {
			t.Errorf("%s: %+v, want %q", c.head, printed, want)
		}
		data, err := os.ReadFile(filepath.Join(to, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(data, &fields); err != nil {
			t.Fatal(err)
		}
		for name, want := range c.fields {
			if d := cmp.Diff(want, fields[name]); d != "" {
				t.Errorf("%s: field %s: %s", c.head, name, d)
			}
		}
		if c.layers {
			fields, _ = fields["transformer_layer_config"].(map[string]any)
		}
		for name, want := range map[string]any{"hidden_size": float64(m.Hidden), "vocab_size": float64(m.Vocab),
			"num_hidden_layers": 1.0,
			"model_type": map[string]any{"eagle3": "llama", "peagle": "llama", "flash": "qwen3", "jet": "qwen3",
				"dspark": "qwen3", "flash2": "qwen3"}[c.head]} {
			if fields[name] != want {
				t.Errorf("%s: field %s of the layers is %v, want %v", c.head, name, fields[name], want)
			}
		}
		folder, err := safetensors.OpenFolder(to)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range folder.Tensors {
			got = append(got, x.Name)
		}
		slices.Sort(got)
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
		if d := cmp.Diff(c.tensors, got); d != "" {
			t.Errorf("%s: %s", c.head, d)
		}
		manifest, err := os.ReadFile(filepath.Join(to, "kubernetes.yaml"))
		for _, want := range []string{"name: for-" + c.head, `"org/target"`, `\"model\":\"/heads/for-` + c.head,
			`\"num_speculative_tokens\":` + strings.ReplaceAll(c.tokens, `"`, `\"`), "nvidia.com/gpu"} {
			if err != nil || !strings.Contains(string(manifest), want) {
				t.Errorf("%s: %v, no %s in\n%s", c.head, err, want, manifest)
			}
		}
		// What grove makes of the folder is the head that it had, in BF16.
		before, after := describe(t, at(c.head+".gguf")), describe(t, to)
		if before != after {
			t.Errorf("%s came back as %q, was %q", c.head, after, before)
		}
		must(t, "", "convert", to, at(c.head+"-again.gguf"), "--target", target)
		sameHead(t, at(c.head+".gguf"), at(c.head+"-again.gguf"))
	}
	for wrong, args := range map[string][]string{
		"--verifier":                       {at("eagle3.gguf"), at("x"), "--target", target},
		"this kind of EAGLE head: EAGLE-2": {at("eagle2.gguf"), at("x"), "--target", target, "--verifier", "a/b"},
		"DSpark head, gated":               {at("gated.gguf"), at("x"), "--target", target, "--verifier", "a/b"},
		"SpecBlock head":                   {at("block.gguf"), at("x"), "--target", target, "--verifier", "a/b"},
		"drafts 7 at most":                 {at("flash.gguf"), at("x"), "--target", target, "--verifier", "a/b", "--tokens", "8"},
		"want 1 or more":                   {at("flash.gguf"), at("x"), "--target", target, "--verifier", "a/b", "--tokens", "-1"},
		"want an EAGLE-3, P-EAGLE":         {target, at("x"), "--target", target, "--verifier", "a/b"},
	} {
		if code, _, stderr := runGrove("", append([]string{"export", "vllm"}, args...)...); code == command.ExitOK ||
			!strings.Contains(stderr, wrong) {
			t.Errorf("%q: status %d, %s; want %q", args, code, stderr, wrong)
		}
	}
	if out := must(t, "", "export", "vllm", at("jet.gguf"), at("it's"), "--target", target, "--verifier",
		"a/b"); !strings.Contains(out, `vllm serve a/b --speculative-config '{"method":"dflash"`) {
		t.Error(out)
	}
}

func describe(t *testing.T, path string) string {
	t.Helper()
	text, err := heads.Describe(registry.Head{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// sameHead compares the tensors of two GGUF files, rounded to BF16.
func sameHead(t *testing.T, a, b string) {
	t.Helper()
	read := func(path string) map[string][]float32 {
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		all := map[string][]float32{}
		for _, x := range f.Tensors {
			w, _ := f.Tensor(x.Name)
			w, err := w.ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			if !w.Type.Decodes() { // the tokens of a draft vocabulary
				for _, b := range w.Data {
					all[x.Name] = append(all[x.Name], float32(b))
				}
				continue
			}
			values, err := w.Float32s()
			if err == nil {
				w, err = tensor.FromFloat32s(x.Name, tensor.BF16, w.Shape, values)
			}
			if err == nil {
				values, err = w.Float32s()
			}
			if err != nil {
				t.Fatal(err)
			}
			all[x.Name] = values
		}
		return all
	}
	x, y := read(a), read(b)
	if _, ok := x["token_embd.weight"]; !ok {
		delete(y, "token_embd.weight") // the target's, which vLLM's speculators expect alongside the head
	}
	if got, want := slices.Sorted(maps.Keys(y)), slices.Sorted(maps.Keys(x)); !slices.Equal(got, want) {
		t.Errorf("tensors %q, want %q", got, want)
	}
	for name := range x {
		if !slices.Equal(x[name], y[name]) {
			t.Errorf("tensor %s differs", name)
		}
	}
}
