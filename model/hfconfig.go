// config.json of a Hugging Face folder: the configuration of a model, whichever vintage of transformers wrote it.

package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// hfConfig is the part of a Hugging Face config.json that makes a model. Pointers tell a
// missing field from a zero.
type hfConfig struct {
	ModelType string `json:"model_type"`

	HiddenSize       int      `json:"hidden_size"`
	Layers           int      `json:"num_hidden_layers"`
	Heads            int      `json:"num_attention_heads"`
	KVHeads          int      `json:"num_key_value_heads"`
	HeadDim          int      `json:"head_dim"`
	IntermediateSize int      `json:"intermediate_size"`
	VocabSize        int      `json:"vocab_size"`
	MaxPositions     int      `json:"max_position_embeddings"`
	RMSNormEps       float64  `json:"rms_norm_eps"`
	LayerNormEps     float64  `json:"layer_norm_eps"`
	HiddenAct        string   `json:"hidden_act"`
	Tied             *bool    `json:"tie_word_embeddings"`
	UseWindow        *bool    `json:"use_sliding_window"`
	Window           int      `json:"sliding_window"`
	LayerTypes       []string `json:"layer_types"`
	ParallelResidual *bool    `json:"use_parallel_residual"`

	RopeTheta  float64  `json:"rope_theta"`
	RopeParams *hfRope  `json:"rope_parameters"` // the newer place of theta and scaling
	RopeScale  *hfRope  `json:"rope_scaling"`
	RotaryBase float64  `json:"rotary_emb_base"`
	RotaryPct  *float64 `json:"rotary_pct"`
}

type hfRope struct {
	Type     string   `json:"rope_type"`
	OldType  string   `json:"type"`
	Theta    float64  `json:"rope_theta"`
	Factor   float64  `json:"factor"`
	Low      float64  `json:"low_freq_factor"`
	High     float64  `json:"high_freq_factor"`
	Original float64  `json:"original_max_position_embeddings"`
	Partial  *float64 `json:"partial_rotary_factor"`
}

func (r *hfRope) kind() string {
	if r.Type != "" {
		return r.Type
	}
	return r.OldType
}

// ReadFolder reads the configuration of a Hugging Face folder.
func ReadFolder(dir string) (Config, error) {
	var kind headFields
	c, err := ReadFolderWith(dir, &kind)
	if kind.head() {
		return c, fmt.Errorf("%s: %w", dir, errHead)
	}
	return c, err
}

// headFields are those of config.json that tell a drafter's head from a model.
type headFields struct {
	Architectures []string `json:"architectures"`
	DraftVocab    *int     `json:"draft_vocab_size"`
	Speculators   string   `json:"speculators_model_type"`
}

func (h *headFields) head() bool {
	return len(h.Architectures) > 0 && strings.HasSuffix(h.Architectures[0], "DraftModel") || h.DraftVocab != nil || h.Speculators != ""
}

// ReadFolderWith reads config.json into more as well, for what it says that is not of a model; more may check it, with a
// method Check.
func ReadFolderWith(dir string, more any) (Config, error) {
	data, err := ReadFolderFile(dir)
	if err != nil {
		return Config{}, err
	}
	c, err := ParseFolder(data, more)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", filepath.Join(dir, "config.json"), err)
	}
	return c, nil
}

// ReadFolderFile returns a folder's config.json.
func ReadFolderFile(dir string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: not a model folder: it has no config.json: give a GGUF file or a Hugging Face folder", dir)
	}
	return data, err
}

// ParseFolder is ReadFolderWith for the contents of a config.json.
func ParseFolder(data []byte, more any) (Config, error) {
	if err := decode(data, more); err != nil {
		return Config{}, err
	}
	if c, ok := more.(interface{ Check() error }); ok {
		if err := c.Check(); err != nil {
			return Config{}, err
		}
	}
	var h hfConfig
	if err := decode(data, &h); err != nil {
		return Config{}, err
	}
	c, err := h.config()
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return Config{}, err
	}
	return c, nil
}

// decode is json.Unmarshal with an error that says what is wrong in JSON's words.
func decode(data []byte, into any) error {
	var wrong *json.UnmarshalTypeError
	err := json.Unmarshal(data, into)
	if errors.As(err, &wrong) {
		return fmt.Errorf("field %q is a %s: want %s", wrong.Field, wrong.Value, kindNames[wrong.Type.Kind()])
	}
	return err
}

