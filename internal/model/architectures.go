// The architectures: what grove knows of each is one value, in a file of its own (arch_*.go), which
// says how its files are called, which keys and fields are obeyed, and of which tensors a layer is
// made. docs/add-a-model.md walks through one.

package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/nn"
)

// architecture is what grove knows of an architecture.
type architecture struct {
	name      string // in GGUF files; several may share one
	modelType string // in config.json
	class     string // of transformers

	// images are further names, in GGUF files and in config.json, of models with images whose text model is this one.
	// The positions of a text are the same in all three dimensions that these rotate by.
	images string

	keys     ggufkeys.Rules // of GGUF files, beside modelKeys
	fields   string         // of config.json that are obeyed here, though not everywhere (folderRules)
	defaults hfConfig       // transformers' values of fields that config.json lacks. Its hidden_act is the only one

	prefix string // of a layer's tensors in folders
	top    []part // the tensors of no layer
	layer  []part // the tensors of a layer, in the order of a GGUF file

	// biases are the parts, by GGUF's names, that may have a bias in a folder, by the field of
	// config.json that gives it. Those of "" always have one.
	biases map[string]string

	neighbours bool // GGUF files rotate dimensions (2i, 2i+1) together; folders, always (i, i+dims/2)
	layerNorm  bool // LayerNorm with a bias; else RMSNorm
	shifted    bool // folders have the weights of norms less 1
	square     bool // files leave out the head dimension, which is Hidden/Heads

	// rotated is the share of a head's dimensions that folders rotate, unless they say another. 0:
	// always all.
	rotated float64

	// window is the rule of sliding windows where a file does not list the layers: every window-th
	// layer has none. 0: files have no windows. 1: all layers have one.
	window        int
	attentionOnly bool // layer_types of folders names kinds of layers, of which attention alone is run

	// experts is the field of config.json that says how many experts a layer has. "": it has none.
	experts    string
	softmaxAll bool // experts' weights are a softmax over all of them, else over those of a row

	act nn.Activation // of MLPs with a gate, where hidden_act does not say it

	interleaved  bool // with neighbours: folders too rotate dimensions (2i, 2i+1) together
	eitherNorm   bool // GGUF files may have the key of LayerNorm's epsilon for that of RMSNorm's
	biasless     bool // with layerNorm: norms have no bias
	varied       bool // keys of GGUF files may be lists with a number for each layer
	normedValues bool // values are normalised, without weights
	normLast     bool // queries and keys are normalised after they were rotated
	factored     bool // GGUF files have factors of frequencies, although dimensions (i, i+dims/2) rotate together
	ownRope      bool // readFields and writeFields translate the rotation

	latent bool // latent attention: GGUF files have one head of keys, whose first dimensions are the values

	listed bool // config.json gives windows by "sliding_window" alone, without use_sliding_window

	// hybrid says that layers may be recurrent: those of a kind of this name in a folder's layer_types.
	// GGUF files may have key/value heads by layer, which recurrent ones do not have. recurrent builds
	// one, and its last product.
	hybrid            bool
	kind              string
	heads             bool   // GGUF files have key/value heads by layer
	attention         string // the kind of the others, where it is not full_attention
	nested            string // the object of config.json that has the text model's fields; "": they stand alone
	gated             bool   // attention's results are multiplied by σ of gates, which attn_q gives with the queries
	parallelRecurrent bool   // every layer has a recurrent one beside its attention, which recurrent builds
	alike             bool   // layers behind the model's (Config.Ahead) are of its kind, and draft
	aheadTwo          bool   // and so are they here, but each is two, of attention and of experts, and folders alone have them
	recurrent         func(b *builder, name func(part string) string) (nn.Recurrent, nn.Linear)

	// of says which folders are of this one, where several architectures have one modelType; nil: all others.
	of func(h *hfConfig) bool

	// The following may be nil. They read what generic code does not, after it, and are inverse in
	// pairs.
	implied     func(c *Config) // before any key but sizes: what GGUF files need not say
	local       func(c *Config) // the rotation of layers with a window, where it is another
	readKeys    func(k *keys, c *Config)
	writeKeys   func(c *Config, set func(key string, v any))
	readFields  func(h *hfConfig, c *Config) error
	writeFields func(c *Config, m map[string]any) error
	check       func(c *Config) error // of what other engines assume of GGUF files
}

// architectures are those that grove runs. Of those with one name in GGUF files, the first is what
// a file's architecture is called.
var architectures []*architecture

