package model

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/tensor"
)

// Some tensors of gpt-oss are parameters that belong to no module in transformers. Their names lack
// .weight, and a bias is called NAME_bias. Experts' matrices are transposed there: inputs ×
// outputs. Or they are MXFP4, as NAME_blocks (experts, outputs, blocks, 16 bytes) and NAME_scales
// (experts, outputs, blocks). A byte of such a block has two neighbours, the first in its low bits;
// a byte of GGUF's has elements i and i + 16. Gate and up share a tensor: their rows alternate.

// mxfp4Blocks and mxfp4Scales are the endings of the two tensors that make up a matrix in MXFP4.
const (
	mxfp4Blocks = "_blocks"
	mxfp4Scales = "_scales"
)

// folderEnding returns the ending in folders of a tensor that ends in .weight or .bias in GGUF files.
func folderEnding(param bool, ending string) string {
	switch {
	case !param:
		return ending
	case ending == ".bias":
		return "_bias"
	}
	return ""
}

// InFolder returns the folder's name of the part, given an ending of GGUF's.
func (p *Part) InFolder(ending string) string { return p.Folder + p.inFolder(ending) }

func (p *Part) inFolder(ending string) string {
	if p.Bare {
		return ""
	}
	return folderEnding(p.Param, cmp.Or(ending, ".weight"))
}

// halves returns how many parts share the folder's tensor.
func (p *Part) halves() int { return 1 + min(p.Half, 1) }

// fromParam is FromFolder for a parameter.
func (p *Part) fromParam(f *safetensors.File, ending string) (t tensor.Tensor, names []string, err error) {
	name := p.InFolder(ending)
	_, ok := f.Tensor(name)
	switch {
	case !ok && p.Experts > 0 && ending == ".weight" && !p.Sides:
		t, names, err = p.fromMXFP4(f, name)
		return t, names, err
	case !ok:
		return t, nil, nil
	}
	if t, err = f.Load(name); err != nil || p.Experts == 0 {
		return t, []string{name}, err
	}
	rows := p.Rows * p.halves()
	if ending == ".bias" {
		if err := wantShape(t, p.Experts, rows); err != nil {
			return t, nil, err
		}
		if t, err = t.ReadAll(); err != nil {
			return t, nil, err
		}
		t.Shape = []int{p.Experts, rows, 1} // one row per element
		t, err = p.alternate(t).ReadAll()
		t.Shape = t.Shape[:2]
		return t, []string{name}, err
	}
	if p.Sides && rows != p.Cols && slices.Equal(t.Shape, []int{p.Experts, rows, p.Cols}) {
		if p.Half > 0 { // as transformers 5 writes Qwen3-VL
			t, err = p.half(t)
		}
		return t, []string{name}, err
	}
	if err := wantShape(t, p.Experts, p.Cols, rows); err != nil {
		return t, nil, err
	}
	t, err = p.transposed(f, name)
	return t, []string{name}, err
}

// wantShape returns an error if a folder's tensor has another shape.
func wantShape(t tensor.Tensor, shape ...int) error {
	if !slices.Equal(t.Shape, shape) {
		return fmt.Errorf("tensor %s has shape %v: want %v for this model", fileerr.Quote(t.Name), t.Shape, shape)
	}
	return nil
}

// alternate returns t without the rows of the other half.
func (p *Part) alternate(t tensor.Tensor) tensor.Tensor {
	if p.Half == 0 {
		return t
	}
	x := tensor.Tensor{Name: t.Name, Type: t.Type, Shape: slices.Clone(t.Shape)}
	x.Shape[1] = p.Rows
	size := x.RowBytes()
	x.Reader = func(dst []byte, r0, r1 int) error {
		both := make([]byte, 2*len(dst))
		if err := t.ReadRows(both, 2*r0, 2*r1); err != nil {
			return err
		}
		for i := range r1 - r0 {
			copy(dst[i*size:(i+1)*size], both[(2*i+p.Half-1)*size:])
		}
		return nil
	}
	return x
}

// transposed returns the matrices of a folder's tensor, whose rows are inputs.
func (p *Part) transposed(f *safetensors.File, name string) (tensor.Tensor, error) {
	t, err := f.LoadElements(name)
	if err != nil {
		return t, err
	}
	x := tensor.Tensor{Name: name, Type: t.Type, Shape: []int{p.Experts, p.Rows, p.Cols}}
	if p.Experts == 0 {
		x.Shape = x.Shape[1:]
	}
	size := t.RowBytes()
	row := x.RowBytes()
	step, half := p.halves(), max(p.Half-1, 0)
	skip := 0
	all := p.Rows * step // outputs
	if p.Sides {
		skip = half * p.Rows
		step, half = 1, 0
	}
	x.Reader = func(dst []byte, r0, r1 int) error {
		for r0 < r1 {
			expert, at := r0/p.Rows, r0%p.Rows
			n := min(p.Rows-at, r1-r0)
			outputs := make([]byte, n*step*size)
			for i := range p.Cols {
				from := (expert*p.Cols+i)*all + skip + at*step
				if err := t.ReadRows(outputs, from, from+n*step); err != nil {
					return err
				}
				for k := range n {
					copy(dst[k*row+i*size:][:size], outputs[(k*step+half)*size:])
				}
			}
			dst, r0 = dst[n*row:], r0+n
		}
		return nil
	}
	return x, x.Check()
}

