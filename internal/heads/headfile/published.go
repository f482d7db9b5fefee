package headfile

import "github.com/grovellm/grove/internal/model"

// Published is the shape of a head as published for a target, which may not have one yet.
type Published struct {
	Drafter, About string
	Shape          Shape // nil: the head is in the target's file
}

// DraftVocab is the number of tokens in the draft vocabulary of published heads that have one.
const DraftVocab = 32000

// PublishedLayers returns layers for a target: 32 heads of 128 with 8 of keys, and MLPs as wide as the target's.
func PublishedLayers(target *model.Config, arch string, layers int) model.Config {
	return model.Config{Arch: arch, Vocab: target.Vocab, Hidden: target.Hidden, Layers: layers, Heads: 32, KVHeads: 8,
		HeadDim: 128, FFN: target.FFN, Context: target.Context, NormEps: 1e-6,
		Rope: model.RopeConfig{Base: 1e4, Dims: 128, Scale: 1}}
}
