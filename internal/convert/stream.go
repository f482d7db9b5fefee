package convert

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/recode"
	"github.com/grovellm/grove/internal/files/reshape"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// Keep, as a type, leaves the matrices in their encoding.
const Keep = numtype.Unknown

// Options specify how to write.
type Options struct {
	Type tensor.Type // of the matrices: F32 (the zero value), F16, BF16, (only in GGUF) a type of blocks, or Keep

	// Target is the path of the model that a head drafts for. Its tokenizer goes into the GGUF file of
	// a head, because llama.cpp requires one; its output matrix goes into the folder of an EAGLE head
	// that has none, because other programs require one. It may be empty.
	Target string

	Speculators bool   // write the folder of an EAGLE-3 or DFlash head in the form of vLLM's speculators
	Verifier    string // vLLM's name for the target there; empty: as headfile.Verifier finds it

	Progress func(done, total int64) // bytes of tensor data written; may be nil
}

func (o *Options) check(hf bool) error {
	n, _ := o.Type.Block()
	if o.Type == Keep {
		return nil
	}
	if err := recode.CheckWritable(o.Type); err != nil {
		return fmt.Errorf("type %w", err)
	}
	if hf && n > 1 {
		return fmt.Errorf("type %v has no place in a safetensors file: use F32, F16 or BF16", o.Type)
	}
	return nil
}

// isVector distinguishes norms and biases, which stay exact, from matrices.
func isVector(t tensor.Tensor) bool { return len(t.Shape) < 2 }

// finer maps a K type to llama.cpp's choice of a type of blocks of 32, for rows that are not a multiple of 256.
var finer = map[tensor.Type]tensor.Type{tensor.Q4_K: tensor.Q5_0, tensor.Q5_K: tensor.Q5_1, tensor.Q6_K: tensor.Q8_0}

// encoding chooses the type of a tensor in a GGUF file, and returns the reason if it is not the
// type asked for. A model's output matrix, from which all logits come, is no coarser than Q6_K, as
// in llama.cpp's files; rows that are not whole blocks get the next type that fits. The matrix that
// selects experts is F32, as in those files. name is the tensor's in GGUF files.
func encoding(name string, t tensor.Tensor, want tensor.Type, output bool) (_ tensor.Type, reason string) {
	switch {
	case isVector(t), strings.HasSuffix(name, ".bias"), model.InF32(name):
		return tensor.F32, ""
	case want == Keep:
		return t.Type, ""
	case output && coarse(want):
		want, reason = tensor.Q6_K, "all logits come from it"
	}
	types := []tensor.Type{want}
	if next, ok := finer[want]; ok {
		types = append(types, next)
	}
	types = append(types, tensor.Q8_0, tensor.F16)
	fits := types[slices.IndexFunc(types, func(typ tensor.Type) bool { // F16 takes rows of any length
		_, err := typ.Size(t.Cols())
		return err == nil
	})]
	if fits != want && reason == "" {
		elements, _ := want.Block()
		reason = fmt.Sprintf("rows are not a multiple of %d numbers, the block of %v", elements, want)
	}
	return fits, reason
}

// remarks are notes about tensors, one for all those with the same type and reason.
type remarks struct {
	list []remark
}

type remark struct {
	typ          tensor.Type
	reason, name string // the first tensor's
	count        int
}

// add counts a tensor; if reason is empty there is nothing to note.
func (r *remarks) add(name string, typ tensor.Type, reason string) {
	if reason == "" {
		return
	}
	for i := range r.list {
		if m := &r.list[i]; m.typ == typ && m.reason == reason {
			m.count++
			return
		}
	}
	r.list = append(r.list, remark{typ, reason, name, 1})
}

func (r *remarks) notes() []string {
	var out []string
	for _, m := range r.list {
		what := fmt.Sprintf("tensor %s is", m.name)
		if m.count > 1 {
			what = fmt.Sprintf("%d tensors are", m.count)
		}
		out = append(out, fmt.Sprintf("%s %v: %s", what, m.typ, m.reason))
	}
	return out
}

// coarse reports whether a type has fewer bits than Q6_K.
func coarse(t tensor.Type) bool {
	elements, bytes := t.Block()
	return 210*elements > 256*bytes
}

// stream is one tensor to be written to a file.
type stream struct {
	ctx   context.Context
	t     tensor.Tensor
	to    tensor.Type
	order func(row int) int // the source's row for row i of the file; nil for the same
	count *counter
}

// counter reports progress.
type counter struct {
	done, total int64
	tell        func(done, total int64)
}

func (c *counter) add(n int) {
	c.done += int64(n)
	if c.tell != nil {
		c.tell(c.done, c.total)
	}
}

// streamElements is the number of elements that a worker converts at a time.
const streamElements = 1 << 18

// write converts the tensor in runs of rows, as many at a time as there are processors, and writes them in order.
func (s *stream) write(w io.Writer) error {
	t, err := reshape.Reordered(s.t, s.order)
	if err == nil && isVector(t) { // in pieces too
		if t, err = t.ReadAll(); err == nil {
			t.Shape = []int{t.Cols(), 1}
		}
	}
	if err != nil {
		return err
	}
	rows := t.Rows()
	step := max(1, streamElements/t.Cols())
	type run struct {
		out []byte
		err error
	}
	runs := make([]run, runtime.GOMAXPROCS(0))
	for r0 := 0; r0 < rows; r0 += step * len(runs) {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		var wg sync.WaitGroup
		n := 0
		for i := range runs {
			a, b := r0+i*step, min(r0+(i+1)*step, rows)
			if a >= b {
				break
			}
			n++
			wg.Go(func() { runs[i].out, runs[i].err = encodeRows(runs[i].out[:0], t, s.to, a, b) })
		}
		wg.Wait()
		for _, r := range runs[:n] {
			if r.err != nil {
				return fmt.Errorf("tensor %s: %w", s.t.Name, r.err)
			}
			if _, err := w.Write(r.out); err != nil {
				return err
			}
			s.count.add(len(r.out))
		}
	}
	return nil
}

// encodeRows appends rows a … b−1 of t, encoded as a type.
func encodeRows(dst []byte, t tensor.Tensor, as tensor.Type, a, b int) ([]byte, error) {
	size, err := as.Size(t.Cols())
	if err != nil {
		return nil, err
	}
	dst = slices.Grow(dst, (b-a)*size)[:(b-a)*size]
	if as == t.Type {
		return dst, t.ReadRows(dst, a, b)
	}
	values := make([]float32, (b-a)*t.Cols())
	if err := t.DequantizeRows(values, a, b); err != nil {
		return nil, err
	}
	for r := range b - a {
		if err := tensor.Quantize(as, values[r*t.Cols():(r+1)*t.Cols()], dst[r*size:(r+1)*size]); err != nil {
			return nil, fmt.Errorf("row %d: %w", a+r, err)
		}
	}
	return dst, nil
}

// exact reports whether a vector can be written as typ without loss.
func exact(t tensor.Tensor, typ tensor.Type) bool {
	if t.Type == typ {
		return true
	}
	v, err := t.Float32s()
	if err != nil {
		return false
	}
	size, err := typ.Size(len(v))
	if err != nil {
		return false
	}
	b, back := make([]byte, size), make([]float32, len(v))
	if tensor.Quantize(typ, v, b) != nil || tensor.Dequantize(typ, b, back) != nil {
		return false
	}
	return slices.Equal(v, back)
}