// fromMXFP4 returns the matrices whose blocks and scales are a folder's tensors. names is empty if
// the folder has neither.
func (p *Part) fromMXFP4(f *safetensors.File, name string) (t tensor.Tensor, names []string, err error) {
	blocks, ok1 := f.Tensor(name + mxfp4Blocks)
	scales, ok2 := f.Tensor(name + mxfp4Scales)
	switch {
	case !ok1 && !ok2:
		return t, nil, nil
	case !ok1:
		return t, nil, fmt.Errorf("tensor %s is missing: the folder is incomplete", name+mxfp4Blocks)
	case !ok2:
		return t, nil, fmt.Errorf("tensor %s is missing: the folder is incomplete", name+mxfp4Scales)
	}
	elements, size := tensor.MXFP4.Block()
	rows, n := p.Rows*p.halves(), p.Cols/elements
	for _, x := range []tensor.Tensor{blocks, scales} {
		if x.Type != numtype.U8 {
			return t, nil, fmt.Errorf("tensor %s is %v: want U8, bytes of MXFP4", fileerr.Quote(x.Name), x.Type)
		}
	}
	if p.Cols%elements != 0 {
		return t, nil, fmt.Errorf("tensor %s: rows of %d are not whole blocks of MXFP4, which hold %d",
			fileerr.Quote(blocks.Name), p.Cols, elements)
	}
	if err := wantShape(blocks, p.Experts, rows, n, elements/2); err != nil {
		return t, nil, err
	}
	if err := wantShape(scales, p.Experts, rows, n); err != nil {
		return t, nil, err
	}
	t = tensor.Tensor{Name: blocks.Name, Type: tensor.MXFP4, Shape: []int{p.Experts, rows, p.Cols}}
	t.Reader = func(dst []byte, r0, r1 int) error {
		pairs, exponents := make([]byte, (r1-r0)*n*elements/2), make([]byte, (r1-r0)*n)
		if err := blocks.ReadRows(pairs, r0*n, r1*n); err != nil {
			return err
		}
		if err := scales.ReadRows(exponents, r0, r1); err != nil {
			return err
		}
		for i, e := range exponents {
			dst[i*size] = e
			fromPairs(dst[i*size+1:(i+1)*size], pairs[i*elements/2:])
		}
		return nil
	}
	return p.alternate(t), []string{blocks.Name, scales.Name}, t.Check()
}

// fromPairs converts 16 bytes of two neighbours each to 16 bytes of elements i and i + 16.
func fromPairs(dst, pairs []byte) {
	for i := range 8 {
		a, b := pairs[i], pairs[8+i]
		dst[2*i], dst[2*i+1] = a&15|b<<4, a>>4|b&0xf0
	}
}

// intoPairs is the inverse of fromPairs.
func intoPairs(dst, block []byte) {
	for i := range 8 {
		a, b := block[2*i], block[2*i+1]
		dst[i], dst[8+i] = a&15|b<<4, a>>4|b&0xf0
	}
}

// intoParam is IntoFolder for a parameter, except for experts' matrices that are not MXFP4, whose
// transposes the caller writes.
func (p *Part) intoParam(ending string, halves []tensor.Tensor) ([]tensor.Tensor, error) {
	t, name := halves[0], p.InFolder(ending)
	if p.Experts == 0 {
		t.Name = name
		return []tensor.Tensor{t}, nil
	}
	rows := p.Rows * len(halves)
	if ending == ".bias" {
		for i := range halves {
			halves[i].Shape = []int{p.Experts, p.Rows, 1} // one row per element
		}
		x, err := takeTurns(name, halves).ReadAll()
		x.Shape = []int{p.Experts, rows}
		return []tensor.Tensor{x}, err
	}
	if t.Type != tensor.MXFP4 {
		return nil, fmt.Errorf("tensor %s is %v: want MXFP4", fileerr.Quote(t.Name), t.Type)
	}
	all := takeTurns(name, halves)
	elements, size := t.Type.Block()
	n := p.Cols / elements
	blocks := tensor.Tensor{Name: name + mxfp4Blocks, Type: numtype.U8, Shape: []int{p.Experts, rows, n, elements / 2}}
	scales := tensor.Tensor{Name: name + mxfp4Scales, Type: numtype.U8, Shape: []int{p.Experts, rows, n}}
	read := func(r0, r1 int) ([]byte, error) {
		data := make([]byte, (r1-r0)*n*size)
		return data, all.ReadRows(data, r0, r1)
	}
	blocks.Reader = func(dst []byte, b0, b1 int) error { // its rows are blocks
		data, err := read(b0/n, (b1+n-1)/n)
		for b := b0; b < b1 && err == nil; b++ {
			intoPairs(dst[(b-b0)*elements/2:], data[(b-b0/n*n)*size+1:])
		}
		return err
	}
	scales.Reader = func(dst []byte, r0, r1 int) error {
		data, err := read(r0, r1)
		for i := range dst {
			dst[i] = data[i*size]
		}
		return err
	}
	return []tensor.Tensor{blocks, scales}, nil
}

// takeTurns returns a tensor that has, for each expert, one row of each of the tensors in turn.
func takeTurns(name string, list []tensor.Tensor) tensor.Tensor {
	n := len(list)
	x := tensor.Tensor{Name: name, Type: list[0].Type, Shape: slices.Clone(list[0].Shape)}
	x.Shape[1] *= n
	size := x.RowBytes()
	x.Reader = func(dst []byte, r0, r1 int) error {
		from, to := r0/n, (r1+n-1)/n
		data := make([]byte, (to-from)*size)
		for k, t := range list {
			if err := t.ReadRows(data, from, to); err != nil {
				return err
			}
			for r := from; r < to; r++ {
				if at := r*n + k - r0; at >= 0 && at < r1-r0 {
					copy(dst[at*size:(at+1)*size], data[(r-from)*size:])
				}
			}
		}
		return nil
	}
	return x
}
