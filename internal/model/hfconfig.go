// config.json of a Hugging Face folder: the configuration of a model, from any version of transformers.

package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/infile"
)

// hfConfig is the part of a Hugging Face config.json that defines a model. Pointers distinguish a
// missing field from a zero.
type hfConfig struct {
	ModelType string `json:"model_type"`

	HiddenSize       int      `json:"hidden_size"`
	Layers           int      `json:"num_hidden_layers"`
	Heads            int      `json:"num_attention_heads"`
	KVHeads          int      `json:"num_key_value_heads"`
	HeadDim          int      `json:"head_dim"`
	IntermediateSize evenly   `json:"intermediate_size"`
	VocabSize        int      `json:"vocab_size"`
	MaxPositions     int      `json:"max_position_embeddings"`
	RMSNormEps       float64  `json:"rms_norm_eps"`
	LayerNormEps     float64  `json:"layer_norm_eps"`
	HiddenAct        string   `json:"hidden_act"`
	Tied             bool     `json:"tie_word_embeddings"`
	UseWindow        *bool    `json:"use_sliding_window"`
	Window           maybe    `json:"sliding_window"`
	LayerTypes       []string `json:"layer_types"`
	ParallelResidual *bool    `json:"use_parallel_residual"`
	AttentionBias    bool     `json:"attention_bias"`
	MLPBias          bool     `json:"mlp_bias"`
	OutBias          bool     `json:"attention_out_bias"`
	UseBias          bool     `json:"use_bias"`

	// Fields of some architectures, which read them themselves.
	AttnMultiplier     float64 `json:"attention_multiplier"`
	EmbedMultiplier    float64 `json:"embedding_multiplier"`
	ResidualMultiplier float64 `json:"residual_multiplier"`
	LogitsScaling      float64 `json:"logits_scaling"`
	AttnCap            maybe   `json:"attn_logit_softcapping"`
	LogitCap           maybe   `json:"final_logit_softcapping"`
	QKVBias            bool    `json:"use_qkv_bias"`
	QKVBiasToo         *bool   `json:"qkv_bias"` // of Qwen 2 with experts
	QKNorm             bool    `json:"qk_layernorm"`
	SharedFFN          int     `json:"shared_intermediate_size"`
	PositionType       string  `json:"position_embedding_type"`
	QueryScalar        float64 `json:"query_pre_attn_scalar"`
	Activation         string  `json:"hidden_activation"`
	LocalTheta         float64 `json:"rope_local_base_freq"`
	NoRope             []int   `json:"no_rope_layers"`
	NoRopeInterval     int     `json:"no_rope_layer_interval"`
	WindowPattern      pattern `json:"sliding_window_pattern"`
	LogitScale         float64 `json:"logit_scale"`
	OriginalPositions  int     `json:"original_max_position_embeddings"`

	// Of MiniCPM.
	ScaleEmbed float64 `json:"scale_emb"`
	ScaleDepth maybe   `json:"scale_depth"`
	BaseHidden maybe   `json:"dim_model_base"`

	// Of Nanbeige.
	Loops    int  `json:"num_loops"`
	Unnormed bool `json:"skip_loop_final_norm"`

	// Of gated DeltaNet.
	OutputGate        bool `json:"attn_output_gate"`
	LinearKernel      int  `json:"linear_conv_kernel_dim"`
	LinearKeyHeads    int  `json:"linear_num_key_heads"`
	LinearValueHeads  int  `json:"linear_num_value_heads"`
	LinearKeyDim      int  `json:"linear_key_head_dim"`
	LinearValueDim    int  `json:"linear_value_head_dim"`
	AttentionInterval int  `json:"full_attention_interval"`

	// Of Mamba-2.
	MambaHeads    int  `json:"mamba_n_heads"`
	MambaGroups   int  `json:"mamba_n_groups"`
	MambaStateDim int  `json:"mamba_d_state"`
	MambaHeadDim  any  `json:"mamba_d_head"`
	MambaKernel   int  `json:"mamba_d_conv"`
	MambaExpand   int  `json:"mamba_expand"`
	MambaConvBias bool `json:"mamba_conv_bias"`

	TimeSteps []any `json:"time_step_limit"`

	// Of Jamba.
	MambaRank       any `json:"mamba_dt_rank"`
	AttentionPeriod int `json:"attn_layer_period"`
	AttentionOffset int `json:"attn_layer_offset"`
	ExpertPeriod    int `json:"expert_layer_period"`
	ExpertOffset    int `json:"expert_layer_offset"`

	// Of Falcon-H1.
	MambaWidth     maybe `json:"mamba_d_ssm"`
	MambaNorm      bool  `json:"mamba_rms_norm"`
	NormBeforeGate bool  `json:"mamba_norm_before_gate"`
	FolderScales

	// Of Nemotron-H.
	Pattern      string   `json:"hybrid_override_pattern"`
	BlockTypes   []string `json:"layers_block_type"`
	NormEpsilon  float64  `json:"layer_norm_epsilon"`
	StateSize    int      `json:"ssm_state_size"`
	StateHeads   int      `json:"mamba_num_heads"`
	StateHeadDim int      `json:"mamba_head_dim"`
	StateGroups  int      `json:"n_groups"`
	ConvKernel   int      `json:"conv_kernel"`
	UseConvBias  bool     `json:"use_conv_bias"`
	SharedExpert int      `json:"moe_shared_expert_intermediate_size"`
	Latent       int      `json:"moe_latent_size"`

	Blocks []map[string]map[string]any `json:"block_configs"` // of Nemotron Super and Ultra

	MaxLength int     `json:"model_max_length"` // Command R's and Kimi Linear's
	Epsilon   float64 `json:"norm_epsilon"`     // StarCoder2's
	Clip      maybe   `json:"clip_qkv"`         // OLMo's

	// Of EXAONE 3.
	NumLayers int    `json:"num_layers"`
	Function  string `json:"activation_function"`

	// Of LFM2.
	NormEps       float64 `json:"norm_eps"`
	ConvLength    int     `json:"conv_L_cache"`
	FullAttention []int   `json:"full_attn_idxs"`
	BlockFFN      int     `json:"block_ff_dim"`
	AdjustFFN     bool    `json:"block_auto_adjust_ff_dim"`
	FFNMultiplier float64 `json:"block_ffn_dim_multiplier"`
	FFNMultiple   int     `json:"block_multiple_of"`
	TiedToo       *bool   `json:"tie_embedding"`

	Quantization *quantization `json:"quantization_config"`

	// Of Gemma 4.
	GlobalHeadDim  int                `json:"global_head_dim"`
	GlobalKVHeads  int                `json:"num_global_key_value_heads"`
	KeyEqualsValue bool               `json:"attention_k_eq_v"`
	SharedKVLayers int                `json:"num_kv_shared_layers"`
	DoubleWide     bool               `json:"use_double_wide_mlp"`
	PerLayer       int                `json:"hidden_size_per_layer_input"`
	PerLayerVocab  int                `json:"vocab_size_per_layer_input"`
	PerLayerFields map[string]hfLayer `json:"per_layer_config"`
	Bidirectional  any                `json:"use_bidirectional_attention"`
	MoE            bool               `json:"enable_moe_block"`
	TopExperts     int                `json:"top_k_experts"`

	// Of Gemma 3n.
	Streams      int       `json:"altup_num_inputs"`
	ActiveStream int       `json:"altup_active_idx"`
	CorrectScale bool      `json:"altup_correct_scale"`
	Laurel       int       `json:"laurel_rank"`
	Sparsity     []float64 `json:"activation_sparsity_pattern"`

	// Of experts.
	Experts      int    `json:"num_experts"`
	LocalExperts int    `json:"num_local_experts"` // the other name
	Used         int    `json:"num_experts_per_tok"`
	ExpertFFN    evenly `json:"moe_intermediate_size"`
	NormTopK     bool   `json:"norm_topk_prob"`
	SparseStep   int    `json:"decoder_sparse_step"`
	DenseLayers  []int  `json:"mlp_only_layers"`

	SharedExpertFFN int  `json:"shared_expert_intermediate_size"`
	ExpertBias      bool `json:"use_expert_bias"`
	LeadingDense    int  `json:"num_dense_layers"`

	RoutedExperts int     `json:"n_routed_experts"`
	SharedExperts int     `json:"n_shared_experts"`
	FirstDense    int     `json:"first_k_dense_replace"`
	RoutedScale   float64 `json:"routed_scaling_factor"`
	Groups        int     `json:"n_group"`
	TopGroups     int     `json:"topk_group"`
	HeadNorms     bool    `json:"use_qk_norm"`

	// Of Trinity.
	RouteScale  float64 `json:"route_scale"`
	RouterScale float64 `json:"router_scaling_factor"` // of Hy3
	RouteNorm   bool    `json:"route_norm"`
	EmbedRoot   bool    `json:"mup_enabled"`
	GlobalEvery int     `json:"global_attn_every_n_layers"`

	// Of Laguna.
	Gating        any     `json:"gating"`
	HeadsPerLayer []int   `json:"num_attention_heads_per_layer"`
	MoEScale      float64 `json:"moe_routed_scaling_factor"`

	// Of Llama 4.
	ChunkSize maybe   `json:"attention_chunk_size"`
	DenseFFN  int     `json:"intermediate_size_mlp"`
	Every     int     `json:"interleave_moe_layer_step"`
	MoELayers []int   `json:"moe_layers"`
	Tuning    any     `json:"attn_temperature_tuning"`
	TuneScale float64 `json:"attn_scale"`
	TuneFloor int     `json:"floor_scale"`

	// Of Step 3.5.
	KVGroups       int        `json:"num_attention_groups"`
	SlidingHeads   int        `json:"num_sliding_attention_heads"`
	Other          otherHeads `json:"attention_other_setting"`
	MoETop         int        `json:"moe_top_k"`
	ShareDim       int        `json:"share_expert_dim"`
	RouterFactor   float64    `json:"moe_router_scaling_factor"`
	MoELayersEnum  any        `json:"moe_layers_enum"`
	PartialFactors numbers    `json:"partial_rotary_factors"`
	ScaledKinds    []string   `json:"yarn_only_types"`
	Limits         numbers    `json:"swiglu_limits"`
	SharedLimits   numbers    `json:"swiglu_limits_shared"`

	// Of SmallThinker.
	PrimaryExperts int   `json:"moe_num_primary_experts"`
	PrimaryUsed    int   `json:"moe_num_active_primary_experts"`
	PrimaryFFN     int   `json:"moe_ffn_hidden_size"`
	PrimarySoftmax bool  `json:"moe_primary_router_apply_softmax"`
	WindowSize     maybe `json:"sliding_window_size"`
	WindowLayout   []int `json:"sliding_window_layout"`
	RopeLayout     []int `json:"rope_layout"`

	// Of Ernie 4.5 and of Ling 2.
	MoEExperts       int    `json:"moe_num_experts"`
	MoEUsed          int    `json:"moe_k"`
	MoETopK          evenly `json:"moe_topk"` // of Hunyuan
	MoEShared        int    `json:"moe_num_shared_experts"`
	SparseFrom       int    `json:"moe_layer_start_index"`
	SparseTo         int    `json:"moe_layer_end_index"`
	SparseEvery      int    `json:"moe_layer_interval"`
	NumSharedExperts int    `json:"num_shared_experts"`
	ScoreFunction    string `json:"score_function"`

	// Of Phi-3.5-MoE.
	RouterJitter float64 `json:"router_jitter_noise"`
	HeadBias     bool    `json:"lm_head_bias"`

	// Of GPT-2.
	OldWidth       int    `json:"n_embd"`
	OldLayers      int    `json:"n_layer"`
	OldHeads       int    `json:"n_head"`
	OldPositions   int    `json:"n_positions"`
	OldInner       evenly `json:"n_inner"`
	ScaleAttention bool   `json:"scale_attn_weights"`
	ScaleByLayer   bool   `json:"scale_attn_by_inverse_layer_idx"`

	// Of Cohere 2 with experts.
	SelectionFn   string `json:"expert_selection_fn"`
	Combination   string `json:"shared_expert_combination_strategy"`
	DenseWidth    int    `json:"prefix_dense_intermediate_size"`
	PrefixPattern int    `json:"prefix_dense_sliding_window_pattern"`

	// Of latent attention.
	LatentRank  int      `json:"kv_lora_rank"`
	QueryRank   maybe    `json:"q_lora_rank"`
	PlainDim    int      `json:"qk_nope_head_dim"`
	RotatedDim  int      `json:"qk_rope_head_dim"`
	ValueDim    int      `json:"v_head_dim"`
	ScoringFunc string   `json:"scoring_func"`
	TopKMethod  string   `json:"topk_method"`
	MLPTypes    []string `json:"mlp_layer_types"`

	// Of MiMo-V2-Flash. Fields that begin with swa are those of layers with a window.
	ValueScale    maybe    `json:"attention_value_scale"`
	HybridPattern []int    `json:"hybrid_layer_pattern"` // 1: with a window
	LocalKVHeads  int      `json:"swa_num_key_value_heads"`
	LocalHeads    int      `json:"swa_num_attention_heads"`
	LocalHeadDim  int      `json:"swa_head_dim"`
	LocalValueDim int      `json:"swa_v_head_dim"`
	WindowTheta   *float64 `json:"swa_rope_theta"`
	WindowSinks   bool     `json:"add_swa_attention_sink_bias"`
	WholeSinks    bool     `json:"add_full_attention_sink_bias"`
	Sparse        any      `json:"moe_layer_freq"` // a list: 1 for layers with experts
	OtherEps      float64  `json:"layernorm_epsilon"`

	// Of Kimi Linear.
	UsedPerToken  int              `json:"num_experts_per_token"`
	Renormalize   *bool            `json:"moe_renormalize"`
	ExpertGroups  int              `json:"num_expert_group"`
	RouterAct     string           `json:"moe_router_activation_func"`
	LinearHeads   int              `json:"linear_num_heads"`
	LinearHeadDim int              `json:"linear_head_dim"`
	LinearAttn    *linearAttention `json:"linear_attn_config"`

	// Layers after the model's (Config.Ahead), under MiMo's name and Qwen's.
	NextLayers    int `json:"num_nextn_predict_layers"`
	FurtherLayers int `json:"mtp_num_hidden_layers"`

	hfRopes

	OuterTied *bool `json:"tie_word_embeddings of the whole"` // nil: the folder does not say

	nested bool // whether it was the text_config of a model with a vision or audio tower
}

