package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/safetensors"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
)

// ToGGUF converts a Hugging Face folder to a GGUF file. It returns remarks for the user.
func ToGGUF(ctx context.Context, dir, path string, o Options) (notes []string, err error) {
	if err := o.check(false); err != nil {
		return nil, err
	}
	c, err := readFolder(dir)
	if err != nil {
		return nil, err
	}
	f, err := safetensors.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	w := gguf.NewWriter()
	main := o.Type
	if main == Keep {
		if t, ok := f.Tensor(c.plan()[0].hf + ".weight"); ok {
			main = t.Type
		}
	}
	if notes, err = c.addTokenizer(w, dir, o.Target); err != nil {
		return nil, err
	}
	c.setMeta(w, modelName(dir), main) // after the tokenizer, whose mask token is the head's
	more, err := c.addGGUF(ctx, w, f, o)
	if err != nil {
		return nil, err
	}
	return append(notes, more...), w.WriteFile(path)
}

// addTokenizer converts the folder's tokenizer, where it has one, or a head's target's.
func (c *layout) addTokenizer(w *gguf.Writer, dir, target string) (notes []string, err error) {
	switch {
	case target == "":
	case c.head == nil:
		return nil, fmt.Errorf("%s: this is a model, with a tokenizer of its own: only a drafter's head has a target", dir)
	default:
		info, err := os.Stat(target)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, c.copyTokenizer(w, target)
		}
		m, err := model.ReadFolder(target)
		if err == nil {
			err = c.head.Fits(m)
		}
		if err != nil {
			return nil, err
		}
		dir = target
	}
	if _, err := os.Stat(filepath.Join(dir, "tokenizer.json")); errors.Is(err, fs.ErrNotExist) {
		if c.head != nil {
			return []string{"without the target's tokenizer (--target FILE) llama.cpp does not load the file"}, nil
		}
		return []string{"the folder has no tokenizer.json: the GGUF file will have no tokenizer"}, nil
	}
	tok, err := tokenizer.FromJSON(dir)
	if err != nil {
		return nil, err
	}
	if tok.VocabSize() > c.Vocab {
		return nil, fmt.Errorf("%s: the tokenizer has %d tokens, the embedding only %d rows: they are not of one model", dir, tok.VocabSize(), c.Vocab)
	}
	set := func(w *gguf.Writer) error {
		notes, err = setTokenizer(w, dir, tok, c.Vocab)
		return err
	}
	if err := checkTokens(set, tok); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return notes, set(w)
}

// copyTokenizer copies that of a GGUF file, the target of the head.
func (c *layout) copyTokenizer(w *gguf.Writer, target string) error {
	f, err := gguf.Open(target)
	if err != nil {
		return err
	}
	defer f.Close()
	m, err := model.ReadGGUF(f)
	if err == nil {
		err = c.head.Fits(m)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	return w.SetTokenizer(f)
}

// checkTokens makes sure, before the weights are written, that the keys w has are those of the tokenizer they were
// made from.
func checkTokens(set func(*gguf.Writer) error, tok *tokenizer.Tokenizer) error {
	dir, err := os.MkdirTemp("", "grove-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	w := gguf.NewWriter()
	if err := set(w); err != nil {
		return err
	}
	path := filepath.Join(dir, "tokenizer.gguf")
	if err := w.WriteFile(path); err != nil {
		return err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	made, err := tokenizer.FromGGUF(f)
	if err != nil {
		return err
	}
	return sameTokens(tok, made)
}

// addGGUF adds the tensors of a Hugging Face folder.
func (c *layout) addGGUF(ctx context.Context, w *gguf.Writer, f *safetensors.File, o Options) ([]string, error) {
	var notes []string
	used := map[string]bool{}
	count := &counter{tell: o.Progress}
	add := func(e entry, ending string) (bool, error) {
		name := e.hf + ending
		if _, ok := f.Tensor(name); !ok {
			return false, nil
		}
		t, err := f.Load(name)
		if err != nil {
			return false, err
		}
		used[name] = true
		if e.gguf == "output" && c.Tied && c.head == nil {
			return true, nil
		}
		if n := c.rowsOf(e.rows); n != 0 && (len(t.Shape) == 0 || t.Shape[0] != n) {
			return false, fmt.Errorf("%s: tensor %s has shape %v: want %d rows by config.json", f.Path, name, t.Shape, n)
		}
		typ, note := encoding(t, o.Type)
		if note != "" {
			notes = append(notes, note)
		}
		size, err := typ.Size(t.Elements())
		if err != nil {
			return false, fmt.Errorf("%s: tensor %s: %w", f.Path, name, err)
		}
		count.total += int64(size)
		s := &stream{ctx, t, typ, c.toGGUF(e.rows), count}
		w.Add(e.gguf+ending, typ, t.Shape, func(out io.Writer) error {
			defer f.Release(name)
			return s.write(out)
		})
		return true, nil
	}
	for i, e := range c.plan() {
		ok, err := add(e, ".weight")
		if err == nil && !ok && !e.optional {
			err = fmt.Errorf("%s: tensor %s.weight is missing: the folder is incomplete, or not of architecture %s", f.Path, e.hf, c.arch())
		}
		if err == nil && e.gguf == "output" && !ok && !c.Tied && c.head == nil {
			err = fmt.Errorf("%s: tensor %s.weight is missing, and config.json does not say that the head is the embedding (tie_word_embeddings)", f.Path, e.hf)
		}
		if err == nil {
			_, err = add(e, ".bias")
		}
		if err != nil {
			return nil, err
		}
		if i == 0 && c.Rope.Factors != nil {
			factors, err := tensor.FromFloat32s("rope_freqs.weight", tensor.F32, []int{len(c.Rope.Factors)}, c.Rope.Factors)
			if err != nil {
				return nil, err
			}
			w.AddTensor(factors)
		}
	}
	for _, t := range f.Tensors {
		if !used[t.Name] && !ignored(t.Name) {
			return nil, fmt.Errorf("%s: tensor %s has no place in a model of architecture %s: this is another kind of model", f.Path, t.Name, c.arch())
		}
	}
	return notes, nil
}
