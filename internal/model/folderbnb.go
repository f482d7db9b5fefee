package model

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/grovellm/grove/internal/files/fileerr"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/kernels/num"
	"github.com/grovellm/grove/tensor"
)

// Folders of bitsandbytes with weights of 4 bits. A code is the number of one of 16 values, NF4's or FP4's, and blocks
// of weights, row after row, share a scale. Those of 8 bits are integers. Tensors of weights X:
//
//	X U8, two codes in a byte, the first in its high bits
//	X.quant_map F32, the values
//	X.absmax, the scales: F32; or U8, the numbers of values in X.nested_quant_map F32, of which blocks
//	share a scale in X.nested_absmax F32, and all are increased by an offset
//	X.quant_state.bitsandbytes__nf4 or __fp4 U8, JSON: a codebook's fields
//
// Weights become BF16, F16 or F32, by the JSON: bitsandbytes multiplies with these same numbers.
type codebook struct {
	Shape       []int   `json:"shape"`
	Kind        string  `json:"dtype"`
	Block       int     `json:"blocksize"`
	NestedBlock int     `json:"nested_blocksize"`
	Offset      float32 `json:"nested_offset"`

	at  map[string]tensor.Tensor // the tensors, by the ends of their names
	typ tensor.Type
}

// fieldsEnd is how the name of the tensor with the fields ends, before the kind of weights.
const fieldsEnd = ".quant_state.bitsandbytes__"

func isCodebook(name string) bool {
	return strings.HasSuffix(name, fieldsEnd+"nf4") || strings.HasSuffix(name, fieldsEnd+"fp4")
}

// openCodebook finds the tensors of weights of 4 bits by the one that has the fields. Of these, drop are no weights.
func openCodebook(f *safetensors.File, fields string) (t tensor.Tensor, stored tensor.Type, drop []string, err error) {
	m := &codebook{at: map[string]tensor.Tensor{}}
	name, kind, _ := strings.Cut(fields, fieldsEnd)
	stored = numtype.NF4
	if kind == "fp4" {
		stored = numtype.FP4
	}
	text, _ := f.Tensor(fields)
	text, err = text.ReadAll()
	if err == nil {
		err = json.Unmarshal(text.Data, m)
	}
	types := map[string]tensor.Type{"bfloat16": tensor.BF16, "float16": tensor.F16, "float32": tensor.F32}
	m.typ = types[m.Kind]
	n, wrong := numtype.CountElements(m.Shape)
	if _, known := types[m.Kind]; err != nil || wrong != nil || len(m.Shape) != 2 || !known || m.Block < 1 {
		return t, 0, nil, fmt.Errorf("tensor %s is not bitsandbytes' description of a matrix, its type and its blocks",
			fileerr.Quote(fields))
	}
	blocks := (n + m.Block - 1) / m.Block
	want := map[string]int{"": (n + 1) / 2, ".absmax": blocks, ".quant_map": 16}
	_, nested := f.Tensor(name + ".nested_absmax")
	if nested {
		if m.NestedBlock < 1 {
			return t, 0, nil, fmt.Errorf("tensor %s has no nested_blocksize", fileerr.Quote(fields))
		}
		want[".nested_absmax"], want[".nested_quant_map"] = (blocks+m.NestedBlock-1)/m.NestedBlock, 256
	}
	for end, n := range want {
		kind := tensor.F32
		if end == "" || end == ".absmax" && nested {
			kind = numtype.U8
		}
		x, ok := f.Tensor(name + end)
		if !ok || x.Type != kind || x.Elements() != n {
			return t, 0, nil, fmt.Errorf("tensor %s is missing, or not %d numbers of %v: the folder is incomplete, or its "+
				"bnb_4bit_quant_storage is not uint8", fileerr.Quote(name+end), n, kind)
		}
		m.at[end] = x
		drop = append(drop, name+end)
	}
	drop = append(slices.DeleteFunc(drop, func(other string) bool { return other == name }), fields)
	t = tensor.Tensor{Name: name, Type: m.typ, Shape: m.Shape}
	t.Reader = (&whole{name: name, rows: m.Shape[0], decode: m.decode}).read
	return t, stored, drop, nil
}

// scales returns the scale of each block.
func (m *codebook) scales() ([]float32, error) {
	absmax := m.at[".absmax"]
	if absmax.Type == tensor.F32 {
		return absmax.Float32s()
	}
	values, err := m.at[".nested_quant_map"].Float32s()
	if err != nil {
		return nil, err
	}
	nested, err := m.at[".nested_absmax"].Float32s()
	if err != nil {
		return nil, err
	}
	if absmax, err = absmax.ReadAll(); err != nil {
		return nil, err
	}
	scales := make([]float32, len(absmax.Data))
	for i, code := range absmax.Data {
		scales[i] = float32(values[code]*nested[i/m.NestedBlock]) + m.Offset
	}
	return scales, nil
}

// decode returns the weights in the type.
func (m *codebook) decode() ([]byte, error) {
	codes, err := m.at[""].ReadAll()
	if err != nil {
		return nil, err
	}
	values, err := m.at[".quant_map"].Float32s()
	if err != nil {
		return nil, err
	}
	scales, err := m.scales()
	if err != nil {
		return nil, err
	}
	n := m.Shape[0] * m.Shape[1]
	size, err := m.typ.Size(n)
	if err != nil {
		return nil, err
	}
	all := make([]byte, 0, size)
	var numbers [16]uint32 // of a block
	for i := range n {
		if i%m.Block == 0 {
			for code, v := range values {
				numbers[code] = m.bits(v * scales[i/m.Block])
			}
		}
		bits := numbers[codes.Data[i/2]>>(4-i%2*4)&15]
		if m.typ == tensor.F32 {
			all = binary.LittleEndian.AppendUint32(all, bits)
		} else {
			all = binary.LittleEndian.AppendUint16(all, uint16(bits))
		}
	}
	return all, nil
}

// bits is a number in the type.
func (m *codebook) bits(v float32) uint32 {
	switch m.typ {
	case tensor.BF16:
		return uint32(num.ToBF16(v))
	case tensor.F16:
		return uint32(num.ToF16(v))
	}
	return math.Float32bits(v)
}
