package model

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/grovellm/grove/internal/nn"
)

// Config is the shape of a model.
type Config struct {
	Arch    string // its name in GGUF files: one of Architectures
	Name    string // the name that the file gives itself; may be empty
	Vocab   int    // rows of the embedding
	Hidden  int    // width of the residual stream
	Layers  int    // those that files repeat (Loops) included
	Heads   int    // query heads
	KVHeads int    // key/value heads; divides Heads
	HeadDim int
	FFN     int // width of the MLP, or of an expert
	Context int // tokens the model was made for

	NormEps  float32
	Rope     RopeConfig
	Parallel bool // attention and MLP read the same input (GPT-NeoX)
	Tied     bool // the output head is the embedding
	PoolLast bool // an embedding is the last token's state, not the mean over all tokens

	Experts   int  // per layer; 0: one MLP instead
	Used      int  // experts per row
	ExpertFFN int  // width of an expert, if some layers have MLPs; else 0
	SharedFFN int  // total width of the experts that all rows use; 0: none
	Dense     int  // how many of the first layers have an MLP in place of experts
	Every     int  // every Every-th layer has experts, the others an MLP; 0: Dense says it
	HeadNorms bool // queries and keys have norms, if the architecture leaves it open
	Rule      nn.Rule

	// Window is the number of positions, including its own, that a row sees in a layer with a
	// window. Windowed says which layers have one; it may list fewer than all. LocalRope is
	// their rotation, if it differs.
	Window    int
	Windowed  []bool
	LocalRope *RopeConfig
	NoRope    []bool // which layers do not rotate positions in; may list fewer than all

	// LocalHeads, LocalKVHeads and LocalHeadDim are Heads, KVHeads and HeadDim of layers with a window,
	// where they differ; else 0.
	LocalHeads, LocalKVHeads, LocalHeadDim int

	// ValueDim is the width of a head's values where they may be narrower than keys; 0: HeadDim. ValueScale multiplies
	// them; 0: nothing does.
	ValueDim   int
	ValueScale float64

	// Limits and SharedLimits say how large each layer's activations, and the numbers they multiply, may be in the
	// experts, and in the MLP or the experts that all rows use; 0, or a layer that is not listed: any size.
	Limits, SharedLimits []float32

	HeadGates bool // gates of attention are one for each head, where the architecture leaves it open

	// Sharing is how many of the last layers have no keys and values of their own: each reads
	// those of the last layer before them that, like itself, has or has no window. WideSharing:
	// their MLPs are twice as wide.
	Sharing     int
	WideSharing bool

	// Loops is how often rows pass the layers that files have, each time with keys and values of their own; 0: once.
	// Unnormed says that the model's last norm is not applied between two loops.
	Loops    int
	Unnormed bool

	Latent LatentConfig // of multi-head latent attention
	// Borrows says that no layer has keys and values of its own: the layers belong to a head, and
	// read those of its target (BorrowedFrom).
	Borrows bool

	// XIELU holds the activation parameters of each layer's MLP, if it has some: alpha_p, alpha_n,
	// beta and eps. Layers that are not listed use the first layer's.
	XIELU [][4]float32

	KeyValues bool // values of layers without a window are their keys before norm and rotation
	PerLayer  int  // a table's numbers per token for each layer; 0: no table

	// Streams is how many residual streams a row has (nn.AltUp), Laurel the width of the shortcut around attention;
	// 0: one stream, and none. Cuts says for each layer how many standard deviations above their mean the gates of its
	// MLP have to be to count; -Inf: all do (Gemma 3n).
	Streams, Laurel int
	Cuts            []float32

	// Recurrent says which layers are recurrent and have no attention; it may list fewer than all.
	// Kernel is the length of their convolutions.
	Recurrent []bool
	Kernel    int
	Delta     DeltaConfig // of gated DeltaNet layers
	Mamba     MambaConfig // of Mamba-2 layers

	// Bare is for models whose layers have only one half: it says which have an MLP, or experts,
	// and nothing before it; the others have no MLP. nil: layers have both halves.
	Bare []bool

	// LayerKVHeads and LayerFFN are the key/value heads and the width of the MLP of each layer, where they differ from
	// layer to layer, and 0 where it has no attention (Bare), or no MLP; nil: KVHeads and FFN. Replaced says which
	// layers have a product in the place of attention (Nemotron 51B).
	LayerKVHeads, LayerFFN []int
	Replaced               []bool

	// Narrow is the width of experts' inputs and outputs, if it is not Hidden; else 0.
	Narrow int

	// A value of 0 changes nothing.
	AttnScale     float64 // of attention scores, in place of 1/√HeadDim
	Clip          float64 // bound of the numbers of queries, keys and values
	AttnCap       float64 // soft cap of attention scores
	LogitCap      float64 // soft cap of logits
	EmbedScale    float64 // multiplies embeddings
	ResidualScale float64 // multiplies the output of each half of a layer
	LogitScale    float64 // divides logits
	Temper        nn.Temper

	Scales *FolderScales // of a folder of Falcon-H1; nil: none

	// Folder is the model_type of the folder that the configuration was read from, if its tensors
	// have names other than those of Arch; else empty.
	Folder string

	// Ahead is how many layers the files have after those of the model. Such a layer was trained to
	// predict one token further, for drafting (multi-token prediction), and is not part of the model.
	Ahead int

	Padded int64 // how many of the parameters are padding (Options.Pad)
}

