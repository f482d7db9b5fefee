// The weights of a padded model; pad.go describes them.

package model

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/grovellm/grove/internal/files/recode"
	"github.com/grovellm/grove/internal/kernels/gemm"
	"github.com/grovellm/grove/tensor"
)

// padding is a source whose model is padded. It makes weights on demand.
type padding struct {
	source
	from, to Config
	kind     tensor.Type
	shapes   map[string][]int  // of an added layer's tensors, by part; nil for those that do not exist
	weights  map[string][]byte // those made so far
	zeros    []byte
}

func pad(src source, total int64, kind tensor.Type) (source, error) {
	if kind == tensor.F32 {
		kind = tensor.BF16
	}
	if err := recode.CheckWritable(kind); err != nil {
		return nil, fmt.Errorf("padding: type %w", err)
	}
	p := &padding{source: src, kind: kind, shapes: map[string][]int{}, weights: map[string][]byte{}}
	var err error
	if p.from, err = src.config(); err != nil {
		return nil, err
	}
	unit, err := p.unit()
	if err != nil {
		return nil, err
	}
	p.to, err = p.from.padded(total, unit)
	return p, err
}

// unit returns the number that widths are multiples of: whole groups of activations, and whole blocks of weights.
func (p *padding) unit() (int, error) {
	unit := gemm.Group
	for layer := range p.from.Layers {
		// the network reports it, if it is missing
		t, _, err := p.source.tensor(fmt.Sprintf("blk.%d.ffn_down.weight", layer))
		if err != nil {
			return 0, err
		}
		n, _ := t.Type.Block()
		unit = max(unit, n)
	}
	return unit, nil
}

func (p *padding) config() (Config, error) { return p.to, nil }

func (p *padding) tensor(name string) (tensor.Tensor, bool, error) {
	layer, part := layerPart(name)
	if layer >= p.from.Layers {
		return p.added(name, part)
	}
	t, ok, err := p.source.tensor(name)
	if !ok || err != nil || layer < 0 || p.to.FFN == p.from.FFN {
		return t, ok, err
	}
	f, h := p.from.FFN, p.from.Hidden
	var want []int
	if part == "ffn_up.weight" && slices.Equal(t.Shape, []int{2 * f, h}) { // which not every network has
		t, err = p.widenedHalves(t, part)
		return t, err == nil, err
	}
	switch part {
	case "ffn_up.weight", "ffn_gate.weight":
		want = []int{f, h}
	case "ffn_down.weight":
		want = []int{h, f}
	case "ffn_up.bias":
		want = []int{f}
	default:
		return t, true, nil
	}
	if !slices.Equal(t.Shape, want) {
		return t, false, fmt.Errorf("tensor %s has shape %v: want %v for this model", name, t.Shape, want)
	}
	t, err = p.widened(t, part)
	return t, err == nil, err
}

// layerPart splits "blk.7.ffn_up.weight" into 7 and "ffn_up.weight"; the layer is −1 for tensors outside layers.
func layerPart(name string) (int, string) {
	rest, ok := strings.CutPrefix(name, "blk.")
	number, part, ok2 := strings.Cut(rest, ".")
	layer, err := strconv.Atoi(number)
	if !ok || !ok2 || err != nil {
		return -1, name
	}
	return layer, part
}

// added returns a tensor of an added layer, if the model's first layer has the same part.
func (p *padding) added(name, part string) (tensor.Tensor, bool, error) {
	shape, known := p.shapes[part]
	if !known {
		t, ok, err := p.source.tensor("blk.0." + part)
		if err != nil {
			return t, false, err
		}
		if ok && len(t.Shape) == 0 {
			return t, false, fmt.Errorf("tensor %s is one number: want a vector or a matrix", t.Name)
		}
		if ok {
			shape = slices.Clone(t.Shape)
			switch part {
			case "ffn_up.weight", "ffn_gate.weight", "ffn_up.bias":
				shape[0] = shape[0] / p.from.FFN * p.to.FFN
			case "ffn_down.weight":
				shape[len(shape)-1] = p.to.FFN
			}
		}
		p.shapes[part] = shape
	}
	if shape == nil {
		return tensor.Tensor{}, false, nil
	}
	t := tensor.Tensor{Name: name, Type: p.kind, Shape: shape}
	if InF32(name) {
		t.Type = tensor.F32
	}
	n := t.Elements()
	if len(shape) < 2 || strings.HasSuffix(part, ".bias") { // norms of ones; no bias anywhere
		values := make([]float32, n)
		for i := range values {
			if strings.HasSuffix(strings.TrimSuffix(part, ".weight"), "norm") {
				values[i] = 1
			}
		}
		t, err := tensor.FromFloat32s(name, tensor.F32, shape, values)
		return t, err == nil, err
	}
	if _, err := t.Type.Size(t.Cols()); err != nil {
		return t, false, fmt.Errorf("padding: tensor %s: rows of %d are not whole blocks of %v: pad with BF16", name, t.Cols(), p.kind)
	}
	var err error
	switch part {
	case "attn_output.weight", "shortconv.out_proj.weight", "ssm_a", "ssm_out.weight", "ffn_down.weight",
		"ffn_down_exps.weight":
		t.Data, err = p.zero(t.Type, n)
	default:
		t.Data, err = p.random(part, t.Type, t.Rows(), t.Cols())
	}
	return t, err == nil, err
}

