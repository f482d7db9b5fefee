package model_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
)

// llama.cpp's converter gives tensors of convolutions a fourth dimension of 1, and its quantizer drops those of ssm_a.
func TestKimiShapesInFiles(t *testing.T) {
	s, err := synth.Lookup("tiny-kimi-linear")
	if err != nil {
		t.Fatal(err)
	}
	f := keyFile(t, s)
	base, err := lastLogits(t, f, func(*gguf.Writer) {})
	if err != nil {
		t.Fatal(err)
	}
	w, changed := new(gguf.Writer), 0
	for name, value := range f.Meta() {
		w.Set(name, value)
	}
	for _, info := range f.Tensors {
		x, _ := f.Tensor(info.Name)
		switch {
		case strings.Contains(x.Name, "ssm_conv1d_"):
			x.Shape = slices.Concat([]int{1}, x.Shape)
			changed++
		case strings.HasSuffix(x.Name, "ssm_a"):
			x.Shape = x.Shape[2:]
			changed++
		}
		w.AddTensor(x)
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil || changed != 12 {
		t.Fatal(changed, err)
	}
	m, err := model.OpenGGUF("converted.gguf", b.Bytes(), model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !sameBits(logitsOf(t, m), base) {
		t.Error("other shapes give other logits")
	}
}

// transformers writes linear_attn_config as fields of their own. Fields that would change the result are obeyed or
// refused by name.
func TestKimiFields(t *testing.T) {
	f := latentFolder(t, "tiny-kimi-linear")
	base, err := f.logits(nil)
	if err != nil {
		t.Fatal(err)
	}
	const full, linear = "full_attention", "linear_attention"
	own := object{"linear_attn_config": gone{}, "linear_head_dim": 24, "linear_num_heads": 4, "linear_conv_kernel_dim": 4,
		"layer_types": []string{linear, linear, full, linear, full}, "first_k_dense_replace": gone{},
		"mlp_layer_types": []string{"dense", "sparse", "sparse", "sparse", "sparse"}, "mla_use_nope": gone{}}
	published := object{"head_dim": 72, "rope_theta": 10000, "rope_scaling": nil, "use_grouped_topk": true,
		"num_nextn_predict_layers": 0, "moe_layer_freq": 1}
	for _, change := range []object{own, published} {
		if got, err := f.logits(change); err != nil || !sameBits(got, base) {
			t.Errorf("%v: other logits: %v", change, err)
		}
	}
	lists := func(name string, v any) object {
		o := object{"full_attn_layers": []int{3, 5}, "kda_layers": []int{1, 2, 4}, "num_heads": 4, "head_dim": 24,
			"short_conv_kernel_size": 4}
		o[name] = v
		return o
	}
	for _, change := range []object{
		{"mla_use_nope": false}, {"moe_renormalize": false}, {"moe_router_activation_func": "softmax"},
		{"num_expert_group": 2}, {"num_experts_per_token": 2}, {"num_shared_experts": 1}, {"routed_scaling_factor": 2},
		{"model_max_length": 0}, {"first_k_dense_replace": 2}, {"moe_layer_freq": 2},
		{"linear_attn_config": lists("full_attn_layers", []int{3})}, {"linear_attn_config": lists("num_heads", 2)},
		{"linear_attn_config": lists("head_dim", 12)}, {"linear_attn_config": lists("short_conv_kernel_size", 3)},
	} {
		got, err := f.logits(change)
		if err == nil && sameBits(got, base) {
			t.Errorf("%v changes nothing", change)
		}
	}
}
