package model

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/kernels/num"
	"github.com/grovellm/grove/tensor"
)

// Folders with weights of 4 or 8 bits, as AWQ, GPTQ, AutoRound (either's tensors) and compressed-tensors
// write them. A weight is its code minus a zero point, times a scale, and groups of an output's inputs
// share both. Codes lie in words of 32 bits, from the low bits on. Tensors of module X with inputs I,
// outputs O, groups G, and n codes in a word:
//
//	AWQ   X.qweight (I, O/n), X.qzeros (G, O/n), words in awqOrder; X.scales (G, O)
//	GPTQ  X.qweight (I/n, O), X.qzeros (G, O/n), less 1 in the first version; X.scales (G, O);
//	      X.g_idx (I), the group of each input
//	compressed-tensors
//	      X.weight_packed (O, I/n), X.weight_zero_point (O/n, G), X.weight_scale (O, G), X.weight_g_idx (I),
//	      X.weight_shape; or X.weight (O, I) and X.weight_zero_point (O, G) in I8
//	bitsandbytes
//	      X.weight (O, I) in I8; X.SCB (O), 127 times the scales
//
// If blocks of 32 inputs share a scale, weights become the type of GGUF files with the same codes: Q4_0 and Q8_0 where
// all zero points are in the middle, Q4_1 for others of 4 bits. Their scales are F16. All others become F32.
type integers struct {
	name       string
	codes      coded
	zeros      coded // without a tensor: all are in the middle
	scales     tensor.Tensor
	rows, cols int
	groups     int
	inputs     bool    // the dimension of inputs, or groups, comes first
	group      []int   // of each input; nil: they are in order
	factor     float32 // of scales
	typ        tensor.Type
}

// whole reads a matrix whose weights can only be decoded at once.
type whole struct {
	name   string
	rows   int
	decode func() ([]byte, error)

	mu   sync.Mutex
	all  []byte // from the first reading until every row has been read
	left int    // rows
}

// coded is a matrix of codes, in words or in bytes.
type coded struct {
	stored tensor.Tensor
	bits   int
	down   bool  // words have codes of a column; otherwise, of a row
	order  []int // of codes in a word; nil: in order
	plus   int   // added to each code
}

// awqOrder lists the codes of a word, from the low bits on.
var awqOrder = []int{0, 2, 4, 6, 1, 3, 5, 7}

// shape returns how many codes a column and a row have.
func (c *coded) shape() (rows, cols int) {
	rows, cols = c.stored.Shape[0], c.stored.Shape[1]
	switch n := 32 / c.bits; {
	case c.stored.Type == numtype.I8:
	case c.down:
		rows *= n
	default:
		cols *= n
	}
	return rows, cols
}

// unpack writes the code of row i and column j to dst[i·down + j·right].
func (c *coded) unpack(dst []uint8, down, right int) error {
	all, err := c.stored.ReadAll()
	if err != nil {
		return err
	}
	rows, cols := c.stored.Shape[0], c.stored.Shape[1]
	if c.stored.Type == numtype.I8 {
		for i := range rows {
			for j := range cols {
				dst[i*down+j*right] = all.Data[i*cols+j] ^ 1<<7
			}
		}
		return nil
	}
	n, mask := 32/c.bits, uint32(1)<<c.bits-1
	next := right // steps to a word's next code, the next word of a row, and the next row
	word := n * right
	line := down
	if c.down {
		next = down
		word = right
		line = n * down
	}
	for i := range rows {
		for j := range cols {
			w := binary.LittleEndian.Uint32(all.Data[4*(i*cols+j):])
			at := dst[i*line+j*word:]
			for k := range n {
				place := k
				if c.order != nil {
					place = c.order[k]
				}
				at[place*next] = uint8(w & mask)
				w >>= c.bits
			}
		}
	}
	return nil
}

