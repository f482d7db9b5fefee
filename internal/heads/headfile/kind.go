package headfile

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/grovellm/grove/draft"
	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// Kind is a kind of head: what its files are called, and how its shape is made.
type Kind struct {
	Name     string   // "EAGLE head"
	Drafters []string // names of the drafters that run such heads; each may need heads of its own shape
	Archs    []string // values of general.architecture in its GGUF files
	New      func() Shape

	Speculators []string // values of speculators_model_type in vLLM's folders of such heads

	Foreign []Foreign // published heads that resemble these but that grove does not run

	// Examples are option texts of the drafters. Checks replace each number in them by a random one below its double.
	Examples []string

	// Timed makes a head of random weights for the first drafter and a target's shape; nil: no head is timed.
	Timed func(target model.Config, w model.Weights, pool *par.Pool) (*Timed, error)

	// Published returns the shapes that published heads of the kind have for a target; nil: there are none.
	Published func(target *model.Config) []Published

	// File names the weights in folders of such heads: "FILE.safetensors" or "FILE.pt". If it is
	// empty, they are named as a model's are.
	File string

	Bare   bool // heads have no layers of a model: GGUF files give only the target's widths
	Pairs  bool // GGUF files store the query and key rows of llama layers in neighbouring pairs
	Output bool // folders include an output matrix, because other programs need one

	Target string // the architecture of targets that such heads draft for; empty: any

	Whole []string // the Archs of heads without a draft vocabulary

	Embedding bool // folders include an embedding, because their authors' code needs one

	// SpeculatorsEmbedding says that folders for vLLM's speculators include an embedding: that package
	// silently takes a missing one for zeros.
	SpeculatorsEmbedding bool
}

// Shape holds the numbers that describe a head of a kind, and maps them to its files. The pointer
// to each kind's Config implements it.
type Shape interface {
	Kind() *Kind
	Common() *Base
	Validate() error
	DefaultTaps(layers int) []int // the layers that heads tap in a target of that many, if a file does not say
	Parts() Parts                 // the tensors of a network of this shape, still without weights

	FileArch() string // general.architecture of its GGUF file
	Keys(k *Keys)     // keys of a GGUF file beyond those of the layers

	// ReadFolder reads the shape from config.json of an open folder, and FolderFields is its inverse:
	// layer has the fields of the layers; target is nil except for vLLM's speculators. Both return the
	// folder's layout, which is passed to Place.
	ReadFolder(f *File) (layout string, err error)
	FolderFields(layer map[string]any, typ tensor.Type, weights []tensor.Tensor, target *model.Config) (m map[string]any,
		layout string, err error)
	Folders() (authors, speculators bool) // which folders can be written: in the authors' layout, for vLLM's speculators
	Place(name, layout string) Place      // where a folder keeps a tensor, given its GGUF name

	Describe(own bool) string // the kind's own properties, for people; own: the head has an output matrix

	// Draw draws the kind's own numbers for a random head that one of its drafters runs, after Common
	// has been drawn. Widths of matrices are multiples of unit.
	Draw(rng *rand.Rand, drafter string, unit int)
}

// Borrower is a Shape of heads whose layers read the keys and values of their target's layers.
type Borrower interface {
	DrawFor(rng *rand.Rand, target *model.Config, unit int) // after Draw, adapts the shape to a target
	BorrowsFrom(target *model.Config) error                 // reports which of them a target lacks
}

// Drafts reports whether heads of the kind can exist for targets of an architecture.
func (k *Kind) Drafts(arch string) bool { return k.Target == "" || k.Target == arch }

// VLLM is a Shape that vLLM can draft with, in one of the folders that can be written.
type VLLM interface {
	// VLLM returns vLLM's name for the method, empty if it has none for this shape; the default number
	// of tokens of a draft; and the most that it can have, 0 for any number.
	VLLM() (method string, tokens, most int)
}

// Parallel is a VLLM that may draft all tokens in one pass, which vLLM must be told.
type Parallel interface{ Parallel() bool }

// Completer is a Shape whose authors' code needs tensors in a folder that change nothing and that a head may lack.
type Completer interface {
	Complete(weights []tensor.Tensor) ([]tensor.Tensor, error)
}

