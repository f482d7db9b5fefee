package headfile

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/reshape"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// Out is a tensor to be written to a file, under the file's name for it.
type Out struct {
	tensor.Tensor
	Order func(row int) int // the tensor's row, or the vector's element, that row i of the file is; nil: the same
}

// encode returns the tensor as the file stores it: matrices as t, vectors as F32. Tensors that are
// not weights stay as they are.
func (o *Out) encode(t tensor.Type) (tensor.Tensor, error) {
	x := o.Tensor
	if len(x.Shape) < 2 {
		t = tensor.F32
	} else if t == numtype.Unknown {
		t = x.Type
	} else if _, err := t.Size(x.Cols()); err != nil {
		t = tensor.F32 // its rows are not a whole number of blocks
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
	return reshape.Reordered(x, o.Order)
}

// GGUF returns the tensors of a GGUF file with the weights, which have GGUF names and rows in the order
// that Rope.Neighbours says. tokens are those of a draft vocabulary; nil: of the whole vocabulary.
func GGUF(s Shape, weights []tensor.Tensor, tokens []int32) ([]Out, error) {
	if err := Check(s, weights, tokens, nil); err != nil {
		return nil, err
	}
	if arch := s.Common().Arch; model.Alike(arch) {
		return nil, fmt.Errorf("a GGUF file of a head alone has layers of Llama's or Qwen 3's kinds, and this head has one of a %s model: use its folder as it is", arch)
	}
	order, err := rowOrder(s, s.Common().Rope.Neighbours, s.Kind().Pairs)
	if err != nil {
		return nil, err
	}
	var list []Out
	if tokens != nil {
		list = []Out{{Tensor: numbers(tokens, 0)}}
	}
	for _, w := range weights {
		list = append(list, Out{Tensor: w, Order: order(w.Name)})
	}
	return list, nil
}

// WriteGGUF writes a head with the weights. The arguments are GGUF's. vocabulary is an open file of
// its target, whose tokenizer llama.cpp needs in the head's file; nil: the file has none, and is
// smaller. Matrices are encoded as t (F32, F16, BF16 or Q8_0; Unknown: each stays as it is),
// vectors as F32.
func WriteGGUF(path, name string, s Shape, weights []tensor.Tensor, tokens []int32, vocabulary *gguf.File,
	t tensor.Type) error {
	list, err := GGUF(s, weights, tokens)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	w := new(gguf.Writer)
	if vocabulary != nil {
		if err := ggufkeys.SetTokenizer(w, vocabulary); err != nil {
			return err
		}
	}
	SetGGUF(w, s, name, t)
	if err := SetFactors(w, s); err != nil {
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

// Folder returns config.json and the tensors of a folder whose matrices are to be of type typ. If
// target is nil, the folder has the layout of the kind's authors, otherwise that of vLLM's
// speculators for that target. The other arguments are GGUF's.
func Folder(s Shape, weights []tensor.Tensor, tokens []int32, typ tensor.Type,
	target *model.Config) (fields map[string]any, list []Out, err error) {
	if _, speculators := s.Folders(); target != nil && !speculators {
		return nil, nil, fmt.Errorf("vLLM's speculators have no %s of this shape", s.Kind().Name)
	}
	if x, ok := s.(Completer); ok {
		if weights, err = x.Complete(weights); err != nil {
			return nil, nil, err
		}
	}
	if err := Check(s, weights, tokens, nil); err != nil {
		return nil, nil, err
	}
	c := s.Common()
	fields = map[string]any{}
	if !s.Kind().Bare {
		layers := c.Config
		layers.Tied = false
		if fields, err = layers.Fields(typ); err != nil {
			return nil, nil, err
		}
	}
	fields, layout, err := s.FolderFields(fields, typ, weights, target)
	if err != nil {
		return nil, nil, err
	}
	if c.TargetLayers > 0 {
		fields["num_target_layers"] = c.TargetLayers
	}
	if list, err = folderTensors(s, weights, layout); err != nil {
		return nil, nil, err
	}
	return fields, append(list, FolderTokens(tokens, c.Vocab)...), nil
}

// Speculator returns config.json of one of vLLM's speculators for a target: its type and class
// there, the number of tokens that it drafts, and the fields of the head's layers.
func Speculator(kind, class string, tokens int, layers map[string]any, typ tensor.Type,
	target *model.Config) (map[string]any, error) {
	verifier, err := target.Fields(typ)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"architectures": []string{class}, "speculators_model_type": kind, "speculators_version": "0.3.0",
		"torch_dtype": layers["torch_dtype"], "tie_word_embeddings": false, "transformer_layer_config": layers,
		"speculators_config": map[string]any{
			"algorithm": kind, "default_proposal_method": "greedy",
			"proposal_methods": []any{map[string]any{"proposal_type": "greedy", "speculative_tokens": tokens,
				"verifier_accept_k": 1, "accept_tolerance": 0.0}},
			"verifier": map[string]any{"name_or_path": target.Name, "architectures": verifier["architectures"]},
		},
	}, nil
}

// folderTensors returns the weights in their places. Parts of one tensor are joined in the order of their columns.
func folderTensors(s Shape, weights []tensor.Tensor, layout string) ([]Out, error) {
	order, err := rowOrder(s, s.Common().Rope.Neighbours, false)
	if err != nil {
		return nil, err
	}
	type part struct {
		Place
		tensor.Tensor
	}
	parts := map[string][]part{}
	var names []string
	for _, w := range weights {
		p := s.Place(w.Name, layout)
		if parts[p.Name] == nil {
			names = append(names, p.Name)
		}
		parts[p.Name] = append(parts[p.Name], part{p, w})
	}
	var list []Out
	for _, name := range names {
		of := parts[name]
		slices.SortFunc(of, func(a, b part) int { return a.From - b.From })
		o := Out{Tensor: of[0].Tensor, Order: order(of[0].Tensor.Name)}
		if of[0].To > 0 {
			var columns []tensor.Tensor
			for _, p := range of {
				columns = append(columns, p.Tensor)
			}
			if o.Tensor, err = Join(name, columns); err != nil {
				return nil, err
			}
		}
		o.Name = name
		o.Shape = append(slices.Repeat([]int{1}, of[0].Ones), o.Shape...)
		if of[0].Dims != nil {
			o.Shape = of[0].Dims
		}
		list = append(list, o)
	}
	return list, nil
}

// WriteFolder writes a head with the weights as a folder that its authors' code reads: config.json,
// and model.safetensors in F32. The arguments are GGUF's.
func WriteFolder(dir string, s Shape, weights []tensor.Tensor, tokens []int32) error {
	return writeFolder(dir, s, weights, tokens, nil)
}

// WriteSpeculators is WriteFolder for vLLM, which needs the target's name and architecture.
func WriteSpeculators(dir string, s Shape, weights []tensor.Tensor, tokens []int32, target model.Config) error {
	return writeFolder(dir, s, weights, tokens, &target)
}

func writeFolder(dir string, s Shape, weights []tensor.Tensor, tokens []int32, target *model.Config) error {
	if s.Kind().Output && !HasOutput(weights) {
		return fmt.Errorf("%s: tensor output.weight is missing: other engines read it from a folder as lm_head.weight, so add the target's", dir)
	}
	fields, list, err := Folder(s, weights, tokens, tensor.F32, target)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return writeOuts(dir, s.Kind().FileName(), fields, list)
}

// Missing lists the tensors that other programs need in a folder of such a head but the weights
// lack: its target's output matrix, its embedding. speculators: the folder is to be one of vLLM's.
func (k *Kind) Missing(weights []tensor.Tensor, speculators bool) (names []string) {
	has := func(name string) bool {
		return slices.ContainsFunc(weights, func(t tensor.Tensor) bool { return t.Name == name })
	}
	if k.Output && !has("output.weight") {
		names = append(names, "output.weight")
	}
	if (k.Embedding || speculators && k.SpeculatorsEmbedding) && !has("token_embd.weight") {
		names = append(names, "token_embd.weight")
	}
	return names
}

// FileName returns the name of the weights in a folder that is written.
func (k *Kind) FileName() string { return cmp.Or(k.File, "model") + ".safetensors" }

// HasOutput reports whether weights include an output matrix.
func HasOutput(weights []tensor.Tensor) bool {
	return slices.ContainsFunc(weights, func(t tensor.Tensor) bool { return t.Name == "output.weight" })
}

// writeOuts writes config.json with the fields, and the weights in F32 to a file with the name.
func writeOuts(dir, file string, fields map[string]any, list []Out) error {
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
	if err := w.WriteFile(filepath.Join(dir, file)); err != nil {
		return err
	}
	return atomicfile.WriteJSON(filepath.Join(dir, "config.json"), fields)
}

// FromGGUF brings a tensor from a GGUF file of the shape's kind into the order that Rope.Neighbours says.
func FromGGUF(s Shape, t tensor.Tensor) (tensor.Tensor, error) {
	order, err := rowOrder(s, s.Kind().Pairs, s.Common().Rope.Neighbours)
	if err != nil {
		return t, err
	}
	return reshape.Reordered(t, order(t.Name))
}

// rowOrder returns how rows in one order map to those in another: llama layers store queries and
// keys in neighbouring pairs or in halves.
func rowOrder(s Shape, from, pairs bool) (func(name string) func(int) int, error) {
	c := s.Common()
	if c.Arch != "llama" || from == pairs {
		return func(string) func(int) int { return nil }, nil
	}
	if c.Rope.Dims != c.HeadDim {
		return nil, fmt.Errorf("only %d of the %d dimensions of an attention head are rotated: cannot reorder their rows", c.Rope.Dims, c.HeadDim)
	}
	to := model.Halves(c.HeadDim)
	if pairs {
		to = model.Pairs(c.HeadDim)
	}
	return func(name string) func(int) int {
		if strings.Contains(name, ".attn_q.") || strings.Contains(name, ".attn_k.") {
			return to
		}
		return nil
	}, nil
}

// SetFactors adds the tensor that holds Llama 3's scaling of positions in GGUF, if the head has it.
func SetFactors(w *gguf.Writer, s Shape) error {
	factors := s.Common().Rope.Factors
	if factors == nil {
		return nil
	}
	t, err := tensor.FromFloat32s("rope_freqs.weight", tensor.F32, []int{len(factors)}, factors)
	if err == nil {
		w.AddTensor(t)
	}
	return err
}

// Join is tensor.Join of parts that may differ in type: then the result is F32.
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
			return reshape.Join(name, wide...)
		}
	}
	return reshape.Join(name, parts...)
}