// isIntegers reports whether a tensor has weights of 4 or 8 bits. Words of 32 bits have those of several.
func isIntegers(f *safetensors.File, info safetensors.Info) bool {
	_, scaled := f.Tensor(info.Name + "_scale")
	if !scaled {
		_, scaled = f.Tensor(strings.TrimSuffix(info.Name, "weight") + "SCB")
	}
	return strings.HasSuffix(info.Name, ".qweight") ||
		strings.HasSuffix(info.Name, ".weight_packed") && info.Type == numtype.I32 ||
		strings.HasSuffix(info.Name, ".weight") && info.Type == numtype.I8 && scaled
}

// openIntegers finds a matrix's tensors. Of these, drop are no weights.
func openIntegers(f *safetensors.File, name string, q *quantization) (x *integers, drop []string, err error) {
	x = &integers{factor: 1}
	stem, ours := strings.CutSuffix(name, ".qweight")
	packed := strings.HasSuffix(name, "_packed")
	ends := [3]string{".scales", ".qzeros", ".g_idx"}
	if !ours {
		stem = strings.TrimSuffix(name, "_packed")
		ends = [3]string{"_scale", "_zero_point", "_g_idx"}
	}
	x.codes.stored, _ = f.Tensor(name)
	module := strings.TrimSuffix(stem, "weight") // of bitsandbytes
	if x.scales, err = scaling(f, name, stem+ends[0], module+"SCB"); err != nil {
		return nil, nil, err
	}
	if x.scales.Name == module+"SCB" {
		x.factor = 1. / 127
		x.scales.Shape = append(slices.Clone(x.scales.Shape), 1)
		drop = append(drop, module+"SCB", module+"weight_format")
	}
	x.zeros.stored, _ = f.Tensor(stem + ends[1])
	if _, ok := f.Tensor(stem + ends[2]); ok {
		if x.group, err = integersOf(f, stem+ends[2]); err != nil {
			return nil, nil, err
		}
	}
	for _, end := range append(ends[:], "_shape") {
		drop = append(drop, stem+end)
	}
	x.name = stem
	x.inputs = ours
	x.codes.bits = 8
	switch {
	case ours && q.layout() != "awq" && q.layout() != "gptq":
		return nil, nil, fmt.Errorf("tensor %s is quantized, and config.json has no quantization_config with the quant_method "+
			"awq, gptq or auto-round: the folder is incomplete", fileerr.Quote(name))
	case ours:
		x.name = stem + ".weight"
		x.codes.bits = q.Bits
		if q.layout() == "awq" {
			x.codes.order, x.zeros.order = awqOrder, awqOrder
		} else {
			x.codes.down = true
			if q.Checkpoint != "gptq_v2" {
				x.zeros.plus = 1
			}
		}
		bias, ok := f.Tensor(stem + ".bias")
		if ok {
			values, err := bias.Float32s()
			if err != nil {
				return nil, nil, err
			}
			if !slices.ContainsFunc(values, func(v float32) bool { return v != 0 }) {
				drop = append(drop, bias.Name) // which AutoGPTQ gives to modules without a bias
			}
		}
	case packed:
		if x.codes.bits, err = bitsOf(f, x.codes.stored, stem+"_shape"); err != nil {
			return nil, nil, err
		}
		x.zeros.down = true
	}
	x.zeros.bits = x.codes.bits
	return x, drop, x.arrange(ours && q.Middle)
}

// bitsOf returns the bits of a code, given the name of the tensor with the shape of the weights.
func bitsOf(f *safetensors.File, packed tensor.Tensor, name string) (int, error) {
	shape, err := integersOf(f, name)
	if err != nil {
		return 0, err
	}
	for _, bits := range []int{4, 8} {
		if len(shape) == 2 && len(packed.Shape) == 2 && shape[0] == packed.Shape[0] && shape[1]*bits == 32*packed.Shape[1] {
			return bits, nil
		}
	}
	return 0, fmt.Errorf("tensor %s of shape %v has the weights of shape %v: want 4 or 8 bits each: "+
		"take a GGUF file of the model, or the original folder, in BF16", fileerr.Quote(packed.Name), packed.Shape, shape)
}