// Inside is a Shape whose heads may be layers in the target's own file or folder (registry.Head.Inside).
type Inside interface {
	// ReadInside reads the shape from a file of the target, or one like it, and returns the head's
	// tensors under the names that they have in a file of only the head.
	ReadInside(f *File) ([]tensor.Tensor, error)

	// Like reports whether a file has only the head, described in the way that a target's file does it.
	Like(f *File) bool
}

// Base is what the shapes of all kinds embed.
type Base struct {
	model.Config // of the head's layers; Vocab and Hidden are the target's

	// Taps are the target's layers that the head reads, in order: 0 is the embedding, i the output of
	// block i; nil: the default ones.
	Taps []int

	DraftVocab int // tokens of the head's own output; 0: all of the target's

	TargetHidden  int    // width of the target; 0: Hidden
	TargetLayers  int    // of the target that the head was made for; 0: unknown
	TargetWeights string // model.Network.WeightsID of that target; empty: unknown

	TextWeights []float32 // of the modifier +text, fitted for the head; nil: it learns from the start
}

// Common returns the part that the shapes of all kinds have.
func (b *Base) Common() *Base { return b }

// Output returns the number of rows of the head's output.
func (b *Base) Output() int { return cmp.Or(b.DraftVocab, b.Vocab) }

// Shortens reports whether heads of a shape may have a draft vocabulary.
func Shortens(s Shape) bool { return !slices.Contains(s.Kind().Whole, s.FileArch()) }

// Place is where a folder keeps a tensor: its name and the range of columns; if To is 0, all of them.
// Ones is the number of dimensions of 1 there before the head's own; folders with fewer can be read too.
type Place struct {
	Name     string
	From, To int
	Ones     int
	Dims     []int // dimensions in the folder of a tensor that is a vector here; nil: the same as here
}

// ErrKind is the error for a file that is not a head of the kinds asked for.
var ErrKind = errors.New("a file of another kind")

// Refuse returns the error for a file of another kind.
func (k *Kind) Refuse(format string, args ...any) error {
	return fmt.Errorf("%w: no %s: %s", ErrKind, k.Name, fmt.Sprintf(format, args...))
}

var kinds []*Kind

// Register adds a kind. The packages of heads call it in init.
func Register(k *Kind) {
	kinds = append(kinds, k)
	model.RegisterHeads(k.Archs...)
}

// Kinds returns the kinds that were registered.
func Kinds() []*Kind { return slices.Clone(kinds) }

// Names lists the kinds for people: "block head, EAGLE head or SpecBlock head".
func Names() string {
	var b strings.Builder
	for i, k := range kinds {
		switch {
		case i > 0 && i == len(kinds)-1:
			b.WriteString(" or ")
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(k.Name)
	}
	return b.String()
}

// For completes a shape for a target: the target's depth determines the tapped layers if the file
// does not, and its vocabulary the number of tokens. It returns an error that says why the head
// does not fit the target, if so.
func For(s Shape, target model.Config) (err error) {
	c := s.Common()
	c.Vocab = cmp.Or(c.Vocab, target.Vocab)
	if c.Taps, err = TapsFor(&target, c.Taps, c.TargetLayers, s.DefaultTaps); err != nil {
		return err
	}
	if err = s.Validate(); err == nil {
		err = Fits(s, &target)
	}
	return err
}

// Describe says in a line what a head is, what it reads and which models it is for.
func (x *Head) Describe() string {
	c := x.Shape.Common()
	at, of := fmt.Sprintf("taps after layers %v", c.Taps), ""
	if c.Taps == nil {
		at = "taps where its kind has them"
	}
	if c.TargetLayers > 0 {
		of = fmt.Sprintf(" of %d", c.TargetLayers)
	}
	return fmt.Sprintf("%s, %s%s of a target with hidden size %d and %d tokens", x.Shape.Describe(x.Own()), at, of,
		cmp.Or(c.TargetHidden, c.Hidden), c.Vocab)
}

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

// Timed is a head of random weights that drafts as in its paper, to time what a draft costs. There is no target.
type Timed struct {
	Output shortlist.Drafter // its output matrix, norm and embedding
	Layers int               // bytes of its layers' weights

	// A draft with all of its candidates: the nodes and depth to ask for, and the least number of nodes that it has.
	Budget, Depth, Least int

	// New returns a drafter over the tokens of a shortlist, or over all if it is nil.
	New func(lists shortlist.Method) (draft.Drafter, error)
}