// DeltaConfig is the shape of gated DeltaNet layers.
type DeltaConfig struct {
	KeyHeads, ValueHeads int // KeyHeads divides ValueHeads
	KeyDim, ValueDim     int

	// Grouped: neighbouring value heads share a key head, as in all folders and in GGUF files of
	// Qwen 3 Next; otherwise value heads that are KeyHeads apart do.
	Grouped bool
}

func (d *DeltaConfig) validate() error {
	for _, f := range []struct {
		what  string
		v, hi int
	}{{"key heads", d.KeyHeads, maxHeads}, {"value heads", d.ValueHeads, maxHeads},
		{"dimensions of a key head", d.KeyDim, 256},
		{"dimensions of a value head", d.ValueDim, maxWidth / maxHeads}} {
		if f.v < 1 || f.v > f.hi {
			return fmt.Errorf("gated DeltaNet with %d %s: want 1 to %d", f.v, f.what, f.hi)
		}
	}
	if d.ValueHeads%d.KeyHeads != 0 {
		return fmt.Errorf("gated DeltaNet: %d value heads do not share %d key heads evenly", d.ValueHeads, d.KeyHeads)
	}
	return nil
}

// RopeConfig describes how positions are rotated in.
type RopeConfig struct {
	Base       float64
	Dims       int       // rotated dimensions of a head, from its start
	Neighbours bool      // pairs are (2i, 2i+1), as in the llama family's GGUF files; else (i, i+Dims/2)
	Factors    []float32 // divide the frequency of each pair (Llama 3's scaling); nil for none
	Scale      float64   // divides every position (linear scaling, YaRN); 1 for none
	Attn       float64   // multiplies the rotated vectors; 0 for 1
	Yarn       *Yarn     // nil for none

	// Long replaces Factors if the context is longer than Original, and Short if it
	// is not (longrope).
	Long, Short []float32
	Original    int // the context that the model was first trained with
}

// Limits on the sizes that a file may claim, far above any real model, so that a hostile file
// cannot make grove allocate buffers of arbitrary size.
const (
	maxWidth   = 1 << 20
	maxLayers  = 1 << 12
	maxHeads   = 1 << 12
	maxContext = 1 << 26
	maxExperts = 1 << 12
)

// Validate checks that the numbers describe a possible model.
func (c *Config) Validate() error {
	for _, f := range []struct {
		what      string
		v, lo, hi int
	}{
		{"vocabulary", c.Vocab, 1, 1 << 24},
		{"hidden size", c.Hidden, 1, maxWidth},
		{"layer count", c.Layers, 1, maxLayers},
		{"head count", c.Heads, 1, maxHeads},
		{"key/value head count", c.KVHeads, 1, c.Heads},
		{"head dimension", c.HeadDim, 2, maxWidth},
		{"feed-forward size", c.FFN, 1, maxWidth},
		{"context length", c.Context, 1, maxContext},
		{"rotated dimensions", c.Rope.Dims, 2, c.HeadDim},
	} {
		if f.v < f.lo || f.v > f.hi {
			return fmt.Errorf("%s is %d: want %d to %d", f.what, f.v, f.lo, f.hi)
		}
	}
	switch {
	case c.Experts < 0 || c.Experts > maxExperts || c.Used < min(c.Experts, 1) || c.Used > c.Experts:
		return fmt.Errorf("%d of %d experts are used: want at least 1, of at most %d", c.Used, c.Experts, maxExperts)
	case c.Loops < 0 || c.Layers%max(c.Loops, 1) != 0:
		return fmt.Errorf("%d layers in %d loops: want as many layers in each", c.Layers, c.Loops)
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("%d heads do not share %d key/value heads evenly", c.Heads, c.KVHeads)
	case c.Rope.Dims%2 != 0:
		return fmt.Errorf("%d rotated dimensions: want an even number", c.Rope.Dims)
	case !(c.NormEps > 0 && c.NormEps < 1):
		return fmt.Errorf("norm epsilon is %g: want a small positive number", c.NormEps)
	case c.Window < 0 || c.Window > maxContext:
		return fmt.Errorf("sliding window is %d: want 0 to %d", c.Window, maxContext)
	case (c.Hybrid() || c.Mamba.Heads > 0) && (c.Kernel < 1 || c.Kernel > nn.PageRows):
		return fmt.Errorf("convolutions of recurrent layers are %d long: want 1 to %d", c.Kernel, nn.PageRows)
	case c.Temper.Scale != 0 && c.Temper.Length < 1:
		return fmt.Errorf("temperature of queries by positions in steps of %d: want a positive number", c.Temper.Length)
	}
	for _, f := range []struct {
		what string
		v    float64
	}{
		{"scale of attention scores", c.AttnScale}, {"soft cap of attention scores", c.AttnCap},
		{"clip of queries, keys and values", c.Clip},
		{"soft cap of logits", c.LogitCap}, {"scale of embeddings", c.EmbedScale},
		{"scale of residuals", c.ResidualScale}, {"scale of logits", c.LogitScale},
	} {
		if f.v != 0 && !positive(f.v) {
			return fmt.Errorf("%s is %g: want a positive number", f.what, f.v)
		}
	}
	if c.Delta != (DeltaConfig{}) {
		if err := c.Delta.validate(); err != nil {
			return err
		}
	}
	if c.Mamba != (MambaConfig{}) {
		if err := c.Mamba.validate(); err != nil {
			return err
		}
	}
	if c.LocalRope != nil {
		if err := c.LocalRope.validate(); err != nil {
			return err
		}
	}
	return errors.Join(c.validateLayers(), c.Rope.validate())
}

