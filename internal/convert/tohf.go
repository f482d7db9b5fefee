package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/files/reshape"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
)

// ToHF converts a GGUF file to a Hugging Face folder, which must not exist, or be empty.
func ToHF(ctx context.Context, path, dir string, o Options) (notes []string, err error) {
	if err := o.check(true); err != nil {
		return nil, err
	}
	if base := filepath.Base(dir); base == "." || base == ".." {
		return nil, fmt.Errorf("%s: name the folder itself: convert creates it, completely or not at all", dir)
	}
	if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
		return nil, fmt.Errorf("%s: exists and is not empty: choose another folder", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if x, err := openHead(path); x != nil || err != nil {
		return x.toHF(ctx, dir, o, err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	config, err := model.ReadGGUF(f)
	c := &layout{config}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case o.Speculators:
		return nil, fmt.Errorf("%s: a model has no folder of vLLM's speculators, as some heads have", path)
	case o.Target != "":
		return nil, fmt.Errorf("%s: nothing of a target goes into this folder: no target is read for it", dir)
	}
	return intoFolder(dir, func(part string) ([]string, error) { return c.writeHF(ctx, f, part, o) })
}

// intoFolder makes a folder that write has filled, whole or not at all.
func intoFolder(dir string, write func(part string) ([]string, error)) (notes []string, err error) {
	dir = filepath.Clean(dir)
	part, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".part-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(part) // after the rename there is nothing to remove
	if err := os.Chmod(part, 0o755); err != nil {
		return nil, err
	}
	if notes, err = write(part); err != nil {
		return nil, err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return notes, atomicfile.Rename(part, dir)
}

func (c *layout) writeHF(ctx context.Context, f *gguf.File, dir string, o Options) ([]string, error) {
	var notes []string
	w := safetensors.NewWriter()
	w.SetMetadata("format", "pt")
	main, more, err := c.addHF(ctx, w, f, o)
	if err != nil {
		return nil, err
	}
	var special map[string]int32
	var tok *tokenizer.Tokenizer
	if _, ok := gguf.Get[string](f, "tokenizer.ggml.model"); ok {
		if tok, err = tokenizer.FromGGUF(f); err != nil {
			return nil, err
		}
		tokens, settings, err := tokenizerFiles(f, tok)
		if err != nil {
			return nil, err
		}
		special = specialIDs(tok)
		err = errors.Join(atomicfile.WriteJSON(filepath.Join(dir, "tokenizer.json"), tokens),
			atomicfile.WriteJSON(filepath.Join(dir, "tokenizer_config.json"), settings))
		ends, suppressed := declaredEnds(f, tok), lower.SpecialsOf(tok).Suppressed
		if (len(ends) > 1 || suppressed != nil) && err == nil {
			err = atomicfile.WriteJSON(filepath.Join(dir, "generation_config.json"),
				fields{"eos_token_id": ends, "suppress_tokens": suppressed})
		}
		if err != nil {
			return nil, err
		}
	} else {
		notes = append(notes, "the file has no tokenizer: the folder will have none")
	}
	settings, err := c.Fields(main)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	for name, id := range special {
		settings[name] = id
	}
	maps.Copy(settings, more)
	if err := atomicfile.WriteJSON(filepath.Join(dir, "config.json"), settings); err != nil {
		return nil, err
	}
	if err := errors.Join(c.writePooling(dir), writeCard(f, dir)); err != nil {
		return nil, err
	}
	if tok != nil {
		made, err := tokenizer.FromJSON(dir)
		if err == nil {
			kind, _ := gguf.Get[string](f, "tokenizer.ggml.model")
			err = sameTokens(tok, made, kind)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := f.CheckInPlace(); err != nil {
		return nil, err
	}
	return notes, w.WriteFile(filepath.Join(dir, "model.safetensors"))
}

// writePooling writes the files of sentence-transformers for a model whose embedding is the last token's state.
func (c *layout) writePooling(dir string) error {
	if !c.PoolLast {
		return nil
	}
	path := filepath.Join(dir, filepath.FromSlash(model.PoolingFile))
	return errors.Join(os.Mkdir(filepath.Dir(path), 0o755),
		atomicfile.WriteJSON(path, fields{"word_embedding_dimension": c.Hidden, "pooling_mode_lasttoken": true}),
		atomicfile.WriteJSON(filepath.Join(dir, "modules.json"), []fields{
			{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
			{"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
			{"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
		}))
}

// folderType chooses the type of a tensor in a folder whose matrices are mostly of type main,
// without loss if want is Keep.
func folderType(t tensor.Tensor, want, main tensor.Type) tensor.Type {
	switch {
	case !t.Type.Decodes(): // a list of tokens
		return t.Type
	case isVector(t) && !exact(t, main):
		return tensor.F32
	case want == Keep && !isVector(t) && t.Type != main && t.Type != tensor.F16 && t.Type != tensor.BF16:
		return tensor.F32
	case want == Keep && !isVector(t):
		return t.Type
	}
	return main
}

// mainType returns the type for most of a folder's matrices, given that of one in a file.
func mainType(first, want tensor.Type) tensor.Type {
	switch {
	case want != Keep:
		return want
	case first != tensor.F16 && first != tensor.BF16:
		return tensor.F32 // it holds every other type without loss
	}
	return first
}

// addHF adds the tensors of a GGUF file. It returns the type of the matrices, and the fields of
// config.json that specify the biases and the encoding.
func (c *layout) addHF(ctx context.Context, w *safetensors.Writer, f *gguf.File, o Options) (main tensor.Type,
	fields map[string]any, err error) {
	fields = map[string]any{}
	count := &counter{tell: o.Progress}
	used := map[string]bool{"rope_freqs.weight": true, "rope_factors_long.weight": true, "rope_factors_short.weight": true}
	main = o.Type
	if main == Keep {
		first, err := f.Load(c.plan()[0].Name + ".weight")
		if err != nil {
			return 0, nil, err
		}
		main = mainType(first.Type, Keep)
	}
	add := func(e model.Part, ending string, optional bool) error {
		name := e.Name + ending
		if _, ok := f.Tensor(name); !ok && optional {
			return nil
		}
		t, err := f.Load(name)
		if err != nil {
			return err
		}
		used[name] = true
		if e.Decay {
			if t, err = reshape.Mapped(t, func(x float32) float32 { return float32(math.Log(-float64(x))) }); err != nil {
				return err
			}
		}
		if e.Shift != 0 && ending == e.Ending {
			if t, err = reshape.Shifted(t, -e.Shift); err != nil {
				return err
			}
		}
		if ending == e.Ending {
			if t, err = model.ReorderColumns(t, e.ColsToFolder); err != nil {
				return err
			}
		}
		if ending == ".bias" && e.Ending != ending { // not a part that is itself a bias
			field, ok := model.BiasField(c.Arch, e.Name)
			if !ok {
				return fmt.Errorf("%s: tensor %s: config.json cannot express this bias in a model of architecture %s",
					f.Path, name, c.Arch)
			}
			if field != "" {
				fields[field] = true
			}
		}
		if n := e.Rows; e.ToGGUF != nil && (len(t.Shape) == 0 || t.Shape[0] != n) {
			return fmt.Errorf("%s: tensor %s has shape %v: want %d rows by the metadata", f.Path, name, t.Shape, n)
		}
		write := func(t tensor.Tensor, write func(s *stream, w io.Writer) error) error {
			typ := folderType(t, o.Type, main)
			if ending == ".bias" && !exact(t, typ) { // of experts
				typ = tensor.F32
			}
			size, err := typ.Size(t.Elements())
			if err != nil {
				return fmt.Errorf("%s: tensor %s: %w", f.Path, name, err)
			}
			count.total += int64(size)
			s := &stream{ctx, t, typ, e.ToFolder, count}
			w.Add(t.Name, typ, t.Shape, func(w io.Writer) error { return write(s, w) })
			return nil
		}
		turned := e.Turned && ending == ".weight"
		if e.Experts == 0 && e.Half == 0 && !turned && (!e.Param || e.Bare) {
			t.Name = e.InFolder(ending)
			if e.Conv && ending == ".weight" && len(t.Shape) == 2 {
				t.Shape = []int{t.Shape[0], 1, t.Shape[1]}
			}
			if e.Dims != nil && ending == e.Ending && slices.Equal(dimensions(t.Shape), dimensions(e.Dims)) {
				t.Shape = e.Dims
			}
			if e.Row && len(t.Shape) == 1 {
				t.Shape = []int{1, t.Shape[0]}
			}
			if e.Flat {
				if t, err = t.ReadAll(); err != nil {
					return err
				}
				t.Shape = []int{t.Elements()}
			}
			return write(t, (*stream).write)
		}
		others, err := c.others(e, ending, f, used)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		if turned || e.Param && e.Experts > 0 && ending == ".weight" && (t.Type != tensor.MXFP4 || o.Type != Keep || e.Sides) {
			x, err := newTransposed(e, t, others)
			if err != nil {
				return fmt.Errorf("%s: %w", f.Path, err)
			}
			return write(x.Tensor, x.write)
		}
		list, err := e.IntoFolder(ending, t, others)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		if e.Param && t.Type == tensor.MXFP4 {
			fields["quantization_config"] = map[string]any{"quant_method": "mxfp4", "modules_to_not_convert": []string{
				"model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"}}
		}
		for _, t := range list {
			if err := write(t, (*stream).write); err != nil {
				return err
			}
		}
		return nil
	}
	for _, e := range c.plan() {
		if used[e.Weight()] { // already used with another part
			continue
		}
		err := add(e, e.Ending, e.Name == "output" || e.Optional)
		if !e.Bare {
			err = errors.Join(err, add(e, ".bias", true))
		}
		if err != nil {
			return 0, nil, err
		}
	}
	numbers, err := c.Activations()
	if err != nil {
		return 0, nil, err
	}
	for _, t := range numbers {
		w.AddTensor(t)
	}
	for _, t := range f.Tensors {
		if !used[t.Name] && !c.Spare(t.Name) && !c.DropsAhead(t.Name) {
			return 0, nil, fmt.Errorf("%s: tensor %s has no place in a model of architecture %s: this is another kind of model", f.Path, t.Name, c.Arch)
		}
	}
	return main, fields, nil
}

// others returns the tensors that share the folder's tensor with a part, in order.
func (c *layout) others(e model.Part, ending string, f *gguf.File, used map[string]bool) ([]tensor.Tensor, error) {
	if e.Half == 0 {
		return nil, nil
	}
	var list []tensor.Tensor
	for _, p := range c.plan() {
		if p.Folder == e.Folder && p.Half != e.Half {
			used[p.Name+ending] = true
			t, err := f.Load(p.Name + ending)
			if err != nil {
				return nil, err
			}
			list = append(list, t)
		}
	}
	if list == nil {
		return nil, fmt.Errorf("tensor %s has no other half", e.Name)
	}
	return list, nil
}