// maybe is a number that null sets to 0, whatever its default.
type maybe float64

func (m *maybe) UnmarshalJSON(data []byte) error {
	*m = 0
	return json.Unmarshal(data, (*float64)(m))
}

// evenly is a number, or a list that has it for each layer.
type evenly int

func (e *evenly) UnmarshalJSON(data []byte) error {
	var list []int
	if json.Unmarshal(data, &list) != nil || len(list) == 0 {
		return json.Unmarshal(data, (*int)(e))
	}
	*e = evenly(list[0])
	if slices.ContainsFunc(list, func(n int) bool { return n != list[0] }) {
		return &json.UnmarshalTypeError{Value: "list of different numbers", Type: reflect.TypeFor[int]()}
	}
	return nil
}

// pattern is n if every n-th layer has no window: given as a number, or in a form such as LLLG, which is 4.
type pattern int

func (p *pattern) UnmarshalJSON(data []byte) error {
	var text string
	if string(data) == "null" || json.Unmarshal(data, &text) != nil {
		return json.Unmarshal(data, (*int)(p))
	}
	*p = pattern(len(text))
	if text != strings.Repeat("L", max(0, len(text)-1))+"G" {
		return fmt.Errorf("field sliding_window_pattern is %q: want a number, or a text such as LLLG", text)
	}
	return nil
}

