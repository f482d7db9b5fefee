package model

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/reshape"
	"github.com/grovellm/grove/tensor"
)

// Mixed describes how two or three parts are laid out in one tensor of a folder.
type Mixed struct {
	Rows int // of the folder's tensor

	// Row returns the folder's row for row i of a part, counted from 1. Place is its inverse.
	Row   func(part, i int) int
	Place func(row int) (part, i int)
}

// mixed describes InternLM 2's tensor of queries, keys and values, which are grouped by key head, or Ling's, which are
// not. In the parts, dimensions (2i, 2i+1) are rotated together.
func (c *Config) mixed() *Mixed {
	if c.Delta.KeyHeads > 0 {
		return c.Delta.mixed()
	}
	halves, pairs := Pairs(c.HeadDim), Halves(c.HeadDim)
	groups := c.KVHeads
	if c.arch().ungrouped {
		groups = 1
	}
	d, shared := c.KVHeads/groups*c.HeadDim, c.Heads/groups*c.HeadDim // rows of a group's keys, and of its queries
	unit := shared + 2*d
	return &Mixed{
		Rows: groups * unit,
		Row: func(part, i int) int {
			switch part {
			case 1:
				return i/shared*unit + halves(i%shared)
			case 2:
				return i/d*unit + shared + halves(i%d)
			}
			return i/d*unit + shared + d + i%d
		},
		Place: func(row int) (part, i int) {
			group, at := row/unit, row%unit
			switch {
			case at < shared:
				return 1, group*shared + pairs(at)
			case at < shared+d:
				return 2, group*d + pairs(at-shared)
			}
			return 3, group*d + at - shared - d
		},
	}
}

// mixed describes Qwen 3 Next's tensor of queries, keys, values and gates, which are grouped by key
// head.
func (d *DeltaConfig) mixed() *Mixed {
	keys, values := d.KeyDim, d.ValueHeads/max(d.KeyHeads, 1)*d.ValueDim
	unit, all := 2*(keys+values), d.KeyHeads*d.KeyDim
	return &Mixed{
		Rows: d.KeyHeads * unit,
		Row: func(part, i int) int {
			switch {
			case part == 2:
				return i/values*unit + 2*keys + values + i%values
			case i < all:
				return i/keys*unit + i%keys
			case i < 2*all:
				return (i-all)/keys*unit + keys + i%keys
			}
			i -= 2 * all
			return i/values*unit + 2*keys + i%values
		},
		Place: func(row int) (part, i int) {
			head, at := row/unit, row%unit
			switch {
			case at < keys:
				return 1, head*keys + at
			case at < 2*keys:
				return 1, all + head*keys + at - keys
			case at < 2*keys+values:
				return 1, 2*all + head*values + at - 2*keys
			}
			return 2, head*values + at - 2*keys - values
		},
	}
}

// unmix returns the part's rows of a folder's tensor.
func (p *Part) unmix(t tensor.Tensor) (tensor.Tensor, error) {
	if err := wantShape(t, p.Mixed.Rows, p.Cols); err != nil {
		return t, err
	}
	x := tensor.Tensor{Name: t.Name, Type: t.Type, Shape: []int{p.Rows, p.Cols}}
	x.Reader = runs(x.RowBytes(), 1, func(i int) (tensor.Tensor, int) { return t, p.Mixed.Row(p.Half, i) })
	return x, nil
}

// mix returns the folder's tensor of the parts, which are given in order.
func (p *Part) mix(ending string, parts []tensor.Tensor) (tensor.Tensor, error) {
	rows := 0
	for i, t := range parts {
		if len(t.Shape) != 2 || t.Shape[1] != p.Cols {
			return t, fmt.Errorf("tensor %s has shape %v: want rows of %d for this model", fileerr.Quote(t.Name), t.Shape, p.Cols)
		}
		rows += t.Shape[0]
		if parts[0].Type != parts[1].Type {
			var err error
			if parts[i], err = reshape.Mapped(t, func(x float32) float32 { return x }); err != nil {
				return t, err
			}
		}
	}
	if rows != p.Mixed.Rows {
		return parts[0], fmt.Errorf("tensor %s and those that share %s in folders have %d rows: want %d for this model",
			fileerr.Quote(parts[0].Name), p.InFolder(ending), rows, p.Mixed.Rows)
	}
	x := tensor.Tensor{Name: p.InFolder(ending), Type: parts[0].Type, Shape: []int{p.Mixed.Rows, p.Cols}}
	x.Reader = runs(x.RowBytes(), 1, func(row int) (tensor.Tensor, int) {
		part, i := p.Mixed.Place(row)
		return parts[part-1], i
	})
	return x, nil
}

// tiles returns which row of a folder is row i of a GGUF file, and the inverse. Neighbouring value
// heads share a key head in folders, those KeyHeads apart in GGUF files. Rows before those of value
// heads are unchanged. nil: all rows are.
func (d *DeltaConfig) tiles(rows dim) (toGGUF, toFolder func(i int) int) {
	if d.KeyHeads == d.ValueHeads || d.KeyHeads < 1 {
		return nil, nil
	}
	width, from := d.ValueDim, 0
	switch rows {
	case deltaHeads:
		width = 1
	case deltaChannels:
		from = 2 * d.KeyHeads * d.KeyDim
	}
	turn := func(across int) func(i int) int { // rows of heads, taken across at a time
		return func(i int) int {
			if i < from {
				return i
			}
			head, at := (i-from)/width, (i-from)%width
			return from + (head%across*(d.ValueHeads/across)+head/across)*width + at
		}
	}
	return turn(d.KeyHeads), turn(d.ValueHeads / d.KeyHeads)
}

// ReorderColumns returns a matrix whose column i is column order(i) of t, in F32 if t's type has blocks. nil: t.
func ReorderColumns(t tensor.Tensor, order func(i int) int) (tensor.Tensor, error) {
	if order == nil {
		return t, nil
	}
	t = withoutBlocks(t)
	x := tensor.Tensor{Name: t.Name, Type: t.Type, Shape: t.Shape}
	cols := t.Cols()
	size := x.RowBytes() / cols
	x.Reader = func(dst []byte, r0, r1 int) error {
		rows := make([]byte, len(dst))
		if err := t.ReadRows(rows, r0, r1); err != nil {
			return err
		}
		for r := 0; r < len(dst); r += cols * size {
			for i := range cols {
				copy(dst[r+i*size:][:size], rows[r+order(i)*size:])
			}
		}
		return nil
	}
	return x, x.Check()
}

// withoutBlocks returns a tensor whose columns can be moved: t, or t in F32 if its type has blocks.
func withoutBlocks(t tensor.Tensor) tensor.Tensor {
	if hasBlocks(t) {
		return inF32(t)
	}
	return t
}

func hasBlocks(t tensor.Tensor) bool {
	elements, _ := t.Type.Block()
	return elements > 1
}

// inF32 returns t with its numbers in F32, which are computed as they are read.
func inF32(t tensor.Tensor) tensor.Tensor {
	x := tensor.Tensor{Name: t.Name, Type: tensor.F32, Shape: t.Shape}
	x.Reader = func(dst []byte, r0, r1 int) error {
		numbers := make([]float32, (r1-r0)*t.Cols())
		if err := t.DequantizeRows(numbers, r0, r1); err != nil {
			return err
		}
		for i, v := range numbers {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
		}
		return nil
	}
	return x
}