// Imply sets the values that the architecture implies, which its files may omit.
func (c *Config) Imply() {
	if a := c.arch(); a != nil && a.implied != nil {
		a.implied(c)
	}
}

// SetWindow gives a sliding window of n positions to the layers that have one by the
// architecture's rule.
func (c *Config) SetWindow(n int) {
	a := c.arch()
	c.Window = n
	c.Windowed = a.windows(c.Layers)
	c.LocalRope = nil
	if a.local != nil {
		a.local(c)
	}
}

// CheckFiles returns an error if the architecture's files, as other engines read them,
// cannot express the configuration.
func (c *Config) CheckFiles() error {
	a := c.arch()
	square := c.Heads*c.HeadDim == c.Hidden
	switch {
	case a == nil:
		return fmt.Errorf("architecture %q is not one grove runs", c.Arch)
	case (a.experts != "") != (c.Experts > 0):
		return fmt.Errorf("%d experts in a layer: a %s model cannot have that number", c.Experts, c.Arch)
	case a.rotated == 0 && c.Rope.Dims != c.HeadDim:
		return fmt.Errorf("%d of %d dimensions rotated: a %s model rotates all", c.Rope.Dims, c.HeadDim, c.Arch)
	case c.Rope.Factors != nil && !a.neighbours && !a.factored:
		return fmt.Errorf("rope factors: a %s model has none", c.Arch)
	case a.square && !square:
		return fmt.Errorf("%d heads of %d do not add up to the hidden size %d: %s requires that",
			c.Heads, c.HeadDim, c.Hidden, c.Arch)
	case a.find("output") == nil && !c.Tied:
		return fmt.Errorf("an output matrix separate from the embedding: a %s model has none", c.Arch)
	case !a.hybrid && c.Hybrid():
		return fmt.Errorf("recurrent layers: a %s model has none", c.Arch)
	case a.check != nil:
		return a.check(c)
	}
	return nil
}

// positive reports whether x is a positive number that an f32 holds.
func positive(x float64) bool { return float32(x) > 0 && !math.IsInf(float64(float32(x)), 0) }

// Hybrid reports whether some layers are recurrent.
func (c *Config) Hybrid() bool { return slices.Contains(c.Recurrent, true) }

// recurrent reports whether layer i is recurrent.
func (c *Config) recurrent(i int) bool { return i < len(c.Recurrent) && c.Recurrent[i] }

// attends reports whether layer i has attention.
func (c *Config) attends(i int) bool { return !c.recurrent(i) && !c.bare(i) }

// bare reports whether layer i has only an MLP, or experts.
func (c *Config) bare(i int) bool { return i < len(c.Bare) && c.Bare[i] }

// attendsSomewhere reports whether any layer has attention.
func (c *Config) attendsSomewhere() bool {
	for i := range c.Layers {
		if c.attends(i) {
			return true
		}
	}
	return false
}

// windowed reports whether layer i has a sliding window.
func (c *Config) windowed(i int) bool { return c.Window > 0 && i < len(c.Windowed) && c.Windowed[i] }
