// Reading a head of a kind, to inspect it or to use it for a target.

package headfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/files/reshape"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// Named puts a head's name before an error that does not mention it.
func Named(h registry.Head, err error) error {
	if err == nil || strings.Contains(err.Error(), h.Name) {
		return err
	}
	return fmt.Errorf("%s: %w", h.Name, err)
}

// Head is an open file of a head: its shape, and the data of its tensors as stored. Taps of its
// Shape are nil if the file leaves them to the target's depth; see For.
type Head struct {
	*File
	Shape   Shape
	Weights []tensor.Tensor // by GGUF name; rows in the order that Rope.Neighbours says
	Tokens  []int32         // of a draft vocabulary

	layout string // of a folder
}

// insideLayout is the layout of a folder that Inside.ReadInside reads.
const insideLayout = "inside"

// Own reports whether the head has an output matrix of its own.
func (x *Head) Own() bool { return HasOutput(x.Weights) }

// Read opens a file that is of one of the given kinds. Its tensors' data are valid until it is closed.
func Read(h registry.Head, kinds ...*Kind) (*Head, error) {
	f, err := Open(h)
	if err != nil {
		return nil, Named(h, err)
	}
	for _, kind := range kinds {
		x := &Head{File: f, Shape: kind.New()}
		if err = x.read(); !errors.Is(err, ErrKind) {
			if err == nil {
				return x, nil
			}
			break
		}
	}
	return nil, Named(h, errors.Join(err, f.Close()))
}

// read reads the file as one of its shape's kind.
func (x *Head) read() (err error) {
	if s, ok := x.Shape.(Inside); ok && (x.Inside || s.Like(x.File)) {
		x.layout = insideLayout
		if x.Weights, err = s.ReadInside(x.File); err == nil {
			err = x.Shape.Validate()
		}
	} else if x.Inside {
		err = x.Shape.Kind().Refuse("the file is a model's")
	} else if x.GGUF != nil {
		err = x.readGGUF()
	} else if err = x.readFolder(); err != nil && !strings.Contains(err.Error(), x.Dir) {
		err = fmt.Errorf("%s: %w", filepath.Join(x.Dir, "config.json"), err)
	}
	if err != nil {
		return err
	}
	return Check(x.Shape, x.Weights, x.Tokens, x.called)
}

// called returns the name that the file uses for a tensor.
func (x *Head) called(name string) string {
	if x.GGUF != nil || x.layout == insideLayout {
		return name
	}
	return x.Shape.Place(name, x.layout).Name
}

func (x *Head) readGGUF() (err error) {
	from, kind := ggufkeys.Of(x.GGUF), x.Shape.Kind()
	arch := from.String("general.architecture")
	if from.Err() == nil && !slices.Contains(kind.Archs, arch) {
		return kind.Refuse("general.architecture is %q: want %s", arch, strings.Join(kind.Archs, " or "))
	}
	names := x.Names()
	if err := refuseForeign(nil, names); err != nil {
		return err
	}
	k := &Keys{Arch: arch}
	k.all(x.Shape)
	layers, err := x.readLayers(arch, k.names, kind)
	if err != nil {
		return err
	}
	layers.Rope.Neighbours = layers.Rope.Neighbours && kind.Pairs
	c := x.Shape.Common()
	c.Config = layers
	k.from = from
	k.all(x.Shape)
	if err := from.Err(); err != nil {
		return err
	}
	if k.err != nil {
		return k.err
	}
	if err := usual(x.Shape, x.Shape.Validate); err != nil {
		return err
	}
	if Shortens(x.Shape) {
		if x.Tokens, err = x.File.Tokens(layers.Vocab); err != nil {
			return err
		}
		if x.Tokens != nil {
			c.DraftVocab = len(x.Tokens)
		}
	}
	for _, name := range names {
		if Shortens(x.Shape) && name == TokensName {
			continue
		}
		t, err := x.load(name)
		if err != nil {
			return err
		}
		x.Weights = append(x.Weights, t)
	}
	return nil
}

