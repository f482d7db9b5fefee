package convert

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/reshape"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// ToGGUF converts a Hugging Face folder to a GGUF file. It returns remarks for the user.
func ToGGUF(ctx context.Context, dir, path string, o Options) (notes []string, err error) {
	if err := o.check(false); err != nil {
		return nil, err
	}
	if x, err := openHead(dir); x != nil || err != nil {
		return x.toGGUF(ctx, dir, path, o, err)
	}
	config, f, err := model.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c := &layout{config}
	w := new(gguf.Writer)
	main := o.Type
	if main == Keep {
		if t, ok := f.Tensor(c.plan()[0].Folder + ".weight"); ok {
			main = t.Type
		}
	}
	if notes, err = (&tokenSource{dir: dir, vocab: c.Vocab}).add(w, o.Target); err != nil {
		return nil, err
	}
	if err := c.CheckFiles(); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	written := config
	if slices.ContainsFunc(f.Tensors, func(t safetensors.Info) bool { return c.DropsAhead(t.Name) }) {
		written.Ahead = 0
		notes = append(notes, "the layers that draft (mtp.*) are left out: grove writes none for this architecture, and drafts with the folder's if it can")
	}
	written.SetGGUF(w, c.Arch, modelName(dir), main)
	if err := setCard(w, dir); err != nil {
		return nil, err
	}
	if c.Rope.Yarn != nil && c.Rope.Yarn.Between {
		notes = append(notes, "rope_scaling has truncate false: grove obeys it, and other programs round the bounds of the blend")
	}
	more, err := c.addGGUF(ctx, w, f, o)
	if err == nil {
		err = f.CheckInPlace()
	}
	if err != nil {
		return nil, err
	}
	return append(notes, more...), w.WriteFile(path)
}

// setFactors adds the tensors that represent a scaling of positions in GGUF.
func setFactors(w *gguf.Writer, c *model.Config) error {
	for _, f := range []struct {
		name   string
		values []float32
	}{{"rope_freqs.weight", c.Divisors()}, {"rope_factors_long.weight", c.Rope.Long},
		{"rope_factors_short.weight", c.Rope.Short}} {
		if f.values == nil {
			continue
		}
		t, err := tensor.FromFloat32s(f.name, tensor.F32, []int{len(f.values)}, f.values)
		if err != nil {
			return err
		}
		w.AddTensor(t)
	}
	return nil
}

// dimensions returns the dimensions of a shape that matter: those of more than one element.
func dimensions(shape []int) []int {
	return slices.DeleteFunc(slices.Clone(shape), func(n int) bool { return n < 2 })
}

// addGGUF adds the tensors of a Hugging Face folder.
func (c *layout) addGGUF(ctx context.Context, w *gguf.Writer, f *safetensors.File, o Options) ([]string, error) {
	var said remarks
	drafting := map[string]bool{} // layers after the model's
	for i := range c.Ahead {
		drafting[fmt.Sprintf("blk.%d", c.Layers+i)] = true
	}
	used := map[string]bool{}
	count := &counter{tell: o.Progress}
	add := func(e model.Part, ending string) (bool, error) {
		t, names, err := e.FromFolder(f, ending)
		if names == nil || err != nil {
			return false, err
		}
		name := names[0]
		for _, n := range names {
			used[n] = true
		}
		if e.Decay {
			if t, err = reshape.Mapped(t, func(x float32) float32 { return float32(-math.Exp(float64(x))) }); err != nil {
				return false, err
			}
		}
		if e.Shift != 0 && ending == e.Ending {
			if t, err = reshape.Shifted(t, e.Shift); err != nil {
				return false, err
			}
		}
		if ending == e.Ending {
			if t, err = model.ReorderColumns(t, e.ColsToGGUF); err != nil {
				return false, err
			}
		}
		if e.Name == "output" && c.Tied {
			return true, nil
		}
		want := []int{e.Experts, e.Rows, e.Cols}
		if ending != e.Ending {
			want = want[:2] // a bias
		}
		want = dimensions(want)
		if !slices.Equal(dimensions(t.Shape), want) {
			return false, fmt.Errorf("%s: tensor %s has shape %v: want %v by config.json", f.Path, name, t.Shape, want)
		}
		main := o.Type
		if drafting[layerOf(e.Name)] {
			main = behindType(main)
		}
		typ, reason := encoding(e.Name+ending, t, main, e.Name == "output" || c.Tied && e.Name == "token_embd")
		said.add(e.Name+ending, typ, reason)
		size, err := typ.Size(t.Elements())
		if err != nil {
			return false, fmt.Errorf("%s: tensor %s: %w", f.Path, name, err)
		}
		count.total += int64(size)
		s := &stream{ctx, t, typ, e.ToGGUF, count}
		w.Add(e.Name+ending, typ, t.Shape, s.write)
		return true, nil
	}
	for i, e := range c.plan() {
		ok, err := add(e, e.Ending)
		if err == nil && !ok && e.Name != "output" && !e.Optional {
			err = fmt.Errorf("%s: tensor %s is missing: the folder is incomplete, or not of architecture %s", f.Path, e.InFolder(e.Ending), c.Arch)
		}
		if err == nil && e.Name == "output" && !ok && !c.Tied {
			err = fmt.Errorf("%s: tensor %s.weight is missing, and config.json does not say that the head is the embedding (tie_word_embeddings)", f.Path, e.Folder)
		}
		if err == nil && !e.Bare {
			_, err = add(e, ".bias")
		}
		if err != nil {
			return nil, err
		}
		if i == 0 {
			if err := setFactors(w, &c.Config); err != nil {
				return nil, err
			}
		}
	}
	notes := said.notes()
	if n := len(slices.DeleteFunc(slices.Clone(f.Tensors), func(t safetensors.Info) bool {
		return !model.OfTower(t.Name)
	})); n > 0 {
		notes = append(notes, fmt.Sprintf("%d tensors of vision and audio towers are left out: the file has only the text model", n))
	}
	for _, t := range f.Tensors {
		if !used[t.Name] && !model.Follows(t.Name) && !c.Spare(t.Name) && !c.OfActivation(t.Name) &&
			!c.DropsAhead(t.Name) {
			return nil, fmt.Errorf("%s: tensor %s has no place in a model of architecture %s: this is another kind of model", f.Path, t.Name, c.Arch)
		}
	}
	return notes, nil
}
