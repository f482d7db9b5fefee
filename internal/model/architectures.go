// The architectures: each is described by one value, in its own file (arch_*.go), which gives the
// architecture's names in files, the keys and fields that are obeyed, and the tensors that a layer
// consists of. docs/add-a-model.md walks through one.

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

// architecture describes an architecture.
type architecture struct {
	name      string // in GGUF files; several may share one
	modelType string // in config.json
	class     string // in transformers

	// images are other names, in GGUF files and in config.json, of models with images whose text model
	// is this one. A text's positions are the same in all three dimensions of these models' rotation.
	images string

	keys     ggufkeys.Rules // keys of GGUF files, in addition to modelKeys
	fields   string         // fields of config.json that are obeyed here, but not everywhere (folderRules)
	defaults hfConfig       // transformers' values for fields that config.json lacks; hidden_act must be this one

	prefix string // of a layer's tensors in folders; "": layersPrefix
	top    []part // the tensors outside layers; nil: llamaTop
	layer  []part // the tensors of a layer, in the order of a GGUF file

	// biases maps the field of config.json that gives a bias to the parts, by GGUF's names, that
	// may have it in a folder. Those under "" always have one.
	biases map[string]string

	neighbours bool // GGUF files rotate dimensions (2i, 2i+1) together; folders, always (i, i+dims/2)
	layerNorm  bool // LayerNorm with a bias; otherwise RMSNorm
	shifted    bool // folders store the weights of norms minus 1
	square     bool // files leave out the head dimension, which is Hidden/Heads

	// rotated is the share of a head's dimensions that folders rotate by default. 0
	// means always all.
	rotated float64

	// window is the rule for sliding windows if a file does not list the layers: every window-th
	// layer has none. 0: files have no windows. 1: all layers have one.
	window        int
	leading       bool // the first layer of each group has none, instead of the last
	chunks        bool // windows are chunks, and readFields reads them. Layers without one have queries that grow (Llama 4)
	attentionOnly bool // layer_types in folders names kinds of layers; only attention is supported

	// experts is the field of config.json with the number of experts per layer, or "" if there are none.
	experts    string
	early      bool // routers read a layer's input, before attention and without a norm
	averaged   bool // the sums of the chosen experts and of those that all rows use are halved
	softmaxAll bool // experts' weights are a softmax over all of them, otherwise over those of a row

	act nn.Activation // of MLPs with a gate, if hidden_act does not determine it

	dynamic      bool // folders may have dynamic scaling, which changes nothing within the context
	interleaved  bool // with neighbours: folders too rotate dimensions (2i, 2i+1) together
	eitherNorm   bool // GGUF files may have LayerNorm's key for the epsilon of RMSNorm
	biasless     bool // with layerNorm: norms have no bias
	rmsEps       bool // with layerNorm: the epsilon has the key and the field of RMSNorm's
	weightless   bool // with layerNorm: norms have no weights either, and files no tensors for them
	varied       bool // keys of GGUF files may be lists with one number per layer
	normedValues bool // values are normalised, without weights
	normLast     bool // queries and keys are normalised after rotation
	factored     bool // GGUF files have frequency factors, although dimensions (i, i+dims/2) rotate together
	ownRope      bool // readFields and writeFields translate the rotation

	// halved: GGUF files give twice the rotated dimensions of layers without a window, and frequency factors for all.
	halved bool

	rounded   bool // inputs of a layer's products are rounded to eight bits, each row with one scale
	narrow    bool // values may be narrower than keys
	ungrouped bool // folders have queries, keys and values in one tensor, one after another

	latent bool // latent attention: GGUF files have one key head, whose first dimensions are the values

	listed bool // config.json gives windows by "sliding_window" only, without use_sliding_window

	// hybrid: layers may be recurrent, namely those that a folder's layer_types lists with kind.
	// GGUF files may list key/value heads by layer; recurrent layers have none. recurrent builds
	// such a layer and its last product.
	hybrid            bool
	kind              string
	heads             bool   // GGUF files have key/value heads by layer
	attention         string // the kind of the other layers, if it is not full_attention
	nested            string // the object of config.json that has the text model's fields; "": the top level
	softplus          bool   // the gates of attention are softplus of their product, not σ
	gated             bool   // attention's output is multiplied by σ of gates, which attn_q computes with the queries
	parallelRecurrent bool   // every layer has, in parallel to its attention, a recurrent part, which recurrent builds
	aheadTwo          bool   // each layer after the model's is two, attention and experts, and only folders have it
	recurrent         func(b *builder, name func(part string) string) (nn.Recurrent, nn.Linear)

	// ahead gives a folder's names of layer i after the model's (Config.Ahead), where these are of the model's kind, and
	// draft; nil: they are not. behind changes their shape, where it is not that of the model's last; nil: it is.
	ahead     func(c *Config, i int) AheadNames
	behind    func(b *Config)
	uncounted bool // config.json does not say how many layers follow the model's

	// of selects this architecture's folders if several share a modelType; nil selects all remaining ones.
	of func(h *hfConfig) bool

	// The following may be nil. They handle, after the generic code, what it does not, and each
	// pair of functions is inverse.
	implied     func(c *Config) // runs before all keys except sizes: sets what GGUF files may omit
	local       func(c *Config) // sets the rotation of layers with a window, if it differs
	readKeys    func(k *keys, c *Config)
	writeKeys   func(c *Config, set func(key string, v any))
	readFields  func(h *hfConfig, c *Config) error
	writeFields func(c *Config, m map[string]any) error
	check       func(c *Config) error // what other engines assume about GGUF files
}

