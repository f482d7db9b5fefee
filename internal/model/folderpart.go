package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/reshape"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/tensor"
)

// FolderNames returns the names, without endings, of the folder's tensors that make up the part.
func (p *Part) FolderNames() (names []string) {
	if p.Experts == 0 || !strings.Contains(p.Folder, "*") {
		return []string{p.Folder}
	}
	for i := range p.Experts {
		names = append(names, strings.Replace(p.Folder, "*", strconv.Itoa(i), 1))
	}
	return names
}

// FromFolder returns the part as in a GGUF file, except for the order of rows: experts' tensors are
// joined, and one of two halves is taken. names are the folder's tensors that make it up, or empty
// if the folder has no such part.
func (p *Part) FromFolder(f *safetensors.File, ending string) (t tensor.Tensor, names []string, err error) {
	if p.Param {
		return p.fromParam(f, ending)
	}
	if _, ok := f.Tensor(p.InFolder(ending)); p.Apart != "" && !ok {
		each := *p
		each.Folder, each.Apart = p.Apart, ""
		each.Bare, each.Half = false, 0
		return each.FromFolder(f, ending)
	}
	var list []tensor.Tensor
	for _, name := range p.FolderNames() {
		name += p.inFolder(ending)
		if _, ok := f.Tensor(name); !ok {
			if len(list) == 0 {
				return t, nil, nil
			}
			return t, nil, fmt.Errorf("tensor %s is missing: the folder is incomplete", name)
		}
		if t, err = f.Load(name); err != nil {
			return t, nil, err
		}
		list, names = append(list, t), append(names, name)
	}
	switch {
	case p.Split > 0:
		t, err = p.fromHeads(t)
	case strings.Contains(p.Folder, "*"):
		t, err = join(list)
	case p.Mixed != nil:
		t, err = p.unmix(t)
	case p.Half != 0:
		t, err = p.half(t)
	case p.Turned && ending == ".weight":
		if err = wantShape(t, p.Cols, p.Rows); err == nil {
			t, err = p.transposed(f, names[0])
		}
	case p.Conv && len(t.Shape) == 3 && t.Shape[1] == 1:
		t.Shape = []int{t.Shape[0], t.Shape[2]}
	case p.Row && len(t.Shape) == 2 && t.Shape[0] == 1:
		t.Shape = t.Shape[1:]
	case p.Short && len(t.Shape) == 2 && t.Shape[0] < p.Rows:
		t = withZeros(t, p.Rows)
	case p.Flat && slices.Equal(t.Shape, []int{p.Rows * p.Cols}):
		t, err = t.ReadAll()
		t.Shape = []int{p.Rows, p.Cols}
	}
	if p.Factors != nil && ending == p.Ending && err == nil {
		t, err = reshape.Scaled(t, p.Factors)
	}
	return t, names, err
}

// withZeros returns a matrix with further rows of zeros. Its type has no blocks.
func withZeros(t tensor.Tensor, rows int) tensor.Tensor {
	have := t.Shape[0]
	x := tensor.Tensor{Name: t.Name, Type: t.Type, Shape: []int{rows, t.Shape[1]}}
	x.Reader = func(dst []byte, r0, r1 int) error {
		own := max(0, min(r1, have)-r0)
		clear(dst[own*t.RowBytes():])
		if own == 0 {
			return nil
		}
		return t.ReadRows(dst[:own*t.RowBytes()], r0, r0+own)
	}
	return x
}

// half returns one half of the rows of a tensor, or of each expert's rows.
func (p *Part) half(t tensor.Tensor) (tensor.Tensor, error) {
	shape := slices.Clone(t.Shape)
	at := len(shape) - 2
	if want := 2 + min(p.Experts, 1); len(shape) != want || shape[at] != 2*p.Rows {
		return t, fmt.Errorf("tensor %s has shape %v: want %d rows for this model", fileerr.Quote(t.Name), t.Shape, 2*p.Rows)
	}
	shape[at] = p.Rows
	x := tensor.Tensor{Name: t.Name, Type: t.Type, Shape: shape}
	x.Reader = runs(x.RowBytes(), p.Rows, func(i int) (tensor.Tensor, int) { return t, (2*i + p.Half - 1) * p.Rows })
	return x, nil
}