// setPattern sets the layers' windows by sliding_window_pattern if nothing lists the layers.
func (h *hfConfig) setPattern(c *Config) {
	if c.Window > 0 && h.LayerTypes == nil && h.WindowPattern > 0 {
		c.Windowed = (&architecture{window: max(int(h.WindowPattern), 2)}).windows(c.Layers)
	}
}

// ReadFolder reads the configuration of a Hugging Face folder.
func ReadFolder(dir string) (Config, error) {
	c, _, err := readFolder(dir)
	return c, err
}

func readFolder(dir string) (Config, *hfConfig, error) {
	data, err := ReadFolderFile(dir)
	if err != nil {
		return Config{}, nil, err
	}
	var kind headFields
	c, h, err := parseFolder(data, &kind)
	switch {
	case kind.head():
		err = fmt.Errorf("%s: %w", dir, ErrHead)
	case err == nil && c.Arch != "gpt-oss" && !c.arch().rounded: // their own checks allow mxfp4 and ternary weights
		err = h.Quantization.check()
	}
	if err != nil && !errors.Is(err, ErrHead) {
		err = fmt.Errorf("%s: %w", filepath.Join(dir, "config.json"), err)
	}
	return c, h, err
}

// headFields are the fields of config.json that distinguish a drafter's head from a model.
type headFields struct {
	Architectures []string `json:"architectures"`
	DraftVocab    *int     `json:"draft_vocab_size"`
	Speculators   string   `json:"speculators_model_type"`
	Heads         *int     `json:"medusa_num_heads"`
}