// kindNames are JSON's kinds of the fields of hfConfig.
var kindNames = map[reflect.Kind]string{reflect.Int: "an integer", reflect.Int32: "an integer", reflect.Float64: "a number", reflect.String: "a string", reflect.Bool: "true or false",
	reflect.Slice: "a list", reflect.Struct: "an object"}

func (h *hfConfig) config() (Config, error) {
	for _, f := range []struct {
		name string
		v    int
	}{{"hidden_size", h.HiddenSize}, {"num_hidden_layers", h.Layers}, {"num_attention_heads", h.Heads}, {"intermediate_size", h.IntermediateSize},
		{"vocab_size", h.VocabSize}, {"max_position_embeddings", h.MaxPositions}} {
		if f.v == 0 {
			return Config{}, fmt.Errorf("field %q is missing, or 0", f.name)
		}
	}
	c := Config{
		Hidden: h.HiddenSize, Layers: h.Layers, Heads: h.Heads, KVHeads: h.KVHeads, HeadDim: h.HeadDim,
		FFN: h.IntermediateSize, Vocab: h.VocabSize, Context: h.MaxPositions,
		NormEps: float32(h.RMSNormEps),
		Rope:    RopeConfig{Base: h.RopeTheta, Scale: 1},
	}
	act := "silu"
	switch h.ModelType {
	case "llama", "qwen2", "qwen3":
		c.Arch = h.ModelType
		c.Tied = h.Tied != nil && *h.Tied
	case "gpt_neox":
		c.Arch, act = "gptneox", "gelu"
		c.NormEps = float32(h.LayerNormEps)
		c.Parallel = h.ParallelResidual == nil || *h.ParallelResidual
		c.Tied = h.Tied != nil && *h.Tied
	default:
		return c, fmt.Errorf("model_type %q is not one grove runs: want llama, qwen2, qwen3 or gpt_neox", h.ModelType)
	}
	if h.HiddenAct != act {
		return c, fmt.Errorf("hidden_act is %q: %s models run here use %q", h.HiddenAct, h.ModelType, act)
	}
	if h.windowed() && h.Window < c.Context {
		return c, fmt.Errorf("use_sliding_window or layer_types ask for attention within a window of %d, less than the context of %d: not supported", h.Window, c.Context)
	}
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadDim == 0 && c.Heads > 0 {
		c.HeadDim = c.Hidden / c.Heads
	}
	return c, h.rope(&c)
}

// windowed reports whether some layer may have a sliding window.
func (h *hfConfig) windowed() bool {
	sliding := slices.Contains(h.LayerTypes, "sliding_attention")
	if h.UseWindow == nil {
		return sliding
	}
	return *h.UseWindow && (sliding || h.LayerTypes == nil)
}

// rope reads the rotation from whichever of the three places the file's vintage keeps it in.
func (h *hfConfig) rope(c *Config) error {
	pct := 1.0
	if c.Arch == "gptneox" {
		pct = 0.25 // transformers' default
		if h.RotaryPct != nil {
			pct = *h.RotaryPct
		}
		if h.RotaryBase != 0 {
			c.Rope.Base = h.RotaryBase
		}
	}
	scaling := h.RopeScale
	if p := h.RopeParams; p != nil {
		if p.Theta != 0 {
			c.Rope.Base = p.Theta
		}
		if p.Partial != nil {
			pct = *p.Partial
		}
		if scaling == nil {
			scaling = p
		}
	}
	if c.Rope.Base == 0 {
		c.Rope.Base = 10000 // transformers' default
	}
	if !(pct > 0 && pct <= 1) {
		return fmt.Errorf("rotary_pct is %g: want more than 0, at most 1", pct)
	}
	c.Rope.Dims = int(pct * float64(c.HeadDim))
	if scaling == nil {
		return nil
	}
	switch scaling.kind() {
	case "", "default":
	case "linear":
		c.Rope.Scale = scaling.Factor
	case "llama3":
		if !(scaling.Factor > 0 && scaling.Low > 0 && scaling.High > scaling.Low && scaling.Original > 0) || c.Rope.Dims < 2 || c.Rope.Dims > maxWidth {
			return fmt.Errorf("rope_scaling: llama3 scaling wants positive factor, low_freq_factor < high_freq_factor and original_max_position_embeddings")
		}
		c.Rope.Factors = Llama3Factors(c.Rope.Base, c.Rope.Dims, scaling.Factor, scaling.Low, scaling.High, scaling.Original)
	default:
		return fmt.Errorf("rope_scaling: type %q is not supported: want linear or llama3", scaling.kind())
	}
	return nil
}
