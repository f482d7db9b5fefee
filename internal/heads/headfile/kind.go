package headfile

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/kernels/par"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// Kind is a kind of head: what its files are called, and how its shape is made.
type Kind struct {
	Name     string   // "EAGLE head"
	Drafters []string // names of the drafters that run such heads, each of which may want heads of its own shape
	Archs    []string // values of general.architecture in its GGUF files
	New      func() Shape

	Speculators []string // values of speculators_model_type in vLLM's folders of such heads

	Foreign []Foreign // published heads that are like these, and do not run

	// Examples are texts of the drafters. Checks draw other numbers for those in them: each below twice as large.
	Examples []string

	// Timed makes a head of random weights for the first of the drafters and a target of a shape; nil: none is timed.
	Timed func(target model.Config, w model.Weights, pool *par.Pool) (*Timed, error)

	// Published are shapes for a target with the numbers that published heads of the kind have; nil: there are none.
	Published func(target *model.Config) []Published

	// File is what the weights in folders of such heads are called, "FILE.safetensors" or
	// "FILE.pt"; empty: as those of models are.
	File string

	Bare   bool // heads have no layers of a model: GGUF files say the target's widths alone
	Pairs  bool // GGUF files have the rows of queries and keys of llama layers in neighbouring pairs
	Output bool // folders have an output matrix, because other programs want one

	Target string // the architecture of targets that such heads draft for; empty: any

	Embedding bool // folders have an embedding, because their authors' code wants one

	// SpeculatorsEmbedding says that folders for vLLM's speculators have an embedding: that package
	// takes a missing one for zeros, and says nothing.
	SpeculatorsEmbedding bool
}

// Shape is the numbers that describe a head of a kind, and what its files say of them. Every kind implements it by a
// pointer to its Config.
type Shape interface {
	Kind() *Kind
	Common() Common
	Validate() error
	DefaultTaps(layers int) []int // the layers that heads tap in a target of so many, where a file does not say
	Parts() Parts                 // the tensors of a network of this shape, which has no weights yet

	FileArch() string // general.architecture of its GGUF file
	Keys(k *Keys)     // keys of a GGUF file beyond those of the layers

	// ReadFolder reads the shape from config.json of an open folder, and FolderFields is its inverse:
	// layer has the fields of the layers, target is nil except for vLLM's speculators. Both say which
	// layout the folder has, which Place is told.
	ReadFolder(f *File) (layout string, err error)
	FolderFields(layer map[string]any, typ tensor.Type, weights []tensor.Tensor, target *model.Config) (m map[string]any,
		layout string, err error)
	Folders() (authors, speculators bool) // which folders can be written: in its authors' layout, for vLLM's speculators
	Place(name, layout string) Place      // where a folder has a tensor, by GGUF name

	Describe(own bool) string // what is its kind's own, for people; own: the head has an output matrix

	// Draw draws the numbers that are the kind's own for a random head that one of its drafters runs; Common has been
	// drawn. Widths of matrices are multiples of unit.
	Draw(rng *rand.Rand, drafter string, unit int)
}

// Borrower is a Shape of heads whose layers read the keys and values of their target's.
type Borrower interface {
	DrawFor(rng *rand.Rand, target *model.Config, unit int) // after Draw, makes the shape that of a head for a target
	BorrowsFrom(target *model.Config) error                 // says which of them a target has not
}

// Drafts reports whether there can be heads of the kind for targets of an architecture.
func (k *Kind) Drafts(arch string) bool { return k.Target == "" || k.Target == arch }

// VLLM is a Shape that vLLM drafts with, in one of the folders that can be written.
type VLLM interface {
	// VLLM is vLLM's name for the method, empty where it has none for this shape; how many tokens a
	// draft has unless a user says otherwise, and how many it can have, 0 for any number.
	VLLM() (method string, tokens, most int)
}

// Parallel is a VLLM that drafts all tokens in one pass, of which vLLM is told.
type Parallel interface{ Parallel() bool }

