package heads_test

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/falcon"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/mtp"
	"github.com/grovellm/grove/internal/drafters/peagle"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	routersynth "github.com/grovellm/grove/internal/drafters/synthetic/shortlist"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// A key or a tensor of a head's GGUF file that grove does not implement is refused by name. Old
// forms of linear scaling are obeyed.
func TestKeysAndTensors(t *testing.T) {
	dir, rng := t.TempDir(), rand.New(rand.NewPCG(2, 2))
	at := func(name string) string { return filepath.Join(dir, name+".gguf") }
	target := model.Config{Arch: "qwen3", Vocab: 64, Hidden: 32, Layers: 4, Heads: 2, KVHeads: 1, HeadDim: 16, FFN: 64,
		Context: 64, NormEps: 1e-6,
		Rope: model.RopeConfig{Base: 1e4, Dims: 16, Scale: 1}}
	j := synthetic.Config[jet.Config](rng, "", target, tensor.F32)
	e3 := synthetic.Config[eagle.Config](rng, "eagle3", target, tensor.F32)
	e2 := synthetic.Config[eagle.Config](rng, "eagle2", target, tensor.F32)
	b := synthetic.Config[specblock.Config](rng, "specblock", target, tensor.F32)
	jw, err0 := synthetic.Tensors(&j, tensor.F32, 1)
	w3, err1 := synthetic.Tensors(&e3, tensor.F32, 1)
	w2, err2 := synthetic.Tensors(&e2, tensor.F32, 1)
	p := synthetic.Config[peagle.Config](rng, "parallelspec", target, tensor.F32)
	pw, err4 := synthetic.Tensors(&p, tensor.F32, 1)
	bw, err3 := synthetic.Tensors(&b, tensor.F32, 1)
	fc := synthetic.Config[falcon.Config](rng, "falcon", target, tensor.F32)
	fw, err5 := synthetic.Tensors(&fc, tensor.F32, 1)
	n := synthetic.Config[mtp.Config](rng, "mtp", target, tensor.F32)
	nw, err6 := synthetic.Tensors(&n, tensor.F32, 1)
	if err := errors.Join(err0, err1, err2, err3, err4, err5, err6,
		headfile.WriteGGUF(at("mtp"), "x", &n, nw, synthetic.Tokens(&n, 1), nil, tensor.F32),
		headfile.WriteGGUF(at("falcon-head"), "x", &fc, fw, nil, nil, tensor.F32),
		headfile.WriteGGUF(at("dflash"), "x", &j, jw, nil, nil, tensor.F32),
		headfile.WriteGGUF(at("eagle3"), "x", &e3, w3, synthetic.Tokens(&e3, 1), nil, tensor.F32),
		headfile.WriteGGUF(at("eagle2"), "x", &e2, w2, synthetic.Tokens(&e2, 1), nil, tensor.F32),
		headfile.WriteGGUF(at("peagle"), "x", &p, pw, synthetic.Tokens(&p, 1), nil, tensor.F32),
		headfile.WriteGGUF(at("specblock"), "x", &b, bw, synthetic.Tokens(&b, 1), nil, tensor.F32),
		routersynth.Write(at("router"), rng, target.Vocab, target.Hidden, tensor.F32)); err != nil {
		t.Fatal(err)
	}
	for _, arch := range []string{"dflash", "eagle3", "eagle2", "peagle", "specblock", "falcon-head", "mtp", "router"} {
		f, err := gguf.Open(at(arch))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		changed := func(change func(w *gguf.Writer)) registry.Head {
			w := new(gguf.Writer)
			ggufkeys.SetAll(w, f)
			for _, info := range f.Tensors {
				x, _ := f.Tensor(info.Name)
				w.AddTensor(x)
			}
			change(w)
			if err := w.WriteFile(at("changed")); err != nil {
				t.Fatal(err)
			}
			return registry.Head{Name: at("changed")}
		}
		for key, v := range map[string]any{"logit_scale": float32(0.5), "expert_count": uint32(8),
			"rope.scaling.type": "su", "hyper_connection.count": uint32(2),
			"attention.sliding_window": uint32(8), "nextn_predict_layers": uint32(1), "a_key_of_tomorrow": true} {
			if arch == "dflash" && key == "attention.sliding_window" {
				continue // such heads may have it
			}
			key = arch + "." + key
			if err := heads.Check(changed(func(w *gguf.Writer) { w.Set(key, v) }), target); err == nil ||
				!strings.Contains(err.Error(), key) {
				t.Errorf("%s = %v: %v", key, v, err)
			}
		}
		x, err := tensor.FromFloat32s("blk.0.ffn_gate_inp.weight", tensor.F32, []int{4}, make([]float32, 4))
		if err != nil {
			t.Fatal(err)
		}
		if arch != "router" { // its tensors are read when it is loaded
			if err := heads.Check(changed(func(w *gguf.Writer) { w.AddTensor(x) }), target); err == nil ||
				!strings.Contains(err.Error(), x.Name) {
				t.Errorf("%s: tensor %s: %v", arch, x.Name, err)
			}
		}
		if arch != "dflash" {
			continue
		}
		for _, key := range []string{"rope.scale_linear", "rope.scaling.factor"} {
			c, err := headfile.ReadConfig[jet.Config](changed(func(w *gguf.Writer) { w.Set("dflash."+key, float32(4)) }), nil)
			if err != nil || c.Rope.Scale != 4 {
				t.Errorf("%s: scale %g, %v", key, c.Rope.Scale, err)
			}
		}
		// As exporters of heads write it, so that heads trained on short texts can draft in long ones.
		yarn := func(w *gguf.Writer) {
			w.Set("dflash.rope.scaling.type", "yarn")
			w.Set("dflash.rope.scaling.factor", float32(32))
			w.Set("dflash.rope.scaling.original_context_length", uint32(4096))
		}
		c, err := headfile.ReadConfig[jet.Config](changed(yarn), nil)
		if err != nil || c.Rope.Yarn == nil || c.Rope.Scale != 32 || c.Rope.Original != 4096 {
			t.Errorf("yarn: %+v, %v", c.Rope, err)
		}
	}
}
