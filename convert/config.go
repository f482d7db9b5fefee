package convert

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/grovellm/grove/nn"
)

// config is a model's configuration between the formats.
type config struct {
	layout
	vocab, hidden, ffn, context int

	eps      float64
	ropeBase float64
	ropeDims int
	linear   float64     // linear RoPE scaling; 1 for none
	llama3   *llama3Rope // nil for none
	parallel bool        // GPT-NeoX
	tied     bool
}

// llama3Rope is the RoPE scaling of Llama 3.1, in config.json's words.
type llama3Rope struct{ factor, low, high, original float64 }

// factors are the divisors of the frequencies, which GGUF holds as a tensor: long wavelengths are slowed by
// factor, short ones are kept, those between blended.
func (r *llama3Rope) factors(base float64, dims int) []float32 {
	f := make([]float32, dims/2)
	for i, freq := range nn.Frequencies(base, dims, nil) {
		wavelength := 2 * math.Pi / freq
		switch {
		case wavelength < r.original/r.high:
			f[i] = 1
		case wavelength > r.original/r.low:
			f[i] = float32(r.factor)
		default:
			smooth := (r.original/wavelength - r.low) / (r.high - r.low)
			f[i] = float32(1 / ((1-smooth)/r.factor + smooth))
		}
	}
	return f
}

// findLlama3 finds the scaling that gives the factors a GGUF file holds, among those with the frequency bounds that all of
// Llama's models use and an original context that is a power of two.
func findLlama3(factors []float32, base float64, dims int) (*llama3Rope, error) {
	top := float32(1)
	for _, f := range factors {
		top = max(top, f)
	}
	for original := 128.0; original <= 1<<24; original *= 2 {
		r := &llama3Rope{float64(top), 1, 4, original}
		same := true
		for i, f := range r.factors(base, dims) {
			if math.Abs(float64(f-factors[i])) > 1e-5*float64(f) {
				same = false
				break
			}
		}
		if same {
			return r, nil
		}
	}
	return nil, fmt.Errorf("tensor rope_freqs.weight is not Llama 3's scaling: config.json has no place for it")
}

func (c *config) check() error {
	for _, f := range []struct {
		what     string
		v, limit int
	}{{"vocabulary", c.vocab, 1 << 24}, {"hidden size", c.hidden, 1 << 20}, {"layer count", c.layers, 1 << 12}, {"head count", c.heads, 1 << 12},
		{"key/value head count", c.kvHeads, c.heads}, {"head dimension", c.headDim, 1 << 20}, {"feed-forward size", c.ffn, 1 << 20},
		{"context length", c.context, 1 << 26}, {"rotated dimensions", c.ropeDims, c.headDim}} {
		if f.v < 1 || f.v > f.limit {
			return fmt.Errorf("%s is %d: want 1 to %d", f.what, f.v, f.limit)
		}
	}
	if c.headDim%2 != 0 || c.ropeDims%2 != 0 {
		return fmt.Errorf("head dimension %d, of which %d are rotated: want even numbers", c.headDim, c.ropeDims)
	}
	return nil
}

// object is a JSON object that is read field by field; the first mistake is kept.
type object struct {
	path string
	m    map[string]any
	err  error
}

const maxConfig = 16 << 20