func (h *headFields) head() bool {
	class := ""
	if len(h.Architectures) > 0 {
		class = h.Architectures[0]
	}
	return strings.HasSuffix(class, "DraftModel") || strings.HasSuffix(class, "AssistantForCausalLM") ||
		h.DraftVocab != nil || h.Heads != nil ||
		h.Speculators != ""
}

// maxConfig limits the size of config.json: published ones have a few kilobytes.
const maxConfig = 16 << 20

// ReadFolderFile returns the contents of a folder's config.json.
func ReadFolderFile(dir string) ([]byte, error) {
	data, err := infile.ReadFile(filepath.Join(dir, "config.json"), maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: not a model folder: it has no config.json: give a GGUF file or a Hugging Face folder", dir)
	}
	return infile.PlainJSON(data), err
}

// ParseFolder reads the configuration of a head's layers from the contents of a config.json. It also
// decodes them into more, for fields that are not a model's. A method Check of more may refuse them.
func ParseFolder(data []byte, more any) (Config, error) {
	c, h, err := parseFolder(data, more)
	if err == nil && h.Quantization != nil {
		err = errors.New("quantization_config: heads with quantized weights are not supported: take the head in BF16")
	}
	if err == nil && (c.Window > 0 || c.Rope.Long != nil) {
		err = errors.New("sliding_window and rope_scaling: windows and longrope are not supported in a head")
	}
	return c, err
}

