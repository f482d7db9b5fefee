package model_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// A folder with a matrix in FP8 is the same model as one with that matrix's numbers in F32, and
// reports the memory it takes. Missing scales, and scales that do not fit, are refused by name.
func TestFP8Folder(t *testing.T) {
	f := keyFolder(t, synth.Small()[0])
	config, err := model.ReadFolder(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	const name = "model.layers.0.mlp.down_proj.weight"
	rows, cols := config.Hidden, config.FFN
	const block = 16
	across := (cols + block - 1) / block
	codes := map[byte]float32{0x38: 1, 0xb8: -1, 0x40: 2, 0xbc: -1.5, 0x30: 0.5, 0x00: 0, 0x01: 1.0 / 512, 0x7e: 448}
	var bytes []byte
	for code := range codes {
		bytes = append(bytes, code)
	}
	r := rand.New(rand.NewPCG(1, 2))
	weight := tensor.Tensor{Name: name, Type: numtype.F8_E4M3, Shape: []int{rows, cols}}
	scales := tensor.Tensor{Name: name + "_scale_inv", Type: tensor.F32, Shape: []int{(rows + block - 1) / block, across}}
	for range scales.Shape[0] * across {
		scales.Data = binary.LittleEndian.AppendUint32(scales.Data, math.Float32bits(r.Float32()/100))
	}
	plain := tensor.Tensor{Name: name, Type: tensor.F32, Shape: weight.Shape}
	for i := range rows * cols {
		code := bytes[r.IntN(len(bytes))]
		at := i/cols/block*across + i%cols/block
		scale := math.Float32frombits(binary.LittleEndian.Uint32(scales.Data[4*at:]))
		weight.Data = append(weight.Data, code)
		plain.Data = binary.LittleEndian.AppendUint32(plain.Data, math.Float32bits(codes[code]*scale))
	}
	how := map[string]any{"quantization_config": object{"quant_method": "fp8", "weight_block_size": []int{block, block}}}
	want, err := f.with(plain).logits(nil)
	if err != nil {
		t.Fatal(err)
	}
	quantized := f.with(weight, scales)
	got, err := quantized.logits(how)
	if err != nil || !sameBits(got, want) {
		t.Errorf("the FP8 folder is another model: %v", err)
	}
	memory, err := model.ReadMemory(quantized.dir)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, m := range memory {
		found = found || m.Type == numtype.F8_E4M3 && m.As == tensor.F32 && m.Tensors == 1 && m.File == int64(rows*cols)
	}
	if !found {
		t.Errorf("memory is %+v: want a tensor of F8_E4M3 as F32", memory)
	}
	if _, err := f.with(weight).logits(how); err == nil || !strings.Contains(err.Error(), scales.Name) {
		t.Errorf("without scales: %v", err)
	}
	how["quantization_config"] = object{"quant_method": "fp8", "weight_block_size": []int{block * 4, block}}
	if _, err := quantized.logits(how); err == nil || !strings.Contains(err.Error(), scales.Name) {
		t.Errorf("with scales of other blocks: %v", err)
	}
}

// So is a folder with a matrix in bytes and zero points, which says in the file that they are.
func TestIntegerFolder(t *testing.T) {
	f := keyFolder(t, synth.Small()[0])
	config, err := model.ReadFolder(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	const name = "model.layers.0.mlp.down_proj.weight"
	r := rand.New(rand.NewPCG(1, 2))
	codes := tensor.Tensor{Name: name, Type: numtype.I8, Shape: []int{config.Hidden, config.FFN}}
	zeros := tensor.Tensor{Name: name + "_zero_point", Type: numtype.I8, Shape: []int{config.Hidden, 1}}
	scales := tensor.Tensor{Name: name + "_scale", Type: tensor.F32, Shape: zeros.Shape}
	plain := tensor.Tensor{Name: name, Type: tensor.F32, Shape: codes.Shape}
	for range config.Hidden {
		zero, scale := int8(r.IntN(256)-128), r.Float32()/1000
		zeros.Data = append(zeros.Data, byte(zero))
		scales.Data = binary.LittleEndian.AppendUint32(scales.Data, math.Float32bits(scale))
		for range config.FFN {
			code := int8(r.IntN(256) - 128)
			codes.Data = append(codes.Data, byte(code))
			weight := (float32(code) - float32(zero)) * scale
			plain.Data = binary.LittleEndian.AppendUint32(plain.Data, math.Float32bits(weight))
		}
	}
	want, err := f.with(plain).logits(nil)
	if err != nil {
		t.Fatal(err)
	}
	how := map[string]any{"quantization_config": object{"quant_method": "compressed-tensors", "format": "int-quantized"}}
	if got, err := f.with(codes, zeros, scales).logits(how); err != nil || !sameBits(got, want) {
		t.Errorf("it is another model: %v", err)
	}
	how["quantization_config"] = object{"quant_method": "compressed-tensors", "format": "marlin-24"}
	if _, err := f.with(codes, zeros, scales).logits(how); err == nil || !strings.Contains(err.Error(), "marlin-24") {
		t.Errorf("with a format that grove does not read: %v", err)
	}
}

// So is a folder of bitsandbytes with a matrix in NF4.
func TestCodebookFolder(t *testing.T) {
	f := keyFolder(t, synth.Small()[0])
	config, err := model.ReadFolder(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	const name = "model.layers.0.mlp.down_proj.weight"
	r := rand.New(rand.NewPCG(1, 2))
	n := config.Hidden * config.FFN
	state := fmt.Appendf(nil, `{"blocksize": 16, "dtype": "bfloat16", "shape": [%d, %d]}`, config.Hidden, config.FFN)
	codes := tensor.Tensor{Name: name, Type: numtype.U8, Shape: []int{n / 2, 1}}
	values := tensor.Tensor{Name: name + ".quant_map", Type: tensor.F32, Shape: []int{16}}
	scales := tensor.Tensor{Name: name + ".absmax", Type: tensor.F32, Shape: []int{n / 16}}
	fields := tensor.Tensor{Name: name + ".quant_state.bitsandbytes__nf4", Type: numtype.U8, Shape: []int{len(state)},
		Data: state}
	plain := tensor.Tensor{Name: name, Type: tensor.BF16, Shape: []int{config.Hidden, config.FFN}}
	for i := range 16 {
		values.Data = binary.LittleEndian.AppendUint32(values.Data, math.Float32bits(float32(i-8)/8))
	}
	for block := range n / 16 {
		scale := float32(math.Ldexp(1, block%4-6)) // products are exact
		scales.Data = binary.LittleEndian.AppendUint32(scales.Data, math.Float32bits(scale))
		for range 8 {
			first, second := r.IntN(16), r.IntN(16)
			codes.Data = append(codes.Data, byte(first<<4|second))
			for _, code := range []int{first, second} {
				bits := math.Float32bits(float32(code-8) / 8 * scale)
				plain.Data = binary.LittleEndian.AppendUint16(plain.Data, uint16(bits>>16))
			}
		}
	}
	want, err := f.with(plain).logits(nil)
	if err != nil {
		t.Fatal(err)
	}
	how := map[string]any{"quantization_config": object{"quant_method": "bitsandbytes", "load_in_4bit": true}}
	quantized := f.with(codes, values, scales, fields)
	if got, err := quantized.logits(how); err != nil || !sameBits(got, want) {
		t.Errorf("it is another model: %v", err)
	}
	memory, err := model.ReadMemory(quantized.dir)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(memory, func(m model.TypeMemory) bool { return m.Type == numtype.NF4 && m.As == tensor.BF16 }) {
		t.Errorf("memory is %+v: want a tensor of NF4 as BF16", memory)
	}
}

// The product of latent attention, whose keys are transposed at load, may be in integers too: values run as Q8_0.
func TestIntegerLatentFolder(t *testing.T) {
	s, err := synth.Lookup("tiny-deepseek2")
	if err != nil {
		t.Fatal(err)
	}
	f := keyFolder(t, s)
	const name = "model.layers.0.self_attn.kv_b_proj.weight"
	rows, cols := 5*(32+24), 32
	r := rand.New(rand.NewPCG(1, 2))
	codes := tensor.Tensor{Name: name, Type: numtype.I8, Shape: []int{rows, cols}}
	scales := tensor.Tensor{Name: name + "_scale", Type: tensor.F32, Shape: []int{rows, 1}}
	plain := tensor.Tensor{Name: name, Type: tensor.F32, Shape: codes.Shape}
	for range rows {
		scales.Data = binary.LittleEndian.AppendUint32(scales.Data, math.Float32bits(1./256))
		for range cols {
			code := int8(r.IntN(256) - 128)
			codes.Data = append(codes.Data, byte(code))
			plain.Data = binary.LittleEndian.AppendUint32(plain.Data, math.Float32bits(float32(code)/256))
		}
	}
	want, err := f.with(plain).logits(nil)
	if err != nil {
		t.Fatal(err)
	}
	how := map[string]any{"quantization_config": object{"quant_method": "compressed-tensors", "format": "int-quantized"}}
	got, err := f.with(codes, scales).logits(how)
	if err != nil {
		t.Fatal(err)
	}
	far, size := 0., 0.
	for i, v := range want {
		far += math.Pow(float64(v-got[i]), 2)
		size += math.Pow(float64(v), 2)
	}
	if math.Sqrt(far/size) > .03 {
		t.Errorf("the logits differ by %.3f of their size", math.Sqrt(far/size))
	}
}