func readObject(path string) (*object, error) {
	if st, err := os.Stat(path); err == nil && st.Size() > maxConfig {
		return nil, fmt.Errorf("%s: %d bytes, want a file of settings of at most %d", path, st.Size(), maxConfig)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	o := &object{path: path}
	if err := json.Unmarshal(b, &o.m); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return o, nil
}

func (o *object) fail(format string, args ...any) {
	if o.err == nil {
		o.err = fmt.Errorf("%s: %s", o.path, fmt.Sprintf(format, args...))
	}
}

func (o *object) float(name string, def ...float64) float64 {
	v, ok := o.m[name]
	if !ok || v == nil {
		if len(def) > 0 {
			return def[0]
		}
		o.fail("field %q is missing", name)
		return 0
	}
	x, ok := v.(float64)
	if !ok {
		o.fail("field %q is %v, want a number", name, v)
	}
	return x
}

func (o *object) int(name string, def ...int) int {
	var d []float64
	for _, x := range def {
		d = append(d, float64(x))
	}
	x := o.float(name, d...)
	if x != math.Trunc(x) || math.Abs(x) > math.MaxInt32 {
		o.fail("field %q is %v, want an integer", name, x)
		return 0
	}
	return int(x)
}

func (o *object) bool(name string, def bool) bool {
	v, ok := o.m[name]
	if !ok || v == nil {
		return def
	}
	b, ok := v.(bool)
	if !ok {
		o.fail("field %q is %v, want true or false", name, v)
	}
	return b
}

func (o *object) string(name string) string {
	s, _ := o.m[name].(string)
	return s
}

func (o *object) object(name string) *object {
	m, _ := o.m[name].(map[string]any)
	if m == nil {
		return nil
	}
	return &object{path: o.path + ": " + name, m: m}
}

// readHF reads config.json.
func readHF(dir string) (*config, error) {
	o, err := readObject(filepath.Join(dir, "config.json"))
	if err != nil {
		return nil, err
	}
	c := &config{linear: 1}
	act := "silu"
	switch kind := o.string("model_type"); kind {
	case "llama", "qwen2", "qwen3":
		c.arch = kind
		c.eps = o.float("rms_norm_eps")
	case "gpt_neox":
		c.arch, act = "gptneox", "gelu"
		c.eps = o.float("layer_norm_eps")
		c.parallel = o.bool("use_parallel_residual", true)
	default:
		return nil, fmt.Errorf("%s: model_type %q is not one grove converts: want llama, qwen2, qwen3 or gpt_neox", o.path, kind)
	}
	if a := o.string("hidden_act"); a != act {
		o.fail("hidden_act is %q: models of this kind are converted with %q only", a, act)
	}
	if o.bool("use_sliding_window", false) {
		o.fail("use_sliding_window is true: windowed attention is not supported")
	}
	c.tied = o.bool("tie_word_embeddings", false)
	c.vocab, c.hidden, c.ffn = o.int("vocab_size"), o.int("hidden_size"), o.int("intermediate_size")
	c.layers, c.heads, c.context = o.int("num_hidden_layers"), o.int("num_attention_heads"), o.int("max_position_embeddings")
	c.kvHeads = o.int("num_key_value_heads", c.heads)
	c.headDim = o.int("head_dim", c.hidden/max(c.heads, 1))
	c.readRope(o)
	if o.err != nil {
		return nil, o.err
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", o.path, err)
	}
	return c, nil
}

// readRope reads the rotation from whichever place the file's vintage keeps it in.
func (c *config) readRope(o *object) {
	share := 1.0
	c.ropeBase = o.float("rope_theta", 10000)
	if c.arch == "gptneox" {
		c.ropeBase = o.float("rotary_emb_base", c.ropeBase)
		share = o.float("rotary_pct", 0.25)
	}
	scaling := o.object("rope_scaling")
	if p := o.object("rope_parameters"); p != nil {
		c.ropeBase = p.float("rope_theta", c.ropeBase)
		share = p.float("partial_rotary_factor", share)
		if scaling == nil {
			scaling = p
		}
		if p.err != nil {
			o.fail("%v", p.err)
		}
	}
	c.ropeDims = int(share * float64(c.headDim))
	if scaling == nil {
		return
	}
	kind := scaling.string("rope_type")
	if kind == "" {
		kind = scaling.string("type")
	}
	switch kind {
	case "", "default":
	case "linear":
		c.linear = scaling.float("factor")
	case "llama3":
		r := &llama3Rope{scaling.float("factor"), scaling.float("low_freq_factor"), scaling.float("high_freq_factor"),
			scaling.float("original_max_position_embeddings")}
		if !(r.factor > 0 && r.low > 0 && r.high > r.low && r.original > 0) {
			scaling.fail("want positive numbers, and low_freq_factor below high_freq_factor")
		}
		c.llama3 = r
	default:
		scaling.fail("type %q is not supported: want linear or llama3", kind)
	}
	if scaling.err != nil {
		o.fail("%v", scaling.err)
	}
}