// Completer is a Shape whose authors' code wants tensors in a folder that change nothing, and that a head may lack.
type Completer interface {
	Complete(weights []tensor.Tensor) ([]tensor.Tensor, error)
}

// Inside is a Shape whose heads may be layers in their target's own file or folder (registry.Head.Inside).
type Inside interface {
	// ReadInside reads the shape from a file of the target, or one that is like it, and returns the head's tensors by
	// the names that a file of the head alone has.
	ReadInside(f *File) ([]tensor.Tensor, error)

	// Like reports whether a file has the head alone, and describes it as the target's file does.
	Like(f *File) bool
}

// Common points at what the shapes of all kinds have.
type Common struct {
	Layers       *model.Config // of the head's layers; Vocab and Hidden are the target's
	Taps         *[]int        // layers of the target that the head reads; nil: the usual ones of the target
	TargetLayers *int          // of the target that the head was made for; 0: not known
	DraftVocab   *int          // tokens of the head's own output, 0 for all; nil: the kind has none
	TextWeights  *[]float32    // of the modifier +text, fitted for the head; nil: the kind has none
	TargetHidden int           // width of the target; 0: that of Layers

	// TargetWeights is model.Network.WeightsID of the target that the head was made for, empty where it is not known; nil:
	// files of the kind do not say.
	TargetWeights *string
}

// Output is the number of rows of the head's output.
func (c *Common) Output() int {
	if c.DraftVocab != nil && *c.DraftVocab > 0 {
		return *c.DraftVocab
	}
	return c.Layers.Vocab
}

// Place is where a folder has a tensor: under which name, and which of its columns; To 0: all of them. Ones is how many
// dimensions of 1 stand before the head's own there; folders with fewer are read too.
type Place struct {
	Name     string
	From, To int
	Ones     int
	Dims     []int // the folder's, of a tensor that is one vector here; nil: those that it has here
}

// ErrKind is the error of a file that is no head of the kinds asked for.
var ErrKind = errors.New("a file of another kind")

// Refuse is the error of a file of another kind.
func (k *Kind) Refuse(format string, args ...any) error {
	return fmt.Errorf("%w: no %s: %s", ErrKind, k.Name, fmt.Sprintf(format, args...))
}

var kinds []*Kind

// Register adds a kind; the packages of heads do so in init.
func Register(k *Kind) {
	kinds = append(kinds, k)
	model.RegisterHeads(k.Archs...)
}

// Kinds lists those that were registered.
func Kinds() []*Kind { return slices.Clone(kinds) }

// Names says which kinds there are, for people: "block head, EAGLE head or SpecBlock head".
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

// For completes a shape for a target, whose depth says which layers are tapped where the file does
// not, and whose vocabulary how many tokens there are. It returns an error that says why the head is
// not one for the target.
func For(s Shape, target model.Config) (err error) {
	c := s.Common()
	c.Layers.Vocab = cmp.Or(c.Layers.Vocab, target.Vocab)
	if *c.Taps, err = TapsFor(&target, *c.Taps, *c.TargetLayers, s.DefaultTaps); err != nil {
		return err
	}
	if err = s.Validate(); err == nil {
		err = Fits(s, &target)
	}
	return err
}

// Describe says in a line what a head is, what it reads and of which models.
func (x *Head) Describe() string {
	c := x.Shape.Common()
	at, of := fmt.Sprintf("taps after layers %v", *c.Taps), ""
	if *c.Taps == nil {
		at = "taps where its kind has them"
	}
	if *c.TargetLayers > 0 {
		of = fmt.Sprintf(" of %d", *c.TargetLayers)
	}
	return fmt.Sprintf("%s, %s%s of a target with hidden size %d and %d tokens", x.Shape.Describe(x.Own()), at, of,
		cmp.Or(c.TargetHidden, c.Layers.Hidden), c.Layers.Vocab)
}
