package synth

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/recode"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// Shape is everything about a model except its weights.
type Shape struct {
	Name    string
	Arch    string // one of model.Architectures
	Vocab   int
	Hidden  int // width of the residual stream
	Layers  int
	Heads   int // query heads
	KVHeads int // key/value heads; divides Heads
	HeadDim int
	FFN     int // width of the MLP
	Context int

	NormEps  float64
	RopeBase float64
	RopeDims int         // rotated dimensions of a head
	Llama3   *Llama3Rope // nil for plain RoPE

	Tied     bool // the output head is the embedding
	Parallel bool // attention and MLP read the same input (gptneox)
	Biases   bool // queries, keys and values have biases, if the architecture leaves it open

	Tokens Tokens

	// Tune sets the rest of the configuration: windows, scales, soft caps, a scaling
	// of positions. It may be nil.
	Tune func(c *model.Config)
}

// Config returns the configuration.
func (s Shape) Config() model.Config {
	c := model.Config{Arch: s.Arch, Name: s.Name, Vocab: s.Vocab, Hidden: s.Hidden, Layers: s.Layers,
		Heads: s.Heads, KVHeads: s.KVHeads,
		HeadDim: s.HeadDim, FFN: s.FFN, Context: s.Context, NormEps: float32(s.NormEps), Parallel: s.Parallel, Tied: s.Tied,
		Rope: model.RopeConfig{Base: s.RopeBase, Dims: s.RopeDims, Scale: 1, Factors: s.ropeFactors()}}
	c.Imply()
	if s.Tune != nil {
		s.Tune(&c)
	}
	return c
}

// Llama3Rope is the RoPE scaling of Llama 3.1 and later, in config.json's terms.
type Llama3Rope struct {
	Factor, Low, High float64
	Original          int // context before scaling
}

// Tokens names the kind of tokenizer a model comes with.
type Tokens string

const (
	SPM      Tokens = "spm"       // SentencePiece pieces with byte fallback (Llama 2)
	Llama3   Tokens = "llama-bpe" // byte-level BPE, split as Llama 3
	Qwen2    Tokens = "qwen2"     // byte-level BPE, split as Qwen2
	GPT2     Tokens = "gpt-2"     // byte-level BPE, split as GPT-2
	minVocab        = 400         // the bytes, the special tokens and some merges
	maxVocab        = 400_000     // buildVocab's words suffice for this many
)

// Parameters is the number of weights; a tied head counts once.
func (s Shape) Parameters() int64 {
	var n int64
	for _, t := range s.plan() {
		if t.hf != "" {
			n += int64(t.elements())
		}
	}
	return n
}

// Validate returns an error if GGUF files or Hugging Face folders cannot hold a model of this shape.
func (s Shape) Validate() error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("synth: shape %q: "+format, append([]any{s.Name}, args...)...)
	}
	if !slices.Contains(model.Architectures(), s.Arch) {
		return fail("architecture %q is not known: use one of %s", s.Arch, strings.Join(model.Architectures(), ", "))
	}
	switch s.Tokens {
	case SPM, Llama3, Qwen2, GPT2:
	default:
		return fail("tokenizer %q is not known: use %s, %s, %s or %s", s.Tokens, SPM, Llama3, Qwen2, GPT2)
	}
	for _, f := range []struct {
		what      string
		v, lo, hi int
	}{
		{"vocabulary", s.Vocab, minVocab, maxVocab},
		{"hidden size", s.Hidden, 1, 1 << 16},
		{"layer count", s.Layers, 1, 1 << 10},
		{"head count", s.Heads, 1, 1 << 10},
		{"key/value head count", s.KVHeads, 1, s.Heads},
		{"head dimension", s.HeadDim, 2, 1 << 12},
		{"feed-forward size", s.FFN, 1, 1 << 18},
		{"context length", s.Context, 1, 1 << 24},
		{"rotated dimensions", s.RopeDims, 2, s.HeadDim},
	} {
		if f.v < f.lo || f.v > f.hi {
			return fail("%s is %d: want %d to %d", f.what, f.v, f.lo, f.hi)
		}
	}
	switch {
	case s.Heads%s.KVHeads != 0:
		return fail("%d heads do not share %d key/value heads evenly", s.Heads, s.KVHeads)
	case s.RopeDims%2 != 0:
		return fail("%d rotated dimensions: want an even number", s.RopeDims)
	case !(s.NormEps > 0 && s.NormEps < 1):
		return fail("norm epsilon is %g: want a small positive number", s.NormEps)
	case !(s.RopeBase > 1):
		return fail("rope base is %g: want more than 1", s.RopeBase)
	case s.Llama3 != nil && !(s.Llama3.Factor >= 1 && s.Llama3.Low > 0 && s.Llama3.High > s.Llama3.Low &&
		s.Llama3.Original > 0):
		return fail("rope scaling %+v: want factor ≥ 1, 0 < low < high, a positive original context", *s.Llama3)
	}
	c := s.Config()
	if err := errors.Join(c.Validate(), c.CheckFiles()); err != nil {
		return fail("%w", err)
	}
	return nil
}

// check is Validate, and also checks that the matrices can be written as typ.
func (s Shape) check(typ tensor.Type) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if err := recode.CheckWritable(typ); err != nil {
		if _, ok := blockScale(typ); !ok {
			return fmt.Errorf("synth: type %w", err)
		}
	}
	block, _ := typ.Block()
	for _, t := range s.plan() {
		if t.matrix && !t.plain && t.cols%block != 0 {
			return fmt.Errorf("synth: shape %q: rows of %s are %d long, not whole blocks of %d: use another type than %v", s.Name, t.gguf, t.cols, block, typ)
		}
	}
	return nil
}