// integersOf returns the numbers of a tensor in I32 or I64.
func integersOf(f *safetensors.File, name string) ([]int, error) {
	t, ok := f.Tensor(name)
	if !ok {
		return nil, fmt.Errorf("tensor %s is missing: the folder is incomplete", fileerr.Quote(name))
	}
	t, err := t.ReadAll()
	if err != nil {
		return nil, err
	}
	var list []int
	for at := t.Data; len(at) > 0; {
		switch t.Type {
		case numtype.I32:
			list, at = append(list, int(int32(binary.LittleEndian.Uint32(at)))), at[4:]
		case numtype.I64:
			list, at = append(list, int(binary.LittleEndian.Uint64(at))), at[8:]
		default:
			return nil, fmt.Errorf("tensor %s is %v: want I32 or I64", fileerr.Quote(name), t.Type)
		}
	}
	return list, nil
}

// arrange checks that the tensors fit together, and chooses the type. It may want zero points in the middle.
func (x *integers) arrange(wantMiddle bool) error {
	for _, t := range []tensor.Tensor{x.codes.stored, x.scales, x.zeros.stored} {
		if t.Name != "" && len(t.Shape) != 2 {
			return fmt.Errorf("tensor %s has shape %v: want a matrix", fileerr.Quote(t.Name), t.Shape)
		}
	}
	if kind := x.codes.stored.Type; kind != numtype.I32 && kind != numtype.I8 || !x.scales.Type.Decodes() {
		return fmt.Errorf("tensors %s and %s are %v and %v: want I32 or I8, and F16, BF16 or F32",
			fileerr.Quote(x.codes.stored.Name), fileerr.Quote(x.scales.Name), kind, x.scales.Type)
	}
	wrong := func(t tensor.Tensor) error {
		return fmt.Errorf("tensor %s of shape %v does not fit tensor %s of shape %v, with codes of %d bits",
			fileerr.Quote(t.Name), t.Shape, fileerr.Quote(x.codes.stored.Name), x.codes.stored.Shape, x.codes.bits)
	}
	first, second := x.codes.shape()
	scales := x.scales.Shape
	x.rows, x.cols = first, second
	x.groups = scales[1]
	want := []int{x.rows, x.groups}
	if x.inputs {
		x.rows, x.cols = second, first
		x.groups = scales[0]
		want = []int{x.groups, x.rows}
	}
	inOrder := x.groups > 0 && x.cols%x.groups == 0
	if !slices.Equal(scales, want) || x.groups < 1 || x.groups > x.cols || x.group == nil && !inOrder {
		return wrong(x.scales)
	}
	if x.zeros.stored.Name != "" {
		if kind := x.zeros.stored.Type; kind != x.codes.stored.Type {
			return fmt.Errorf("tensor %s is %v: want %v", fileerr.Quote(x.zeros.stored.Name), kind, x.codes.stored.Type)
		}
		if rows, cols := x.zeros.shape(); rows != want[0] || cols != want[1] {
			return wrong(x.zeros.stored)
		}
	}
	for i, g := range x.group {
		if g < 0 || g >= x.groups || len(x.group) != x.cols {
			return fmt.Errorf("tensor %s: the g_idx beside it does not list groups below %d for %d inputs",
				fileerr.Quote(x.codes.stored.Name), x.groups, x.cols)
		}
		inOrder = inOrder && g == i/(x.cols/x.groups)
	}
	if inOrder {
		x.group = nil
	}
	zeros, err := x.readZeros()
	if err != nil {
		return err
	}
	middle := !slices.ContainsFunc(zeros, func(z uint8) bool { return int(z)+x.zeros.plus != 1<<(x.codes.bits-1) })
	if wantMiddle && !middle {
		return fmt.Errorf("tensor %s has zero points other than %d, and the quantization_config has sym: "+
			"it is not a folder of this quant_method and checkpoint_format", fileerr.Quote(x.zeros.stored.Name), 1<<(x.codes.bits-1))
	}
	switch blocks := x.group == nil && x.cols/x.groups%32 == 0; {
	case blocks && x.codes.bits == 4 && middle:
		x.typ = tensor.Q4_0
	case blocks && x.codes.bits == 4:
		x.typ = tensor.Q4_1
	case blocks && middle:
		x.typ = tensor.Q8_0
	default:
		x.typ = tensor.F32
	}
	return nil
}