// widened returns a tensor of one of the model's own layers with the new width. The rows of a
// matrix are made as they are read.
func (p *padding) widened(t tensor.Tensor, part string) (tensor.Tensor, error) {
	if part == "ffn_up.bias" {
		tail, err := p.zero(t.Type, p.to.FFN-p.from.FFN)
		if err == nil {
			t, err = t.ReadAll()
		}
		t.Data, t.Shape = slices.Concat(t.Data, tail), []int{p.to.FFN}
		return t, err
	}
	from := t
	narrow := from.RowBytes()
	t = tensor.Tensor{Name: t.Name, Type: from.Type}
	if part == "ffn_down.weight" { // zeros at the end of every row
		t.Shape = []int{p.from.Hidden, p.to.FFN}
		size := t.RowBytes()
		t.Reader = func(dst []byte, r0, r1 int) error {
			clear(dst)
			for r := r0; r < r1; r++ {
				if err := from.ReadRows(dst[(r-r0)*size:][:narrow], r, r+1); err != nil {
					return err
				}
			}
			return nil
		}
		return t, t.Check()
	}
	// Random rows below the model's own.
	t.Shape = []int{p.to.FFN, p.from.Hidden}
	all, err := p.random(part, t.Type, p.to.FFN, p.from.Hidden)
	t.Reader = func(dst []byte, r0, r1 int) error {
		n := max(0, min(r1, p.from.FFN)-r0)
		copy(dst[n*narrow:], all[(r0+n)*narrow:r1*narrow])
		if n == 0 {
			return nil
		}
		return from.ReadRows(dst[:n*narrow], r0, r0+n)
	}
	return t, err
}

// widenedHalves is widened for gate and up in one tensor, each half separately.
func (p *padding) widenedHalves(t tensor.Tensor, part string) (tensor.Tensor, error) {
	var halves [2]tensor.Tensor
	for i := range halves {
		from := i * p.from.FFN
		half := tensor.Tensor{Name: t.Name, Type: t.Type, Shape: []int{p.from.FFN, p.from.Hidden},
			Reader: func(dst []byte, r0, r1 int) error { return t.ReadRows(dst, from+r0, from+r1) }}
		var err error
		if halves[i], err = p.widened(half, part); err != nil {
			return t, err
		}
	}
	wide := p.to.FFN
	both := tensor.Tensor{Name: t.Name, Type: t.Type, Shape: []int{2 * wide, p.from.Hidden}}
	size := both.RowBytes()
	both.Reader = func(dst []byte, r0, r1 int) error {
		for i := range halves {
			a, b := max(r0, i*wide), min(r1, (i+1)*wide)
			if a >= b {
				continue
			}
			if err := halves[i].ReadRows(dst[(a-r0)*size:(b-r0)*size], a-i*wide, b-i*wide); err != nil {
				return err
			}
		}
		return nil
	}
	return both, both.Check()
}

// zero returns n elements of zero, which all types encode in zero bytes.
func (p *padding) zero(t tensor.Type, n int) ([]byte, error) {
	size, err := t.Size(n)
	if err != nil {
		return nil, err
	}
	if len(p.zeros) < size {
		p.zeros = make([]byte, size)
	}
	return p.zeros[:size:size], nil
}

// seeded returns a generator that draws the same numbers for the same name.
func seeded(name string) *rand.Rand {
	hash := fnv.New64a()
	hash.Write([]byte(name))
	return rand.New(rand.NewPCG(hash.Sum64(), 1))
}

// random returns a matrix of weights that keep the magnitude of their input, as trained ones
// roughly do. Every layer gets the same numbers, but packs its own copy, so a pass reads them all.
func (p *padding) random(part string, t tensor.Type, rows, cols int) ([]byte, error) {
	key := fmt.Sprint(part, t, rows)
	if data := p.weights[key]; data != nil {
		return data, nil
	}
	row, err := t.Size(cols)
	if err != nil {
		return nil, err
	}
	rng := seeded(part)
	std := 1 / math.Sqrt(float64(cols))
	data, values := make([]byte, rows*row), make([]float32, cols)
	for r := range rows {
		for i := range values {
			values[i] = float32(rng.NormFloat64() * std)
		}
		if err := tensor.Quantize(t, values, data[r*row:(r+1)*row]); err != nil {
			return nil, err
		}
	}
	p.weights[key] = data
	return data, nil
}