func init() { // some of them look themselves up
	architectures = []*architecture{
		&llama, &mistral, &mixtral, &mistral3, &qwen2, &mimo, &qwen3, &qwen3moe, &smollm3, &granite,
		&graniteHybrid, &graniteHybridMoE, &granite4, &nemotronH, &nemotronHMoE, &falconH1,
		&granitemoe, &olmo2, &olmo3, &olmoe, &gptOSS, &phi3, &gemma2, &gemma3, &gemma4, &gemma4unified, &gemma4moe, &stablelm,
		&gptneox, &glm4, &glm4moe, &seedOSS, &exaone4, &hunyuan, &ernie45, &ernie45moe, &bailing2, &afmoe,
		&cohere2, &arcee, &deepseek2, &deepseek3, &glm4lite,
		&minicpm, &apertus, &lfm2, &lfm2moe, &qwen35, &qwen35text, &qwen35moe, &qwen35moeText, &qwen3next,
	}
}

// Architectures returns the names that GGUF files have for the architectures that grove runs, in a
// fixed order.
func Architectures() (names []string) {
	for _, a := range architectures {
		if !slices.Contains(names, a.name) {
			names = append(names, a.name)
		}
	}
	return names
}

// modelTypes are the names in config.json.
func modelTypes() (names []string) {
	for _, a := range architectures {
		names = append(names, a.modelType)
	}
	return names
}

// rmsKeys are keys of architectures with RMSNorm. Early files of Qwen 1.5 set
// use_parallel_residual, although their layers are not parallel.
var rmsKeys = ggufkeys.Rules{
	Obeyed:  strings.Fields("attention.layer_norm_rms_epsilon"),
	Ignored: strings.Fields("attention.layer_norm_epsilon use_parallel_residual"),
}

// poolingKey is the key of how the states of a text become its embedding: 0 leaves it open, 1 is their mean.
const (
	poolingKey = "pooling_type"
	poolLast   = 3
)

// rmsAnd is rmsKeys with further keys that are obeyed.
func rmsAnd(obeyed string) ggufkeys.Rules {
	r := rmsKeys
	r.Obeyed = append(slices.Clone(r.Obeyed), strings.Fields(obeyed)...)
	return r
}

// modelKeys are the keys of every architecture, after its name and a dot. An ignored key repeats
// what the tensors say, or matters only beside a value that is refused.
var modelKeys = ggufkeys.Rules{
	Obeyed: strings.Fields(`context_length embedding_length block_count feed_forward_length
		attention.head_count attention.head_count_kv attention.key_length attention.value_length
		attention.sliding_window rope.dimension_count rope.freq_base
		rope.scaling.type rope.scaling.factor rope.scale_linear rope.scaling.attn_factor
		rope.scaling.original_context_length rope.scaling.yarn_beta_fast rope.scaling.yarn_beta_slow
		rope.scaling.yarn_log_multiplier rope.scaling.yarn_attn_factor rope.scaling.yarn_truncate nextn_predict_layers`),
	Ignored: strings.Fields(`vocab_size tensor_data_layout attention.sliding_window_pattern
		rope.scaling.finetuned`),
	Neutral: neutral(map[string][]any{
		"attention.causal": {true},
		`attention.clamp_kqv attention.key_length_mla attention.max_alibi_bias attention.scale
			attention.shared_kv_layers attention.temperature_length attention.temperature_scale
			attention.value_length_mla attn_logit_softcapping expert_count expert_feed_forward_length expert_gating_func
			expert_group_count expert_group_used_count expert_shared_count expert_used_count final_logit_softcapping
			leading_dense_block_count moe_every_n_layers rope.dimension_sections rope.scaling.alpha
			router_logit_softcapping`: {0},
		poolingKey: {0, 1, poolLast},
		`attention.output_scale attention.value_scale embedding_scale expert_weights_scale logit_scale num_loops
			residual_scale`: {0, 1},
		"expert_weights_norm swin_norm": {false},
		"rope.scaling.yarn_ext_factor":  {0, -1},
	}),
}

// folderRules are fields of config.json that grove obeys in no architecture, or only where it lists
// them. It obeys the fields of hfConfig. Other fields change no logits, or transformers does not
// read them for these architectures.
var folderRules = ggufkeys.Rules{Neutral: neutral(map[string][]any{
	`add_cross_attention alibi conv_bias is_encoder_decoder mamba_proj_bias projectors_bias rope_interleaved
		use_bidirectional_attention`: {false},
	"attention_multiplier compression_config mamba_dt_limit pruned_heads sparse_config":  {},
	"attn_logit_softcapping clip_qkv final_logit_softcapping num_local_experts":          {0},
	"embedding_multiplier moe_layer_freq logit_scale logits_scaling residual_multiplier": {1},
	"is_causal rope_interleave": {true},
	"mamba_hidden_act":          {"silu"},
	"mlp_hidden_act":            {"relu2"},
	"num_experts":               {0, 1},
	"swiglu_alpha":              {1.702},
	"swiglu_limit":              {7},
})}

