package model

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
)

type ggufSource struct {
	c Config
	*gguf.File
}

func openGGUF(f *gguf.File, err error) (source, error) {
	if err != nil {
		return nil, err
	}
	c, err := ReadGGUF(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &ggufSource{c, f}, nil
}

func (s *ggufSource) config() (Config, error) { return s.c, nil }

// ReadGGUF reads the configuration of a GGUF file.
func ReadGGUF(f *gguf.File) (Config, error) {
	k := ggufkeys.Of(f)
	arch := k.String("general.architecture")
	if err := k.Err(); err != nil {
		return Config{}, err
	}
	kind := k.String("general.type", "model")
	switch {
	case IsHead(arch):
		return Config{}, ErrHead
	case archNamed(arch) == nil:
		return Config{}, fmt.Errorf("general.architecture %q is not one grove runs: want %s", arch,
			strings.Join(Architectures(), ", "))
	case AheadAlone(f):
		return Config{}, ErrHead
	case kind != "model":
		return Config{}, fmt.Errorf("general.type is %q: want a model; merge an adapter into its model first", kind)
	}
	c, err := ReadGGUFKeys(f, arch, archNamed(arch).name)
	if err != nil {
		return c, err
	}
	return c, c.Validate()
}

// ReadGGUFKeys reads, from the keys that begin with prefix, the configuration of a model whose
// layers are those of arch. It may lack a vocabulary if the file has no embedding: a drafter's head
// uses its target's. The caller handles the further keys in obeyed, which are given without the
// prefix. ReadGGUFKeys refuses other keys that change what the model computes.
func ReadGGUFKeys(f *gguf.File, prefix, arch string, obeyed ...string) (Config, error) {
	k := &keys{Keys: ggufkeys.Of(f), prefix: prefix + ".", file: f}
	c := Config{Arch: arch, Name: k.String("general.name", ""), Experts: k.int("expert_count", 0),
		Used: k.int("expert_used_count", 0)}
	a := c.arch()
	whole := prefix == arch
	further := ggufkeys.Rules{Obeyed: obeyed}
	if a.ofImages(prefix) {
		whole = true
		further.Ignored = strings.Fields("rope.dimension_sections n_deepstack_layers")
	}
	if err := ggufkeys.Check(f, prefix+".", modelKeys, a.keys, further); err != nil {
		return Config{}, err
	}
	if a.experts != "" && (c.Used < 1 || c.Used > c.Experts) {
		return c, fmt.Errorf("key %q is %d and key %q is %d: want experts, some of which are used",
			k.name("expert_count"), c.Experts, k.name("expert_used_count"), c.Used)
	}
	if a.layerNorm && !a.rmsEps || a.eitherNorm && !k.has("attention.layer_norm_rms_epsilon") {
		c.NormEps = float32(k.float("attention.layer_norm_epsilon"))
	} else {
		c.NormEps = float32(k.float("attention.layer_norm_rms_epsilon"))
	}
	c.Hidden = k.int("embedding_length")
	if err := c.readLayers(f, k, whole); err != nil {
		return c, err
	}
	var width []int
	if n := k.int("expert_feed_forward_length", 0); n > 0 { // files of models without MLPs need not state their width
		width = append(width, n)
	}
	c.FFN = k.first(a, "feed_forward_length", width...)
	c.Context = k.int("context_length")
	if list, ok := k.list("attention.head_count"); ok && a.obeys(headsField) {
		c.Heads = list[0] // readKeys reads the others
	} else {
		c.Heads = k.int("attention.head_count")
	}
	if err := c.readKVHeads(k, a); err != nil {
		return c, err
	}
	c.HeadDim = k.int("attention.key_length", c.Hidden/max(c.Heads, 1))
	if v := k.int("attention.value_length", c.HeadDim); v != c.HeadDim && !a.latent && !a.narrow {
		return c, fmt.Errorf("key %q is %d, but keys have %d: not supported",
			k.name("attention.value_length"), v, c.HeadDim)
	}
	// The embedding determines the vocabulary more reliably than the optional metadata.
	if t, ok := f.Tensor("token_embd.weight"); ok && len(t.Shape) == 2 {
		c.Vocab = t.Shape[0]
	}
	_, untied := f.Tensor("output.weight")
	c.Tied = !untied
	c.PoolLast = k.int(poolingKey, 0) == poolLast
	if k.Has(PaddingKey) {
		n, ok := gguf.Get[uint64](f, PaddingKey)
		if !ok || n > math.MaxInt64 {
			return c, fmt.Errorf("key %q: want a number of parameters", PaddingKey)
		}
		c.Padded = int64(n)
	}
	if err := errors.Join(c.readRope(k, a), k.Err()); err != nil {
		return c, err
	}
	if a.implied != nil {
		a.implied(&c)
	}
	for _, x := range c.features() {
		if slices.Contains(a.keys.Obeyed, x.key) {
			if v := k.float(x.key, *x.v); v != 0 || x.key != "attention.scale" { // 0: the usual one
				*x.v = v
			}
		}
	}
	if !slices.Contains(obeyed, "attention.sliding_window") { // a head reads it itself
		if err := c.readWindows(k, a); err != nil {
			return c, err
		}
	}
	if a.readKeys != nil {
		a.readKeys(k, &c)
	}
	if err := errors.Join(k.Err(), k.err, ropeFactors(f, &c)); err != nil {
		return c, err
	}
	if !whole && (c.Window > 0 && !c.Borrows || c.Rope.Long != nil) {
		return c, fmt.Errorf("key %q and tensor %s: windows and longrope are not supported in a head",
			k.name("attention.sliding_window"), longName)
	}
	return c, nil
}

// readKVHeads reads the number of key/value heads: one number or, for a hybrid architecture, one
// for each layer, which is 0 for recurrent layers.
func (c *Config) readKVHeads(k *keys, a *architecture) error {
	const key = "attention.head_count_kv"
	list, ok := k.IntList(k.name(key))
	if !ok || !a.hybrid {
		c.KVHeads = k.first(a, key, c.Heads)
		return nil
	}
	if len(list) != c.Layers+c.Ahead {
		return fmt.Errorf("key %q lists %d layers: want %d", k.name(key), len(list), c.Layers+c.Ahead)
	}
	c.KVHeads = 0
	c.Recurrent = make([]bool, c.Layers)
	for i, n := range list[:c.Layers] {
		c.Recurrent[i] = n == 0
		switch {
		case n == 0 || int(n) == c.KVHeads:
		case c.KVHeads != 0:
			return fmt.Errorf("key %q is %v: want the same number of heads in all layers that have any", k.name(key), list)
		default:
			c.KVHeads = int(n)
		}
	}
	return nil
}

// keys are the keys of a file that begin with a prefix.
type keys struct {
	*ggufkeys.Keys
	prefix string
	file   *gguf.File
	err    error // the first error of refuse
}

// HasTensor reports whether the file has the named tensor.
func (k *keys) HasTensor(name string) bool { _, ok := k.file.Tensor(name); return ok }

// refuse records an error about a key.
func (k *keys) refuse(key, what string) {
	if k.err == nil {
		k.err = fmt.Errorf("key %q %s: not supported", k.name(key), what)
	}
}

// each returns a key's numbers for the layers: one number for all, or a list.
func (k *keys) each(key string, layers int, def ...int) []int {
	list, ok := k.list(key)
	if !ok {
		return slices.Repeat([]int{k.int(key, def...)}, max(layers, 0))
	}
	if len(list) != layers {
		k.refuse(key, fmt.Sprintf("lists %d layers, but there are %d", len(list), layers))
		return slices.Repeat([]int{1}, max(layers, 0))
	}
	return list
}

// first returns a key's number or, if the architecture allows a list, its first element.
func (k *keys) first(a *architecture, key string, def ...int) int {
	if list, ok := k.list(key); ok && a.varied {
		return list[0]
	}
	return k.int(key, def...)
}

// list returns a key's numbers, if it is a list.
func (k *keys) list(key string) (list []int, ok bool) {
	v, ok := k.file.Lookup(k.name(key))
	if !ok {
		return nil, false
	}
	all, ok := gguf.As[[]int64](v)
	if !ok || len(all) == 0 {
		return nil, false
	}
	for _, n := range all {
		list = append(list, int(min(max(n, 0), maxContext)))
	}
	return list, true
}

func (k *keys) name(key string) string                   { return k.prefix + key }
func (k *keys) int(key string, def ...int) int           { return k.Int(k.name(key), def...) }
func (k *keys) float(key string, def ...float64) float64 { return k.Float(k.name(key), def...) }
func (k *keys) bool(key string, def ...bool) bool        { return k.Bool(k.name(key), def...) }
func (k *keys) string(key string, def ...string) string  { return k.String(k.name(key), def...) }
func (k *keys) has(key string) bool                      { return k.Has(k.name(key)) }

// readRope reads the rotation of positions.
func (c *Config) readRope(k *keys, a *architecture) error {
	factor := k.float("rope.scaling.factor", k.float("rope.scale_linear", 0)) // the key's old name; 0: none
	c.Rope = RopeConfig{
		Base:       k.float("rope.freq_base", 10000),
		Dims:       k.int("rope.dimension_count", c.HeadDim),
		Neighbours: a.neighbours,
		Scale:      cmp.Or(factor, 1),
		Attn:       k.float("rope.scaling.attn_factor", 0),
		Original:   k.int("rope.scaling.original_context_length", 0),
	}
	kind := k.string("rope.scaling.type", "linear") // llama.cpp's default
	switch kind {
	case "none":
		c.Rope.Scale = 1
	case "linear", "longrope":
	case "yarn":
		c.Rope.Yarn = &Yarn{Fast: k.float("rope.scaling.yarn_beta_fast", 32), Slow: k.float("rope.scaling.yarn_beta_slow", 1),
			LogMul: k.float("rope.scaling.yarn_log_multiplier", 0), Between: !k.bool(yarnTruncate, true)}
		c.Rope.Original = cmp.Or(c.Rope.Original, c.Context)
		own := c.Rope.Yarn.factor(c.Rope.Scale)
		if math.Abs(c.Rope.Attn/own-1) < 1e-6 { // early files of OLMo 3 have the whole attention_factor in the wrong key
			c.Rope.Attn = 0
		}
		// It is attention_factor of config.json or, as a number below 1 must be, attn_factor.
		if x := k.float("rope.scaling.yarn_attn_factor", 0); x != 0 {
			if x >= 1 && !a.latent {
				x /= own
			}
			c.Rope.setAttn(x * cmp.Or(c.Rope.Attn, 1))
		}
	default:
		return fmt.Errorf("key %q is %q: want none, linear, yarn or longrope "+
			"(Llama 3's scaling is the tensor rope_freqs.weight)", k.name("rope.scaling.type"), kind)
	}
	return nil
}

// readWindows reads which layers have a sliding window.
func (c *Config) readWindows(k *keys, a *architecture) error {
	c.Window = k.int("attention.sliding_window", c.Window)
	switch {
	case c.Window == 0:
		return nil
	case a.window == 0 && c.Window >= c.Context:
		c.Window = 0
		return nil
	case a.window == 0:
		return fmt.Errorf("key %q is %d, less than the context of %d: attention within a window "+
			"is not supported in a %s model", k.name("attention.sliding_window"), c.Window, c.Context, a.name)
	}
	c.Windowed = a.windows(c.Layers)
	if !k.has(windowPattern) || !slices.Contains(a.keys.Obeyed, windowPattern) {
		return nil
	}
	if list, ok := k.Bools(k.name(windowPattern)); ok {
		if len(list) != c.Layers && len(list) != c.Layers+c.Ahead {
			return fmt.Errorf("key %q lists %d layers: want %d", k.name(windowPattern), len(list), c.Layers)
		}
		c.Windowed = list[:c.Layers]
		return nil
	}
	if list, ok := k.list(windowPattern); ok { // of numbers, as for MiMo-V2
		if len(list) != c.Layers && len(list) != c.Layers+c.Ahead {
			return fmt.Errorf("key %q lists %d layers: want %d", k.name(windowPattern), len(list), c.Layers)
		}
		for i := range c.Windowed {
			c.Windowed[i] = list[i] != 0
		}
		return nil
	}
	every := architecture{window: k.int(windowPattern), leading: a.leading}
	if every.window == 0 { // all of them, as in llama.cpp
		every.window = 1
	} else if every.window == 1 { // none
		every.window = 0
	}
	c.Windowed = every.windows(c.Layers)
	return nil
}

// The tensors of RopeConfig's factors, which have half as many elements as there are rotated dimensions.
const (
	factorsName = "rope_freqs.weight"
	longName    = "rope_factors_long.weight"
	shortName   = "rope_factors_short.weight"
)

// ropeFactors reads the tensors of divisors, those of Llama 3's scaling or of longrope.
func ropeFactors(f *gguf.File, c *Config) error {
	for name, to := range map[string]*[]float32{
		factorsName: &c.Rope.Factors, longName: &c.Rope.Long, shortName: &c.Rope.Short} {
		if _, ok := f.Tensor(name); !ok {
			continue
		}
		t, err := f.Load(name)
		if err != nil {
			return err
		}
		want := c.Rope.Dims / 2
		if c.arch().halved {
			want = c.LocalRope.Dims / 2
		}
		if n := t.Elements(); n != want {
			return fmt.Errorf("tensor %s has %d elements: want half of the %d rotated dimensions", name, n, 2*want)
		}
		if *to, err = t.Float32s(); err != nil {
			return err
		}
		*to = (*to)[:min(want, c.Rope.Dims/2)] // layers with a window use none
	}
	switch {
	case (c.Rope.Long == nil) != (c.Rope.Short == nil) || c.Rope.Long != nil && c.Rope.Factors != nil:
		return fmt.Errorf("tensors %s, %s and %s: want the first two, or only the last", longName, shortName, factorsName)
	case c.Rope.Long != nil && c.Rope.Original == 0:
		c.Rope.Original = c.Context
	}
	return nil
}

func (s *ggufSource) tensor(name string) (tensor.Tensor, bool, error) {
	if _, ok := s.File.Tensor(name); !ok {
		return tensor.Tensor{}, false, nil
	}
	t, err := s.Load(name)
	return t, err == nil, err
}

func (s *ggufSource) names() (list []string) {
	for _, t := range s.Tensors {
		layer, _ := layerPart(t.Name)
		ahead := layer >= s.c.Layers && layer < s.c.Layers+s.c.Ahead
		if !ahead && !s.c.Spare(t.Name) && t.Name != factorsName && t.Name != longName && t.Name != shortName {
			list = append(list, t.Name)
		}
	}
	return list
}

func (s *ggufSource) tokenizer() (*tokenizer.Tokenizer, error) {
	if _, ok := gguf.Get[string](s.File, "tokenizer.ggml.model"); !ok {
		return nil, nil
	}
	return tokenizer.FromGGUF(s.File)
}