// join returns tensors of one shape as one tensor, with one more dimension.
func join(list []tensor.Tensor) (tensor.Tensor, error) {
	first := list[0]
	for _, t := range list {
		if t.Type != first.Type || !slices.Equal(t.Shape, first.Shape) {
			return t, fmt.Errorf("tensor %s is %v of shape %v, and %s %v of shape %v: want experts of one type and shape",
				fileerr.Quote(t.Name), t.Type, t.Shape, fileerr.Quote(first.Name), first.Type, first.Shape)
		}
	}
	x := tensor.Tensor{Name: first.Name, Type: first.Type, Shape: append([]int{len(list)}, first.Shape...)}
	x.Reader = runs(x.RowBytes(), first.Rows(), func(i int) (tensor.Tensor, int) { return list[i], 0 })
	return x, x.Check()
}

// runs returns a function that reads rows of a tensor made up of runs of the given number of rows.
// run returns the tensor of run i and the row where it begins there.
func runs(rowBytes, rows int, run func(i int) (tensor.Tensor, int)) func(dst []byte, r0, r1 int) error {
	return func(dst []byte, r0, r1 int) error {
		for r0 < r1 {
			i, at := r0/rows, r0%rows
			n := min(rows-at, r1-r0)
			t, from := run(i)
			if err := t.ReadRows(dst[:n*rowBytes], from+at, from+at+n); err != nil {
				return err
			}
			dst, r0 = dst[n*rowBytes:], r0+n
		}
		return nil
	}
}

// IntoFolder returns the folder's tensors for a part of experts, or for a parameter: one for each
// expert, or one that also has the rows of others, the parts that share it, in order.
// IntoFolder does not take experts' matrices that are parameters and not MXFP4: folders have their
// transposes.
func (p *Part) IntoFolder(ending string, t tensor.Tensor, others []tensor.Tensor) (list []tensor.Tensor, err error) {
	if p.Param && p.Experts == 0 {
		return p.intoParam(ending, []tensor.Tensor{t})
	}
	if p.Mixed != nil {
		x, err := p.mix(ending, slices.Insert(slices.Clone(others), p.Half-1, t))
		return []tensor.Tensor{x}, err
	}
	var other *tensor.Tensor
	if len(others) > 0 {
		other = &others[0]
	}
	if p.Split > 0 && other != nil {
		return p.intoHeads(ending, t, *other)
	}
	shape := []int{p.Experts, p.Rows, p.Cols}
	if p.Experts == 0 {
		shape = shape[1:]
	}
	n := len(shape) - 1 // except for biases
	if len(t.Shape) < n || !slices.Equal(t.Shape[:n], shape[:n]) || other != nil && !slices.Equal(other.Shape, t.Shape) {
		return nil, fmt.Errorf("tensor %s has shape %v: want %d experts of %d rows for this model",
			fileerr.Quote(t.Name), t.Shape, p.Experts, p.Rows)
	}
	halves := []tensor.Tensor{t}
	if other != nil {
		if other.Type != t.Type {
			return nil, fmt.Errorf("tensor %s is %v but tensor %s is %v: a folder has one tensor for both",
				fileerr.Quote(t.Name), t.Type, fileerr.Quote(other.Name), other.Type)
		}
		halves = append(halves, *other)
	}
	switch names := p.FolderNames(); {
	case p.Param:
		return p.intoParam(ending, halves)
	case other != nil:
		both := tensor.Tensor{Name: p.InFolder(ending), Type: t.Type, Shape: slices.Clone(t.Shape)}
		both.Shape[n-1] *= 2
		both.Reader = runs(both.RowBytes(), p.Rows, func(i int) (tensor.Tensor, int) { return halves[i%2], i / 2 * p.Rows })
		return []tensor.Tensor{both}, nil
	case names[0] == p.Folder:
		t.Name = p.InFolder(ending)
		return []tensor.Tensor{t}, nil
	default:
		for i, name := range names {
			x := tensor.Tensor{Name: name + p.inFolder(ending), Type: t.Type, Shape: t.Shape[1:]}
			x.Reader = func(dst []byte, r0, r1 int) error { return t.ReadRows(dst, i*p.Rows+r0, i*p.Rows+r1) }
			list = append(list, x)
		}
	}
	return list, nil
}
