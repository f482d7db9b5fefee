// Hugging Face folders: those of EAGLE's authors (reference specblock.md §5.1, §5.3), and vLLM's speculators, which describe the layer
// apart (§9).

package eagle

import (
	"fmt"

	"github.com/grovellm/grove/internal/headfile"
	"github.com/grovellm/grove/model"
)

// folderConfig is what config.json says of a head beyond its layer. Pointers tell a missing field from a zero.
type folderConfig struct {
	Speculators        string `json:"speculators_model_type"`
	LayerNorms         bool   `json:"layernorms"` // of vLLM's first format
	DraftVocab         *int   `json:"draft_vocab_size"`
	HiddenSize         int    `json:"hidden_size"`
	TargetHidden       *int   `json:"target_hidden_size"`
	TargetLayers       int    `json:"num_target_layers"`
	NormBeforeResidual *bool  `json:"norm_before_residual"`
	NormBeforeFC       *bool  `json:"norm_before_fc"`
	FCNorm             *bool  `json:"fc_norm"`
	NormOutput         bool   `json:"norm_output"`
	Inputs             []int  `json:"eagle_aux_hidden_state_layer_ids"` // of layers whose input is read, so taps
	Eagle              *struct {
		Outputs []int `json:"eagle_aux_hidden_state_layer_ids"` // SGLang's: of layers whose output is read
		Aux     *bool `json:"use_aux_hidden_state"`
	} `json:"eagle_config"`
}

// Check refuses heads that are not of this kind, before fields that they may not have are missed.
func (f *folderConfig) Check() error {
	switch {
	case f.Speculators != "" && f.Speculators != "eagle3" && f.Speculators != "eagle":
		return fmt.Errorf("%w: speculators_model_type is %q: want eagle or eagle3", ErrKind, f.Speculators)
	case f.LayerNorms:
		return fmt.Errorf("field \"layernorms\" is true: " +
			"EAGLE heads with norms of the embedding and before the output are not supported")
	case f.Eagle != nil && f.Eagle.Aux != nil && !*f.Eagle.Aux:
		return fmt.Errorf("field \"eagle_config.use_aux_hidden_state\" is false: " +
			"EAGLE-3 heads that read the last hidden state alone are not supported")
	case f.TargetHidden != nil && *f.TargetHidden != f.HiddenSize:
		return fmt.Errorf("field \"target_hidden_size\" is %d and hidden_size %d: heads narrower or wider than their target are not supported", *f.TargetHidden, f.HiddenSize)
	case f.DraftVocab != nil && *f.DraftVocab < 1:
		return fmt.Errorf("field \"draft_vocab_size\" is %d: want a positive number", *f.DraftVocab)
	}
	return nil
}

// readFolder reads an open folder.
func (x *File) readFolder() error {
	first := layer0
	for _, name := range []string{midlayer, transformer} {
		if x.Has(name + "self_attn.q_proj.weight") {
			first = name
		}
	}
	version := 3
	if !x.Has(first + "hidden_norm.weight") {
		version = 2
	}
	fusion, query := folderName("fc.weight", first), first+"self_attn.q_proj.weight"
	blockHead := version == 2 && first == layer0 && x.Has(first+"input_layernorm.weight")
	if !x.Has(fusion) || !x.Has(query) || blockHead {
		return fmt.Errorf("%w: the folder has no tensors %s and %s as such heads have", ErrKind, fusion, query)
	}
	var f folderConfig
	base, err := model.ParseFolder(x.JSON, &f)
	if err != nil {
		return err
	}
	base.Arch, base.Tied = x.LayerArch(first+"self_attn.q_norm.weight"), false // whatever model_type says
	x.Config = Config{Config: base, Version: version, DraftVocab: base.Vocab, TargetLayers: f.TargetLayers}
	if f.DraftVocab != nil {
		x.DraftVocab = *f.DraftVocab
	}
	if version == 3 {
		x.variants(&f)
	}
	x.first = first
	return x.readTensors()
}

// variants reads the taps and the norms of an EAGLE-3 head.
func (x *File) variants(f *folderConfig) {
	x.Taps = headfile.Stated(f.Inputs)
	if x.Taps == nil && f.Eagle != nil {
		for _, id := range f.Eagle.Outputs {
			x.Taps = append(x.Taps, id+1)
		}
	}
	set := func(value *bool, missing bool) bool {
		if value == nil {
			return missing
		}
		return *value
	}
	x.NormBeforeResidual = set(f.NormBeforeResidual, f.Speculators != "") // as each kind's own code has it
	x.NormBeforeFC = set(f.NormBeforeFC, x.Has("input_norm.weight"))
	x.FCNorm = set(f.FCNorm, x.Has("fc_norm.0.weight"))
	x.NormOutput = f.NormOutput
}

// readTensors reads the tensors of a folder.
func (x *File) readTensors() error {
	at := x.somehow()
	if err := at.Validate(); err != nil { // before its numbers size anything
		return err
	}
	var err error
	if x.Weights, err = x.ReadWeights(at.names(x.first), headfile.TokensName, headfile.MemberName); err != nil {
		return err
	}
	x.Tokens, err = x.File.Tokens(x.Vocab)
	return err
}
