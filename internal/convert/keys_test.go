package convert

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// A folder made from a GGUF file with unusual keys and tensors has them too, or the
// conversion is refused and names them.
func TestToHFKeepsOrRefuses(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		shape  string
		keys   map[string]any
		bias   string
		refuse string // "": the folder computes the same
		field  string // that config.json must have
	}{
		{shape: "tiny-llama2", keys: map[string]any{"llama.rope.scale_linear": float32(4)}, field: `"factor": 4`},
		{shape: "tiny-llama2", bias: "blk.1.ffn_down", field: `"mlp_bias": true`},
		{shape: "tiny-llama2", bias: "blk.1.attn_output", field: `"attention_bias": true`},
		{shape: "tiny-qwen3", bias: "blk.0.attn_v", field: `"attention_bias": true`},
		{shape: "tiny-qwen2", bias: "blk.1.attn_output", refuse: "blk.1.attn_output.bias"},
		{shape: "tiny-qwen3", bias: "blk.1.ffn_up", refuse: "blk.1.ffn_up.bias"},
		{shape: "tiny-qwen2", bias: "output", refuse: "output.bias"},
		{shape: "tiny-llama2", keys: map[string]any{"llama.rope.dimension_count": uint32(16)},
			refuse: "16 of 32 dimensions"},
		{shape: "tiny-llama3", keys: map[string]any{"llama.rope.scaling.factor": float32(4)},
			refuse: "rope.scaling.factor"},
		{shape: "tiny-gpt-oss", keys: map[string]any{"gpt-oss.rope.freq_base_swa": float32(15e4)}, field: `"swiglu_limit": 7`},
		{shape: "tiny-gpt-oss", keys: map[string]any{"gpt-oss.rope.freq_base_swa": float32(1e4)}, refuse: "rope.freq_base_swa"},
		{shape: "tiny-gpt-oss", keys: map[string]any{"gpt-oss.rope.scaling.yarn_truncate": false}, field: `"truncate": false`},
		{shape: "tiny-llama2", keys: map[string]any{"llama.logit_scale": float32(4)}, refuse: "llama.logit_scale"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "m.gguf")
		to := filepath.Join(dir, "hf")
		s := shape(t, c.shape)
		if err := synth.Write(ctx, path, s, synth.Options{Seed: 3}); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		w := new(gguf.Writer)
		ggufkeys.SetAll(w, f)
		for key, v := range c.keys {
			w.Set(key, v)
		}
		for _, info := range f.Tensors {
			x, _ := f.Tensor(info.Name)
			w.AddTensor(x)
			stem := strings.TrimSuffix(x.Name, ".weight")
			if stem == c.bias {
				b, err := tensor.FromFloat32s(c.bias+".bias", tensor.F32, x.Shape[:1],
					slices.Repeat([]float32{0.5}, x.Shape[0]))
				if err != nil {
					t.Fatal(err)
				}
				w.AddTensor(b)
			}
		}
		changed := filepath.Join(dir, "changed.gguf")
		if err := w.WriteFile(changed); err != nil {
			t.Fatal(err)
		}
		f.Close()
		_, err = ToHF(ctx, changed, to, Options{})
		if c.refuse != "" {
			if err == nil || !strings.Contains(err.Error(), c.refuse) ||
				!strings.Contains(err.Error(), "changed.gguf") {
				t.Errorf("%s, %v %s: %v: want %s", c.shape, c.keys, c.bias, err, c.refuse)
			}
			continue
		}
		if err != nil {
			t.Error(err)
			continue
		}
		config, err := os.ReadFile(filepath.Join(to, "config.json"))
		if err != nil || !strings.Contains(string(config), c.field) {
			t.Errorf("%s, %v %s: config.json lacks %s: %v", c.shape, c.keys, c.bias, c.field, err)
		}
		a, b := logits(t, changed), logits(t, to)
		for i := range a {
			if math.Abs(float64(a[i]-b[i])) > 1e-3 {
				t.Errorf("%s, %v %s: logit %d is %g in the file, %g in the folder", c.shape, c.keys, c.bias, i, a[i],
					b[i])
				break
			}
		}
	}
}
