package headfile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/atomicfile"
	"github.com/grovellm/grove/model"
	"github.com/grovellm/grove/safetensors"
	"github.com/grovellm/grove/tensor"
)

// Out is a tensor on its way into a file, under the file's name.
type Out struct {
	tensor.Tensor
	Order func(row int) int // the tensor's row that row i of the file is, or of a vector the element; nil for the same
}

// Outs are tensors that go into a file as they are.
func Outs(weights []tensor.Tensor) []Out {
	list := make([]Out, len(weights))
	for i, w := range weights {
		list[i].Tensor = w
	}
	return list
}

// encode is the tensor as the file has it: matrices as t, vectors as F32; numbers that are no weights stay what they are.
func (o *Out) encode(t tensor.Type) (tensor.Tensor, error) {
	x := o.Tensor
	if len(x.Shape) < 2 {
		t = tensor.F32
	} else if t == tensor.Unknown {
		t = x.Type
	} else if _, err := t.Size(x.Cols()); err != nil {
		t = tensor.F32 // its rows are not whole blocks
	}
	if x.Type != t && x.Type.Decodes() {
		values, err := x.Float32s()
		if err != nil {
			return x, err
		}
		if x, err = tensor.FromFloat32s(x.Name, t, x.Shape, values); err != nil {
			return x, err
		}
	}
	return x.Reordered(o.Order)
}

// WriteGGUF writes a file of a head with layers as c has them, whose keys set sets. vocabulary is an open file of its target, whose
// tokenizer llama.cpp wants in the head's; nil: the file has none, and is the smaller for it. Matrices are encoded as t (F32, F16, BF16 or
// Q8_0; Unknown: each stays as it is), vectors as F32.
func WriteGGUF(path string, c *model.Config, set func(w *gguf.Writer), list []Out, vocabulary *gguf.File, t tensor.Type) error {
	w := gguf.NewWriter()
	if vocabulary != nil {
		if err := w.SetTokenizer(vocabulary); err != nil {
			return err
		}
	}
	set(w)
	if err := SetFactors(w, c); err != nil {
		return err
	}
	for _, o := range list {
		x, err := o.encode(t)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		w.AddTensor(x)
	}
	return w.WriteFile(path)
}

// WriteFolder writes config.json with the fields, and model.safetensors in F32.
func WriteFolder(dir string, fields map[string]any, list []Out) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	w := safetensors.NewWriter()
	w.SetMetadata("format", "pt")
	for _, o := range list {
		typ := o.Type
		if typ.Decodes() {
			typ = tensor.F32
		}
		w.Add(o.Name, typ, o.Shape, func(out io.Writer) error {
			x, err := o.encode(tensor.F32)
			if err == nil {
				x, err = x.ReadAll()
			}
			if err == nil {
				_, err = out.Write(x.Data)
			}
			return err
		})
	}
	if err := w.WriteFile(filepath.Join(dir, "model.safetensors")); err != nil {
		return err
	}
	return atomicfile.WriteJSON(filepath.Join(dir, "config.json"), fields)
}

// Pairs is the order of rows of a rotated projection that brings the two of each rotated pair together, as GGUF files of the llama
// family have them: from (i, i+dim/2) of each head to (2i, 2i+1). Halves is its inverse.
func Pairs(dim int) func(row int) int {
	return func(i int) int { return i/dim*dim + i%dim%2*(dim/2) + i%dim/2 }
}

// Halves is the inverse of Pairs.
func Halves(dim int) func(row int) int {
	return func(i int) int { return i/dim*dim + i%dim%(dim/2)*2 + i%dim/(dim/2) }
}

// SetFactors adds the tensor that Llama 3's scaling of positions is in GGUF, where the model has it.
func SetFactors(w *gguf.Writer, c *model.Config) error {
	if c.Rope.Factors == nil {
		return nil
	}
	t, err := tensor.FromFloat32s("rope_freqs.weight", tensor.F32, []int{len(c.Rope.Factors)}, c.Rope.Factors)
	if err == nil {
		w.AddTensor(t)
	}
	return err
}

// Join is tensor.Join of parts that may be of several types: then in F32.
func Join(name string, parts []tensor.Tensor) (tensor.Tensor, error) {
	for _, p := range parts {
		if p.Type != parts[0].Type {
			wide := make([]tensor.Tensor, len(parts))
			for i, p := range parts {
				values, err := p.Float32s()
				if err == nil {
					wide[i], err = tensor.FromFloat32s(p.Name, tensor.F32, p.Shape, values)
				}
				if err != nil {
					return tensor.Tensor{}, err
				}
			}
			return tensor.Join(name, wide...)
		}
	}
	return tensor.Join(name, parts...)
}
