package model

import (
	"fmt"
	"math"
	"strings"

	"github.com/grovellm/grove/tensor"
)

// copiedExperts is a source whose layers have experts, each a copy of the model's own MLP, and
// routers with random weights. The weights of a row's experts add up to 1, so the network computes
// the same results, to rounding, but its passes read the experts that their rows choose.
type copiedExperts struct {
	source
	c Config
}

func copyExperts(src source, count, used int) (source, error) {
	c, err := src.config()
	if err != nil {
		return nil, err
	}
	if c.Arch != qwen3.name {
		return nil, fmt.Errorf("padding with experts: the architecture is %s: want %s", c.Arch, qwen3.name)
	}
	if used < 1 || used > count {
		return nil, fmt.Errorf("padding with %d experts, %d of them used by a row: "+
			"want at least one used, and no more than there are", count, used)
	}
	have := c.Parameters()
	c.Arch = qwen3moe.name
	c.Experts = count
	c.Used = used
	c.Padded += c.Parameters() - have
	return &copiedExperts{src, c}, c.Validate()
}

func (s *copiedExperts) config() (Config, error) { return s.c, nil }

const expertSuffix = "_exps.weight"

func (s *copiedExperts) names() []string {
	var names []string
	for _, name := range s.source.names() {
		switch layer, part := layerPart(name); part {
		case "ffn_gate.weight", "ffn_up.weight", "ffn_down.weight":
			name = fmt.Sprintf("blk.%d.%s", layer, strings.TrimSuffix(part, ".weight")+expertSuffix)
		}
		names = append(names, name)
	}
	return names
}

func (s *copiedExperts) tensor(name string) (tensor.Tensor, bool, error) {
	layer, part := layerPart(name)
	if base, ok := strings.CutSuffix(part, expertSuffix); ok {
		t, ok, err := s.source.tensor(fmt.Sprintf("blk.%d.%s.weight", layer, base))
		return s.copies(name, t), ok, err
	}
	if strings.HasSuffix(name, RouterName) {
		t, err := s.router(name)
		return t, err == nil, err
	}
	return s.source.tensor(name)
}

// copies repeats a matrix, once for each expert.
func (s *copiedExperts) copies(name string, t tensor.Tensor) tensor.Tensor {
	rows, size := t.Rows(), t.RowBytes()
	all := tensor.Tensor{Name: name, Type: t.Type, Shape: append([]int{s.c.Experts}, t.Shape...)}
	all.Reader = func(dst []byte, r0, r1 int) error {
		for r0 < r1 {
			from := r0 % rows
			n := min(rows-from, r1-r0)
			if err := t.ReadRows(dst[:n*size], from, from+n); err != nil {
				return err
			}
			dst, r0 = dst[n*size:], r0+n
		}
		return nil
	}
	return all
}

// router returns random weights, different in each layer. Similar rows choose similar experts.
func (s *copiedExperts) router(name string) (tensor.Tensor, error) {
	rng := seeded(name)
	values := make([]float32, s.c.Experts*s.c.Hidden)
	for i := range values {
		values[i] = float32(rng.NormFloat64() / math.Sqrt(float64(s.c.Hidden)))
	}
	return tensor.FromFloat32s(name, tensor.F32, []int{s.c.Experts, s.c.Hidden}, values)
}