func (x *Head) readFolder() (err error) {
	if x.layout, err = x.Shape.ReadFolder(x.File); err != nil {
		return err
	}
	var shapes Shapes
	err = usual(x.Shape, func() error {
		if err := x.Shape.Validate(); err != nil { // before its numbers determine any size
			return err
		}
		shapes = x.Shape.Parts().Shapes()
		return nil
	})
	if err != nil {
		return err
	}
	c, used := x.Shape.Common(), map[string]bool{}
	if Shortens(x.Shape) {
		used[TokensName] = true
		used[MemberName] = true
		used[plainName] = true
		if x.Tokens, err = x.folderTokens(c); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		p := x.Shape.Place(name, x.layout)
		if !x.Has(p.Name) {
			continue // Check says which are required
		}
		t, err := x.load(p.Name)
		if err == nil && p.To > 0 {
			t, err = reshape.Columns(t, p.From, p.To)
		}
		if err != nil {
			return err
		}
		used[p.Name] = true
		t.Name = name
		if p.Dims != nil {
			t.Shape = []int{t.Elements()}
		}
		for range p.Ones {
			if len(t.Shape) > len(shapes[name].Dims) && t.Shape[0] == 1 {
				t.Shape = t.Shape[1:]
			}
		}
		x.Weights = append(x.Weights, t)
	}
	for _, name := range x.Names() {
		if !used[name] {
			return fmt.Errorf("tensor %s does not belong to the %s that the file describes",
				fileerr.Quote(name), x.Shape.Kind().Name)
		}
	}
	return nil
}

// vocabularyName is a PyTorch file with the draft vocabulary, which some folders have.
const vocabularyName = "vocab_mapping.pt"

// folderTokens reads the draft vocabulary of a folder, which may be in a file of its own.
func (x *Head) folderTokens(c *Base) (tokens []int32, err error) {
	tokens, err = x.File.Tokens(c.Vocab)
	if len(tokens) < c.Output() && c.Output() == c.Vocab { // only some of the rows, which vLLM accepts
		tokens = nil
	}
	if err != nil || tokens != nil || c.Output() == c.Vocab {
		return tokens, err
	}
	f, err := safetensors.Open(filepath.Join(x.Dir, vocabularyName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the draft vocabulary has %d of %d tokens, and neither tensor %s nor the file %s says which: fetch the file from where the head came from",
			c.Output(), c.Vocab, TokensName, vocabularyName)
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	return (&File{tensors: f, Folder: f}).Tokens(c.Vocab)
}

// With returns what use makes of a file while it is open, and closes it.
func With[F interface {
	io.Closer
	CheckInPlace() error
}, T any](h registry.Head, f F, err error, use func(f F) (T, error)) (T, error) {
	if err != nil {
		var none T
		return none, err
	}
	v, err := use(f)
	if err == nil {
		err = f.CheckInPlace()
	}
	return v, Named(h, errors.Join(err, f.Close()))
}

// ReadConfig reads the shape of a head without its weights; if there is a target, the shape completed for it.
func ReadConfig[C any, S interface {
	*C
	Shape
}](h registry.Head, target *model.Config) (C, error) {
	f, err := Read(h, S(new(C)).Kind())
	return With(h, f, err, func(f *Head) (c C, err error) {
		if target != nil {
			err = For(f.Shape, *target)
		}
		return *f.Shape.(S), err
	})
}

// opened is the key under which a target's drafters share a head of a kind.
type opened struct {
	kind *Kind
	name string
}

// Opener returns a function that loads a head of a kind for a target; see Load.
func Opener[C, H any](kind *Kind, build func(c C, w model.Weights, tokens []int32, target *model.Network) (H, error),
) func(registry.Head, registry.Target) (H, error) {
	return func(h registry.Head, target registry.Target) (H, error) { return Load(h, kind, target, build) }
}

// Load opens a head of a kind, whose shapes are *C, for a target. build makes it once for all drafters of the target.
func Load[C, H any](h registry.Head, kind *Kind, target registry.Target,
	build func(c C, w model.Weights, tokens []int32, target *model.Network) (H, error)) (H, error) {
	v, err := target.Shared.Get(opened{kind, h.Name}, func() (any, error) {
		m := target.Model
		if m == nil {
			return nil, fmt.Errorf("the head reads the target's hidden states, and this kind of target has none")
		}
		f, err := Read(h, kind)
		return With(h, f, err, func(f *Head) (H, error) {
			var none H
			if err := For(f.Shape, m.Config); err != nil {
				return none, err
			}
			w := model.NewLoader(f.Weights, f.Shape.FileArch())
			head, err := build(*any(f.Shape).(*C), w, f.Tokens, &m.Network)
			if err != nil {
				return none, err
			}
			return head, w.Pack(m.Pool())
		})
	})
	if err != nil {
		var none H
		return none, Named(h, err)
	}
	return v.(H), nil
}

// Find returns the first of a target's heads that is of a kind and whose shape is wanted. Error
// messages call such a head called.
func Find(target registry.Target, kind *Kind, called string, wanted func(s Shape) bool) (registry.Head, error) {
	for _, h := range target.Heads {
		f, err := Read(h, kind)
		yes, err := With(h, f, err, func(f *Head) (bool, error) { return wanted(f.Shape), nil })
		if err != nil && !errors.Is(err, ErrKind) || yes {
			return h, err
		}
	}
	return registry.Head{}, fmt.Errorf("no %s head is open: open the model with one, or name one with model=FILE", called)
}
