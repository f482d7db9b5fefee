package convert

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tokenizer"
)

// tokenSource says where a GGUF file's tokenizer comes from: the folder that is converted, or, for a head, its target.
type tokenSource struct {
	dir   string
	vocab int                             // rows of the embedding
	fits  func(target model.Config) error // for a drafter's head; nil for a model
}

// add converts the folder's tokenizer, if it has one, or the tokenizer of a head's target.
func (v *tokenSource) add(w *gguf.Writer, target string) (notes []string, err error) {
	dir := v.dir
	switch {
	case target == "":
	case v.fits == nil:
		return nil, fmt.Errorf("%s: this is a model, with a tokenizer of its own: only a drafter's head has a target", dir)
	default:
		c, isDir, err := readTarget(target)
		if err == nil {
			err = v.fits(c)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", target, err)
		}
		if !isDir {
			return nil, copyTokenizer(w, target)
		}
		dir = target
	}
	if lower.TokenizerFile(dir) == "" {
		if v.fits != nil {
			return []string{"without the target's tokenizer (--target FILE) llama.cpp does not load the file"}, nil
		}
		return []string{"the folder has no tokenizer: the GGUF file will have none"}, nil
	}
	tok, err := tokenizer.FromJSON(dir)
	if err != nil {
		return nil, err
	}
	if tok.VocabSize() > v.vocab {
		return nil, fmt.Errorf("%s: the tokenizer has %d tokens, the embedding only %d rows: they are not of one model", dir, tok.VocabSize(), v.vocab)
	}
	set := func(w *gguf.Writer) error {
		notes, err = setTokenizer(w, dir, tok, v.vocab)
		return err
	}
	if err := checkTokens(set, tok); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return notes, set(w)
}

// readTarget reads the configuration of a model of either format.
func readTarget(path string) (c model.Config, isDir bool, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return c, false, err
	}
	if info.IsDir() {
		c, err = model.ReadFolder(path)
		return c, true, err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return c, false, err
	}
	c, err = model.ReadGGUF(f)
	return c, false, errors.Join(err, f.Close())
}

// copyTokenizer copies the tokenizer of a GGUF file.
func copyTokenizer(w *gguf.Writer, path string) error {
	f, err := gguf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return ggufkeys.SetTokenizer(w, f)
}

// checkTokens checks, before the weights are written, that the keys in w describe the tokenizer
// that they were made from.
func checkTokens(set func(*gguf.Writer) error, tok *tokenizer.Tokenizer) error {
	dir, err := os.MkdirTemp("", "grove-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	w := new(gguf.Writer)
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
	kind, _ := gguf.Get[string](f, "tokenizer.ggml.model")
	return sameTokens(tok, made, kind)
}