// neutral lists names with their values, where those of the same values stand together.
func neutral(together map[string][]any) map[string][]any {
	rules := map[string][]any{}
	for names, values := range together {
		for _, name := range strings.Fields(names) {
			rules[name] = values
		}
	}
	return rules
}

// ropeRules are the fields of rope_scaling and rope_parameters.
var ropeRules = ggufkeys.Rules{
	Obeyed: strings.Fields(`rope_type type rope_theta partial_rotary_factor
		factor low_freq_factor high_freq_factor original_max_position_embeddings
		beta_fast beta_slow truncate mscale mscale_all_dim attention_factor attn_factor long_factor short_factor`),
	Ignored: strings.Fields("finetuned max_position_embeddings"),
}

// obeys reports whether config.json gives the architecture a field that others do not have.
func (a *architecture) obeys(field string) bool {
	return field == a.experts || slices.Contains(strings.Fields(a.fields), field)
}

// attentionKind is the kind of layers with attention in a folder's layer_types.
func (a *architecture) attentionKind() string { return cmp.Or(a.attention, "full_attention") }

// Runs reports whether grove runs models of an architecture, by the name that GGUF files give it.
func Runs(arch string) bool { return archNamed(arch) != nil }

// archNamed returns the architecture that GGUF files call name, or nil.
func archNamed(name string) *architecture {
	return findArch(func(a *architecture) bool { return a.name == name || a.ofImages(name) })
}

func (a *architecture) ofImages(name string) bool {
	return slices.Contains(strings.Fields(a.images), name)
}

// withSections is the architecture for a config.json of such a model, which says how the dimensions are divided.
func (a *architecture) withSections() *architecture {
	of := *a
	of.fields += " mrope_section"
	return &of
}

// arch is the model's architecture: of those of a name, the first with experts if the model has
// some. It is nil where grove runs none of the name.
func (c *Config) arch() *architecture {
	a := findArch(func(a *architecture) bool { return a.name == c.Arch && (a.experts != "") == (c.Experts > 0) })
	if a == nil {
		return archNamed(c.Arch)
	}
	return a
}

// folderArch is the architecture of a folder for a model: of those of a name and with experts or
// without, the one with windows if the model has some.
func (c *Config) folderArch() *architecture {
	is := c.arch()
	for _, a := range architectures {
		if a.name == c.Arch && (a.experts != "") == (is.experts != "") && a.listed == (c.Window > 0) {
			return a
		}
	}
	return is
}

// byModelType returns the architecture that config.json calls modelType, or nil: of two, the one
// without experts.
func byModelType(modelType string) *architecture {
	return findArch(func(a *architecture) bool { return a.modelType == modelType || a.ofImages(modelType) })
}

// arch is the architecture of a config.json, or nil.
func (h *hfConfig) arch() *architecture {
	if h.MoE {
		return findArch(func(a *architecture) bool { return a.modelType == h.ModelType && a.experts != "" })
	}
	return findArch(func(a *architecture) bool {
		return a.modelType == h.ModelType && (a.of == nil || a.of(h)) || a.ofImages(h.ModelType)
	})
}

func findArch(is func(a *architecture) bool) *architecture {
	if i := slices.IndexFunc(architectures, is); i >= 0 {
		return architectures[i]
	}
	return nil
}

// biasField returns the field of config.json that gives a part its bias: "" where it always has
// one. ok is false where transformers has none.
func (a *architecture) biasField(part string) (field string, ok bool) {
	for field, parts := range a.biases {
		if slices.Contains(strings.Fields(parts), part) {
			return field, true
		}
	}
	return "", false
}

// BiasField is biasField for the tensor that GGUF files of an architecture call name.bias.
func BiasField(arch, name string) (field string, ok bool) {
	a := archNamed(arch)
	if a == nil {
		return "", false
	}
	_, part := layerPart(name)
	return a.biasField(part)
}

// folderBiases returns the biases that a folder may have, by its names, and their fields.
func (a *architecture) folderBiases(c *Config) map[string]string {
	fields := map[string]string{}
	for _, field := range slices.Sorted(maps.Keys(a.biases)) {
		for _, part := range strings.Fields(a.biases[field]) {
			if name, ok := a.folderName(part + ".bias"); ok {
				fields[name] = field
			}
			for i := range c.Layers {
				if name, ok := a.folderName(fmt.Sprintf("blk.%d.%s.bias", i, part)); ok {
					fields[name] = field
				}
			}
		}
	}
	return fields
}
