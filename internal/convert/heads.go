// Drafters' heads: their own package knows their tensors in either format.

package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/heads"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// head is an open file of a head.
type head struct {
	*headfile.Head
	path string
}

// openHead opens a file of a head; nil for other files, and if there is none.
func openHead(path string) (*head, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, nil
	}
	f, err := heads.Read(registry.Head{Name: path})
	switch {
	case errors.Is(err, headfile.ErrKind):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &head{f, path}, nil
}

// fits fills in from the target what the file leaves out, or returns why the head is not for it.
func (x *head) fits(target model.Config) error { return headfile.For(x.Shape, target) }

// notes returns further remarks about a GGUF file of the head.
func (x *head) notes() []string {
	if s, ok := x.Shape.(interface{ Foreign() string }); ok && s.Foreign() != "" {
		return []string{"grove runs the file, llama.cpp does not: " + s.Foreign()}
	}
	return nil
}

// main returns the type of the head's matrices.
func (x *head) main() tensor.Type {
	main := tensor.F32
	for _, w := range x.Weights {
		switch {
		case w.Name == "fc.weight":
			return w.Type
		case len(w.Shape) > 1:
			main = w.Type
		}
	}
	return main
}

// toGGUF is ToGGUF for a head that was opened with an error or without.
func (x *head) toGGUF(ctx context.Context, dir, path string, o Options, err error) (notes []string, _ error) {
	if err != nil {
		return nil, err
	}
	defer x.Close()
	w := new(gguf.Writer)
	c := x.Shape.Common()
	v := &tokenSource{dir: dir, vocab: c.Vocab, fits: x.fits}
	if notes, err = v.add(w, o.Target); err != nil {
		return nil, err
	}
	main := o.Type
	if main == Keep {
		main = x.main()
	}
	if c.Taps == nil {
		return nil, fmt.Errorf("%s: the folder does not say which layers its head taps: say whose they are (--target FILE)", dir)
	}
	list, err := headfile.GGUF(x.Shape, x.Weights, x.Tokens)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	headfile.SetGGUF(w, x.Shape, modelName(dir), main)
	if err := headfile.SetFactors(w, x.Shape); err != nil {
		return nil, err
	}
	count := &counter{tell: o.Progress}
	var said remarks
	for _, t := range list {
		typ, reason := t.Type, ""
		if typ.Decodes() { // not a list of tokens
			typ, reason = encoding(t.Name, t.Tensor, o.Type, false) // its logits only rank guesses
		}
		said.add(t.Name, typ, reason)
		fill, err := count.stream(ctx, t, typ)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		w.Add(t.Name, typ, t.Shape, fill)
	}
	return slices.Concat(notes, said.notes(), x.notes()), w.WriteFile(path)
}

// stream returns a tensor to be written to a file, whose bytes are counted.
func (c *counter) stream(ctx context.Context, t headfile.Out, typ tensor.Type) (func(io.Writer) error, error) {
	size, err := typ.Size(t.Elements())
	if err != nil {
		return nil, fmt.Errorf("tensor %s: %w", t.Name, err)
	}
	c.total += int64(size)
	return (&stream{ctx, t.Tensor, typ, t.Order, c}).write, nil
}

// toHF is ToHF for a head that was opened with an error or without.
func (x *head) toHF(ctx context.Context, dir string, o Options, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	defer x.Close()
	var notes []string
	lacks := x.Shape.Kind().Missing(x.Weights, o.Speculators)
	weights, target := x.Weights, (*model.Config)(nil)
	if o.Target != "" {
		c, _, err := readTarget(o.Target)
		if err == nil {
			err = x.fits(c)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Target, err)
		}
		target = &c
	}
	if o.Speculators && target == nil {
		return nil, fmt.Errorf("%s: vLLM's speculators name their target: say which (--target FILE)", dir)
	}
	if o.Speculators {
		if target.Name, err = headfile.Verifier(o.Verifier, o.Target); err != nil {
			return nil, err
		}
	}
	for _, name := range lacks {
		if target == nil {
			notes = append(notes, fmt.Sprintf("the head has no %s, which other programs want in a folder: give its target's (--target FILE)", calledEnds[name]))
			continue
		}
		t, close, err := endOf(o.Target, name)
		if err != nil {
			return nil, err
		}
		defer close()
		if name == outputMatrix && x.Tokens != nil {
			if t, err = rowsOf(t, x.Tokens); err != nil {
				return nil, fmt.Errorf("%s: %w", o.Target, err)
			}
		}
		weights = append(weights[:len(weights):len(weights)], t)
	}
	if !o.Speculators {
		target = nil
	}
	main := mainType(x.main(), o.Type)
	fields, list, err := headfile.Folder(x.Shape, weights, x.Tokens, main, target)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return intoFolder(dir, func(part string) ([]string, error) {
		w, count := safetensors.NewWriter(), &counter{tell: o.Progress}
		w.SetMetadata("format", "pt")
		for _, t := range list {
			typ := folderType(t.Tensor, o.Type, main)
			fill, err := count.stream(ctx, t, typ)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", x.path, err)
			}
			w.Add(t.Name, typ, t.Shape, fill)
		}
		return notes, errors.Join(atomicfile.WriteJSON(filepath.Join(part, "config.json"), fields),
			w.WriteFile(filepath.Join(part, x.Shape.Kind().FileName())))
	})
}

// rowsOf returns the rows of some tokens, in their order, in F32.
func rowsOf(t tensor.Tensor, tokens []int32) (tensor.Tensor, error) {
	all, err := t.Float32s()
	if err != nil {
		return t, err
	}
	cols := t.Cols()
	rows := make([]float32, 0, len(tokens)*cols)
	for _, token := range tokens {
		if (int(token)+1)*cols > len(all) {
			return t, fmt.Errorf("tensor %s has %d rows: want that of token %d", t.Name, len(all)/cols, token)
		}
		rows = append(rows, all[int(token)*cols:][:cols]...)
	}
	return tensor.FromFloat32s(t.Name, tensor.F32, []int{len(tokens), cols}, rows)
}

// calledEnds names, for people, the tensors of a target that a head may lack.
var calledEnds = map[string]string{outputMatrix: "output matrix", embedding: "embedding"}

// endOf returns the embedding or the output matrix of a model. A model without an output matrix uses its embedding.
func endOf(path, name string) (_ tensor.Tensor, close func() error, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return tensor.Tensor{}, nil, err
	}
	var f *headfile.File
	names := []string{outputMatrix, embedding}
	if info.IsDir() {
		names = []string{"lm_head.weight", "model.embed_tokens.weight"}
	}
	if name == embedding {
		names = names[1:]
	}
	if f, err = headfile.Open(registry.Head{Name: path}); err != nil {
		return tensor.Tensor{}, nil, err
	}
	for _, called := range names {
		if !f.Has(called) {
			continue
		}
		t, err := f.Load(called)
		t.Name = name
		return t, f.Close, err
	}
	return tensor.Tensor{}, nil, errors.Join(fmt.Errorf("%s: there is no tensor %s: it is not a model that grove runs", path,
		strings.Join(names, " or ")), f.Close())
}
