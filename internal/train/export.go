package train

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/autograd"
	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// exported are the GGUF files of a finished run.
var exported = []struct {
	file string
	kind tensor.Type
}{{"model-f32.gguf", tensor.F32}, {"model-q8_0.gguf", tensor.Q8_0}}

// WriteGGUF writes the network with the vocabulary of an open file as GGUF, under llama.cpp's
// names. Matrices are encoded as t (F32, F16, BF16 or Q8_0), vectors as F32.
func (n *Network) WriteGGUF(path, name string, vocabulary *gguf.File, t tensor.Type) error {
	return writeGGUF(path, name, new(n.Shape.Config()), nil, n.Params, vocabulary, t)
}

// ExportModel is Export for a model of a shape whose layers are params: everything else is as in the target's file.
func (c *Corpus) ExportModel(dir, name, about string, shape *model.Config, params *autograd.Params) error {
	var rest []tensor.Tensor
	for _, t := range c.vocabulary.Tensors {
		if strings.HasPrefix(t.Name, "blk.") {
			continue
		}
		t, err := c.vocabulary.Load(t.Name)
		if err != nil {
			return err
		}
		rest = append(rest, t)
	}
	return c.Export(dir, name, about, func(path string, t tensor.Type) error {
		return writeGGUF(path, name, shape, rest, params, c.vocabulary, t)
	})
}

// writeGGUF writes a model as GGUF: unchanged tensors, and parameters as Network.WriteGGUF does.
func writeGGUF(path, name string, c *model.Config, rest []tensor.Tensor, params *autograd.Params,
	vocabulary *gguf.File, t tensor.Type) error {
	w := new(gguf.Writer)
	c.SetGGUF(w, c.Arch, name, t)
	if err := ggufkeys.SetTokenizer(w, vocabulary); err != nil {
		return err
	}
	for _, x := range rest {
		w.AddTensor(x)
	}
	weights, err := Encode(params, t)
	if err != nil {
		return err
	}
	for _, x := range weights {
		w.AddTensor(x)
	}
	return w.WriteFile(path)
}

// Encode returns parameters as stored in files: matrices in a type, but vectors and matrices whose
// rows are not whole blocks in F32.
func Encode(params *autograd.Params, t tensor.Type) (weights []tensor.Tensor, err error) {
	for _, p := range params.All() {
		kind := t
		if _, err := t.Size(p.Cols); p.Vector || err != nil {
			kind = tensor.F32
		}
		x, err := tensor.FromFloat32s(p.Name, kind, p.Shape(), p.Data)
		if err != nil {
			return nil, err
		}
		weights = append(weights, x)
	}
	return weights, nil
}

// WriteFolder writes the network as a Hugging Face folder: config.json and model.safetensors, in
// f32.
func (n *Network) WriteFolder(dir string, eos int32) error {
	c := n.Shape.Config()
	config, err := c.Fields(tensor.F32)
	if err != nil {
		return err
	}
	config["eos_token_id"] = eos
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	w := safetensors.NewWriter()
	w.SetMetadata("format", "pt")
	for _, p := range n.Params.All() {
		w.Add(hfName(p.Name), tensor.F32, p.Shape(), func(out io.Writer) error { return WriteFloats(out, p.Data) })
	}
	if err := w.WriteFile(filepath.Join(dir, "model.safetensors")); err != nil {
		return err
	}
	return atomicfile.WriteJSON(filepath.Join(dir, "config.json"), config)
}

// Load copies the tensors of a Hugging Face folder, or of a checkpoint, into the network.
func (n *Network) Load(path string) error {
	f, named, err := openWeights(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, p := range n.Params.All() {
		w, ok := f.Tensor(named(p.Name))
		if !ok {
			return fmt.Errorf("%s: no tensor %s: want a model of this shape", path, named(p.Name))
		}
		if w.Elements() != len(p.Data) || w.Cols() != p.Cols {
			return fmt.Errorf("%s: tensor %s has shape %v, this model's has %v", path, w.Name, w.Shape, p.Shape())
		}
		v, err := w.Float32s()
		if err != nil {
			return err
		}
		copy(p.Data, v)
	}
	n.Pack()
	return nil
}

// openWeights opens a folder or a checkpoint; named returns its name for a parameter.
func openWeights(path string) (f *safetensors.File, named func(string) string, err error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		f, err := safetensors.OpenFolder(path)
		return f, hfName, err
	}
	f, err = safetensors.Open(path)
	return f, func(name string) string { return "w." + name }, err
}