// readZeros returns the zero point of each group of each row, or nil if all are in the middle.
func (x *integers) readZeros() ([]uint8, error) {
	if x.zeros.stored.Name == "" {
		return nil, nil
	}
	zeros := make([]uint8, x.rows*x.groups)
	if x.inputs {
		return zeros, x.zeros.unpack(zeros, 1, x.groups)
	}
	return zeros, x.zeros.unpack(zeros, x.groups, 1)
}

func (x *integers) tensor() tensor.Tensor {
	w := &whole{name: x.name, rows: x.rows, decode: x.decode} // as the codes of a row lie far apart
	return tensor.Tensor{Name: x.name, Type: x.typ, Shape: []int{x.rows, x.cols}, Reader: w.read}
}

func (x *whole) read(dst []byte, r0, r1 int) (err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.all == nil {
		if x.all, err = x.decode(); err != nil {
			return fmt.Errorf("tensor %s: %w", fileerr.Quote(x.name), err)
		}
		x.left = x.rows
	}
	copy(dst, x.all[r0*len(x.all)/x.rows:r1*len(x.all)/x.rows])
	x.left -= r1 - r0
	if x.left <= 0 {
		x.all = nil
	}
	return nil
}

// decode returns the weights in the type.
func (x *integers) decode() ([]byte, error) {
	codes := make([]uint8, x.rows*x.cols)
	down, right := x.cols, 1
	if x.inputs {
		down, right = 1, x.cols
	}
	if err := x.codes.unpack(codes, down, right); err != nil {
		return nil, err
	}
	zeros, err := x.readZeros()
	if err != nil {
		return nil, err
	}
	scales, err := x.scales.Float32s()
	if err != nil {
		return nil, err
	}
	size, err := x.typ.Size(x.cols)
	if err != nil {
		return nil, err
	}
	all := make([]byte, 0, x.rows*size)
	for r := range x.rows {
		at := func(i int) (scale, zero float32) {
			g := i * x.groups / x.cols
			if x.group != nil {
				g = x.group[i]
			}
			scale = scales[r*x.groups+g]
			if x.inputs {
				scale = scales[g*x.rows+r]
			}
			if zeros == nil {
				return scale, float32(int(1) << (x.codes.bits - 1))
			}
			return scale, float32(int(zeros[r*x.groups+g]) + x.zeros.plus)
		}
		row := codes[r*x.cols : (r+1)*x.cols]
		if x.typ == tensor.F32 {
			for i, code := range row {
				scale, zero := at(i)
				all = binary.LittleEndian.AppendUint32(all, math.Float32bits((float32(code)-zero)*scale*x.factor))
			}
			continue
		}
		for i := 0; i < x.cols; i += 32 {
			scale, zero := at(i)
			all = x.appendBlock(all, row[i:i+32], scale*x.factor, zero)
		}
	}
	return all, nil
}

// appendBlock appends 32 weights of one scale as a block of the type.
func (x *integers) appendBlock(all []byte, codes []uint8, scale, zero float32) []byte {
	all = binary.LittleEndian.AppendUint16(all, num.ToF16(scale))
	if x.typ == tensor.Q8_0 {
		for _, code := range codes {
			all = append(all, code^1<<7)
		}
		return all
	}
	if x.typ == tensor.Q4_1 {
		all = binary.LittleEndian.AppendUint16(all, num.ToF16(-zero*scale))
	}
	for i := range 16 {
		all = append(all, codes[i]|codes[i+16]<<4)
	}
	return all
}