func parseFolder(data []byte, more any) (Config, *hfConfig, error) {
	if err := decode(data, more); err != nil {
		return Config{}, nil, err
	}
	if c, ok := more.(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			return Config{}, nil, err
		}
	}
	h, err := readFields(data)
	if err != nil {
		return Config{}, nil, err
	}
	c, err := h.config()
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return Config{}, nil, err
	}
	return c, h, nil
}

// readFields reads the fields of a config.json over the defaults of its architecture.
func readFields(data []byte) (*hfConfig, error) {
	data, nested, err := textFields(data)
	if err != nil {
		return nil, err
	}
	var h hfConfig
	if err := decode(data, &h); err != nil {
		return nil, err
	}
	a := h.arch()
	if a == nil {
		return nil, fmt.Errorf("model_type %q is not one grove runs: want %s", h.ModelType,
			strings.Join(slices.Compact(modelTypes()), ", "))
	}
	h = a.defaults
	if a.nested != "" {
		var outer map[string]json.RawMessage
		if err := decode(data, &outer); err != nil {
			return nil, err
		}
		if outer[a.nested] == nil {
			return nil, fmt.Errorf("field %q is missing: it has the fields of the text model", a.nested)
		}
		if err := decode(data, &h); err != nil { // fields that both have, such as tie_word_embeddings
			return nil, err
		}
		data = outer[a.nested]
	}
	if err := decode(data, &h); err != nil {
		return nil, err
	}
	if a.ofImages(h.ModelType) {
		a = a.withSections()
		for _, r := range []*hfRope{h.Params, h.Scaling} {
			if r != nil && cmp.Or(r.Type, r.OldType) == "mrope" {
				r.Type = "default"
			}
		}
	}
	h.ModelType = a.modelType
	h.nested = nested
	var all map[string]any
	if err := decode(data, &all); err != nil {
		return nil, err
	}
	return &h, checkFields(a, all)
}

