package convert

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// The matrices that logits may come from.
const (
	outputMatrix = "output.weight"
	embedding    = "token_embd.weight"
)

// Quantize writes a GGUF file again with its matrices in another encoding. Metadata and tokenizer stay as
// they are. It does not depend on architectures: it takes any GGUF file whose tensors grove can decode.
func Quantize(ctx context.Context, from, to string, o Options) (notes []string, err error) {
	if err := o.check(false); err != nil {
		return nil, err
	}
	f, err := gguf.Open(from)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if same(from, to) {
		return nil, fmt.Errorf("%s: reading and writing the same file: choose another name", to)
	}
	w := new(gguf.Writer)
	ggufkeys.SetAll(w, f)
	if o.Type != Keep {
		ggufkeys.SetFileType(w, o.Type)
	}
	count := &counter{tell: o.Progress}
	lossy := false
	var said remarks
	head := model.IsHead(ggufkeys.Of(f).String("general.architecture", "")) // its logits only rank guesses
	_, untied := f.Tensor(outputMatrix)
	drafting := map[string]bool{} // layers after the model's; some heads consist of one
	for _, info := range f.Tensors {
		if layer, ok := strings.CutSuffix(info.Name, ".nextn.eh_proj.weight"); ok {
			drafting[layer] = true
		}
	}
	for _, info := range f.Tensors {
		t, ok := f.Tensor(info.Name)
		if !ok {
			continue
		}
		want := o.Type
		if drafting[layerOf(t.Name)] || head && len(drafting) > 0 {
			want = behindType(want)
		}
		typ, reason := encoding(t.Name, t, want, !head && (t.Name == outputMatrix || !untied && t.Name == embedding))
		if isVector(t) && !slices.Contains([]tensor.Type{tensor.F16, tensor.BF16}, t.Type) {
			typ = t.Type // tensors other than the model's weights stay as they are
		}
		if typ != t.Type {
			if t, err = f.Load(info.Name); err != nil {
				return nil, err
			}
			lossy = lossy || inBlocks(typ) && inBlocks(t.Type)
		}
		said.add(t.Name, typ, reason)
		size, err := typ.Size(t.Elements())
		if err != nil {
			return nil, fmt.Errorf("%s: tensor %s: %w", from, t.Name, err)
		}
		count.total += int64(size)
		s := &stream{ctx: ctx, t: t, to: typ, count: count}
		w.Add(t.Name, typ, t.Shape, s.write)
	}
	notes = said.notes()
	if lossy {
		notes = append(notes, "the weights were quantized before: quantizing them again loses more than quantizing the original would")
	}
	if err := f.CheckInPlace(); err != nil {
		return nil, err
	}
	return notes, w.WriteFile(to)
}

// behindType returns the type of the layers after a model's, which draft, if the model's is want.
func behindType(want tensor.Type) tensor.Type {
	if inBlocks(want) {
		return tensor.Q8_0 // in 4 bits, a published layer's drafts were accepted a tenth as often
	}
	return want
}

// layerOf returns the layer of a tensor, such as "blk.3", or "" for others.
func layerOf(name string) string {
	parts := strings.SplitN(name, ".", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[0] + "." + parts[1]
}

// inBlocks reports whether the numbers of a type share scales, and so lose most of their bits.
func inBlocks(t tensor.Type) bool {
	n, _ := t.Block()
	return n > 1
}

func same(a, b string) bool {
	x, err1 := os.Stat(a)
	y, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(x, y)
}