// architectures are those that grove runs. If several share a name in GGUF files, the name
// stands for the first of them.
var architectures []*architecture

func init() { // not an initialiser, since some look themselves up
	architectures = []*architecture{
		&llama, &mistral, &mixtral, &mistral3, &mistral4,
		&nanbeige, &qwen2, &mimo, &qwen2moe, &qwen3, &qwen3moe, &qwen3vlMoE, &mellum, &smollm3, &granite,
		&deci, &graniteHybrid, &graniteHybridMoE, &granite4, &jamba, &jambaMoE, &nemotronH, &nemotronHMoE, &falconH1,
		&granitemoe, &olmo, &olmo2, &olmo3, &olmoe, &gptOSS, &phi3, &phimoe,
		&gemma, &gemma2, &gemma3, &gemma3n, &gemma4, &gemma4unified, &gemma4moe, &stablelm,
		&gpt2, &gptneox, &glm4, &chatglm, &glm4moe, &seedOSS, &exaone, &exaone4, &internlm2, &internlm3, &hunyuan,
		&ernie45, &ernie45moe, &bailing, &bailing2, &afmoe,
		&minimaxM2, &hunyuanMoE, &laguna, &smallthinker, &dots1, &exaoneMoE, &hyV3, &maincoder, &pangu,
		&llama4, &step35, &commandR, &cohere2, &cohere2moe, &arcee, &jais2, &mimo2, &starcoder2, &phi2, &nemotron,
		&deepseek, &deepseek2, &deepseek3, &glm4lite, &kimiLinear, &bitnet, &bitnetSiLU,
		&youtu, &minicpm, &minicpm3, &apertus, &lfm2, &lfm2moe, &qwen35, &qwen35text, &qwen35moe, &qwen35moeText, &qwen3next,
	}
	for _, a := range architectures {
		a.prefix = cmp.Or(a.prefix, layersPrefix)
		if a.top == nil {
			a.top = llamaTop
		}
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

// modelTypes returns the architectures' names in config.json.
func modelTypes() (names []string) {
	for _, a := range architectures {
		names = append(names, a.modelType)
	}
	return names
}

// rmsKeys are the keys of architectures with RMSNorm. Early Qwen 1.5 files set
// use_parallel_residual, although their layers are not parallel.
var rmsKeys = ggufkeys.Rules{
	Obeyed:  strings.Fields("attention.layer_norm_rms_epsilon"),
	Ignored: strings.Fields("attention.layer_norm_epsilon use_parallel_residual"),
}

// poolingKey says how the states of a text become its embedding: 0 leaves it open, 1 is their mean.
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

// modelKeys are the keys of every architecture, without its name and a dot before them. An ignored
// key repeats what the tensors say, or matters only with a value that is refused.
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

// folderRules are fields of config.json that grove obeys in no architecture, or only in those that
// list them. It obeys the fields of hfConfig. All other fields do not change logits, or
// transformers does not read them for these architectures.
var folderRules = ggufkeys.Rules{Neutral: neutral(map[string][]any{
	`add_cross_attention alibi conv_bias is_encoder_decoder mamba_proj_bias moe_apply_router_weight_on_input
		moe_enable_secondary_experts projectors_bias rope_interleaved
		use_bidirectional_attention enable_double_loop_split enable_hyper_connection enable_mhc enable_depth_attention
		loop_share_kv ngram_insert_all_layers multi_gate norm_head norm_softmax`: {false},
	`attention_multiplier compression_config mamba_dt_limit pruned_heads sparse_config emb_neighbor_num
		insert_ngram_layer_idx loop_loss_weights loop_middle_layers use_rope_layers`: {},
	"attn_logit_softcapping clip_qkv final_logit_softcapping moe_router_logit_softcapping num_local_experts": {0},
	"embedding_multiplier moe_layer_freq logit_scale logits_scaling residual_multiplier":                     {1},
	"moe_router_activation": {sigmoid},
	"sink":                  {false},
	"is_causal mla_use_nope moe_enable_early_router norm_expert_weight rope_interleave use_head_wise_attn_gate use_moe_router_bias zero_centered": {true},
	"mamba_hidden_act":      {"silu"},
	"mlp_hidden_act":        {"relu2"},
	"num_experts num_loops": {0, 1},
	"swiglu_alpha":          {1.702},
	"swiglu_limit":          {7},
})}

// neutral maps each name to its values; together has names with the same values in one key.
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
		beta_fast beta_slow truncate mscale mscale_all_dim attention_factor attn_factor long_factor short_factor
		long_mscale short_mscale`),
	Ignored: strings.Fields("finetuned max_position_embeddings"),
}

// obeys reports whether field is one that config.json has for this architecture and not for all others.
func (a *architecture) obeys(field string) bool {
	return field == a.experts || slices.Contains(strings.Fields(a.fields), field)
}

// attentionKind is the kind of attention layers in a folder's layer_types.
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

// withSections returns the architecture for such a model's config.json, which also says how dimensions are divided.
func (a *architecture) withSections() *architecture {
	of := *a
	of.fields += " mrope_section"
	return &of
}

// arch returns the model's architecture: of those with its name, the first with experts if the
// model has some. It returns nil if grove runs none of this name.
func (c *Config) arch() *architecture {
	a := findArch(func(a *architecture) bool { return a.name == c.Arch && (a.experts != "") == (c.Experts > 0) })
	if a == nil {
		return archNamed(c.Arch)
	}
	return a
}

// folderArch returns the architecture of a folder for the model: of those with its name that agree
// on having experts, the one with windows if the model has some.
func (c *Config) folderArch() *architecture {
	is := c.arch()
	for _, a := range architectures {
		if a.name == c.Arch && (a.experts != "") == (is.experts != "") && a.listed == (c.Window > 0) {
			return a
		}
	}
	return is
}

// byModelType returns the architecture that config.json calls modelType, or nil. If there are two,
// it is the one without experts.
func byModelType(modelType string) *architecture {
	return findArch(func(a *architecture) bool { return a.modelType == modelType || a.ofImages(modelType) })
}

// arch returns the architecture of a config.json, or nil.
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

// biasField returns the field of config.json that gives a part its bias, or "" if the part always
// has one. ok is false if transformers has no bias there.
func (a *architecture) biasField(part string) (field string, ok bool) {
	for field, parts := range a.biases {
		if slices.Contains(strings.Fields(parts), part) {
			return field, true
		}
	}
	return "", false
}

// BiasField is biasField for the tensor name.bias in an architecture's GGUF files.
func BiasField(arch, name string) (field string, ok bool) {
	a := archNamed(arch)
	if a == nil {
		return "", false
	}
	_, part := layerPart(name)
	return a.biasField(part)
}

// folderBiases maps the folder's names of the biases that it may have to their fields.
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