// decode is json.Unmarshal with an error that describes the problem in JSON's terms.
func decode(data []byte, into any) error {
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	err := json.Unmarshal(data, into)
	switch {
	case errors.As(err, &wrong):
		field := wrong.Field
		for _, part := range []string{"hfRopes.", "FolderScales."} { // of hfConfig, not of the file
			field = strings.TrimPrefix(field, part)
		}
		return fmt.Errorf("field %q is a %s: want %s", field, wrong.Value, kindNames[wrong.Type.Kind()])
	case errors.As(err, &syntax):
		return fmt.Errorf("at byte %d: %w: the file is cut or damaged, fetch it again", syntax.Offset, err)
	}
	return err
}

// kindNames maps the kinds of hfConfig's fields to JSON's terms.
var kindNames = map[reflect.Kind]string{reflect.Int: "an integer", reflect.Int32: "an integer",
	reflect.Float64: "a number", reflect.String: "a string", reflect.Bool: "true or false",
	reflect.Slice: "a list", reflect.Array: "a list", reflect.Struct: "an object"}

func (h *hfConfig) config() (Config, error) {
	h.Layers = cmp.Or(h.Layers, h.NumLayers, max(len(h.Pattern), len(h.BlockTypes))) // EXAONE 3's, Nemotron-H's
	a := h.arch()
	if a.obeys("n_embd") {
		h.readOld()
	}
	if a.obeys("model_max_length") {
		h.MaxPositions = cmp.Or(h.MaxPositions, h.MaxLength)
	}
	for _, f := range []struct {
		name string
		v    int
	}{{"hidden_size", h.HiddenSize}, {"num_hidden_layers", h.Layers}, {"num_attention_heads", h.Heads},
		{"intermediate_size", int(h.IntermediateSize)},
		{"vocab_size", h.VocabSize}, {"max_position_embeddings", h.MaxPositions}} {
		if f.v == 0 {
			return Config{}, fmt.Errorf("field %q is missing, or 0", f.name)
		}
	}
	c := Config{
		Arch: a.name, Hidden: h.HiddenSize, Layers: h.Layers, Heads: h.Heads, KVHeads: cmp.Or(h.KVHeads, h.Heads),
		HeadDim: h.HeadDim, FFN: int(h.IntermediateSize), Vocab: h.VocabSize, Context: h.MaxPositions,
		NormEps: float32(h.RMSNormEps), Tied: h.Tied, Ahead: max(0, h.NextLayers, h.FurtherLayers),
	}
	if a.layerNorm && !a.rmsEps {
		c.NormEps = float32(h.LayerNormEps)
	}
	if a.experts != "" {
		c.Experts, c.Used = h.Experts, cmp.Or(h.Used, h.TopExperts, h.MoEUsed, int(h.MoETopK), h.PrimaryUsed, h.UsedPerToken,
			h.MoETop)
		switch {
		case a.experts == "moe_num_experts":
			c.Experts = cmp.Or(h.Experts, h.MoEExperts)
		case a.experts == "moe_num_primary_experts":
			c.Experts = h.PrimaryExperts
		case a.experts == "n_routed_experts":
			c.Experts = h.RoutedExperts
		case h.LocalExperts > 0 && a.obeys("num_local_experts"):
			c.Experts = h.LocalExperts
		}
		if c.Used < 1 || c.Used > c.Experts {
			return c, fmt.Errorf("field %q is %d and field num_experts_per_tok is %d: want experts, some of which are used",
				a.experts, c.Experts, c.Used)
		}
	}
	if a.modelType == gemma.modelType && h.HiddenAct == "gelu" { // its name in the first folders, as in transformers
		h.HiddenAct = a.defaults.HiddenAct
	}
	if h.HiddenAct != a.defaults.HiddenAct {
		return c, fmt.Errorf("hidden_act is %q: %s models run here use %q",
			h.HiddenAct, h.ModelType, a.defaults.HiddenAct)
	}
	if c.HeadDim == 0 && c.Heads > 0 {
		c.HeadDim = c.Hidden / c.Heads
	}
	err := h.windows(a, &c)
	if !a.ownRope {
		err = errors.Join(err, h.rope(a, &c))
	}
	if err != nil {
		return c, err
	}
	if a.readFields != nil {
		return c, a.readFields(h, &c)
	}
	return c, nil
}

// kinds reads which layers of a hybrid architecture are recurrent.
func (h *hfConfig) kinds(a *architecture, c *Config) error {
	if h.LayerTypes == nil && h.LinearAttn != nil {
		h.LayerTypes = h.LinearAttn.kinds(c.Layers)
	}
	if h.LayerTypes == nil && h.AttentionInterval > 0 {
		c.Recurrent = allBut(c.Layers, h.AttentionInterval)
		return nil
	}
	if len(h.LayerTypes) != c.Layers {
		return fmt.Errorf("layer_types lists %d layers: want %d", len(h.LayerTypes), c.Layers)
	}
	c.Recurrent = make([]bool, c.Layers)
	for i, t := range h.LayerTypes {
		attends := t == a.attentionKind() || t == "full_attention"
		if !attends && t != a.kind && t != "linear_attention" {
			return fmt.Errorf("layer_types has %q: want %s or %s", t, a.attentionKind(), a.kind)
		}
		c.Recurrent[i] = !attends
	}
	return nil
}

// windows reads which layers have a sliding window.
func (h *hfConfig) windows(a *architecture, c *Config) error {
	if a.attentionOnly {
		other := func(t string) bool { return t != "attention" && t != "full_attention" }
		if i := slices.IndexFunc(h.LayerTypes, other); i >= 0 {
			return fmt.Errorf("layer_types has %q: only models whose layers all have attention are supported", h.LayerTypes[i])
		}
		return nil
	}
	if a.chunks || a.hybrid && a.kind == "" { // readFields reads its windows
		return nil
	}
	if a.hybrid {
		return h.kinds(a, c)
	}
	if len(h.LayerTypes) == c.Layers+c.Ahead {
		h.LayerTypes = h.LayerTypes[:c.Layers]
	}
	for _, t := range h.LayerTypes {
		if t != "full_attention" && t != "sliding_attention" {
			return fmt.Errorf("layer_types has %q: want full_attention or sliding_attention", t)
		}
	}
	asked := a.listed
	if h.LayerTypes != nil {
		asked = slices.Contains(h.LayerTypes, "sliding_attention")
	}
	if h.UseWindow != nil {
		asked = *h.UseWindow && (asked || h.LayerTypes == nil)
	}
	w := int(h.Window)
	switch {
	case !asked || a.window == 0 && w >= c.Context || a.window != 0 && h.LayerTypes == nil && w == 0:
		return nil
	case a.window == 0 || w == 0 || maybe(w) != h.Window:
		return fmt.Errorf("use_sliding_window or layer_types ask for attention within a window of %d, "+
			"less than the context of %d: not supported", w, c.Context)
	case h.LayerTypes != nil && len(h.LayerTypes) != c.Layers:
		return fmt.Errorf("layer_types lists %d layers: want %d", len(h.LayerTypes), c.Layers)
	}
	c.Window, c.Windowed = w, a.windows(c.Layers)
	for i, t := range h.LayerTypes {
		c.Windowed[i] = t == "sliding_attention"
	}
	return nil
}
