package model

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/tensor"
)

// Quantized weights are decoded as torch decodes them, bit for bit except for the sign of zeros.
// Nothing remains of their scales. testdata/quantized.py made the file.
func TestQuantizedWeightsAgainstTorch(t *testing.T) {
	f, err := safetensors.Open(filepath.Join("testdata", "quantized.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := decodeFolder(f, nil); err != nil {
		t.Fatal(err)
	}
	if len(f.Tensors) != len(f.Metadata) || len(f.Tensors) != 6 {
		t.Errorf("there are %d tensors, want those of %d modules", len(f.Tensors), len(f.Metadata))
	}
	for _, info := range f.Tensors {
		x, err := f.Load(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		values, err := x.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		h := fnv.New64a()
		for _, v := range values {
			if v == 0 {
				v = 0 // without the sign
			}
			h.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)))
		}
		if got := fmt.Sprintf("%016x", h.Sum64()); got != f.Metadata[info.Name] {
			t.Errorf("%s: the numbers have the sum %s, want %s", info.Name, got, f.Metadata[info.Name])
		}
		stored, ok := f.Stored(info.Name)
		want := tensor.Type(numtype.F8_E4M3)
		if info.Name == "packed.weight" || info.Name == "modelopt.weight" {
			want = numtype.NVFP4
		}
		if !ok || stored != want || x.Type != tensor.F32 {
			t.Errorf("%s is stored as %v and read as %v, want %v and F32", info.Name, stored, x.Type, want)
		}
		part := make([]float32, x.Cols())
		for _, r := range []int{x.Rows() - 1, x.Rows() / 2} { // single rows
			if err := x.DequantizeRows(part, r, r+1); err != nil {
				t.Fatal(err)
			}
			for c, v := range part {
				if v != values[r*x.Cols()+c] {
					t.Fatalf("%s: row %d alone has %g at %d, want %g", info.Name, r, v, c, values[r*x.Cols()+c])
				}
			}
		}
	}
}

// Only quantization that grove does not read is refused, by its name.
func TestQuantizationConfig(t *testing.T) {
	for config, word := range map[string]string{
		`{"quant_method": "eetq"}`:                                                    `quant_method "eetq"`,
		`{"quant_method": "awq", "bits": 4, "version": "gemv"}`:                       `version "gemv, of 4 bits"`,
		`{"quant_method": "awq"}`:                                                     "of 0 bits",
		`{"quant_method": "gptq", "bits": 3}`:                                         "of 3 bits",
		`{"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"}`:          `"marlin, of 4 bits"`,
		`{"quant_method": "gptq", "bits": 4, "dynamic": {"+:.*down.*": {"bits": 8}}}`: `dynamic "+:.*down.*"`,
		`{"quant_method": "mxfp4"}`:                                                   `"mxfp4"`,
		`{}`:                                                                          `quant_method ""`,
		`{"quant_method": "fp8", "fmt": "e5m2"}`:                                      `fmt "e5m2"`,
		`{"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}`:                      `quant_algo "W4A8_AWQ"`,
		`{"quant_method": "compressed-tensors", "format": "marlin-24"}`:               `format "marlin-24"`,
		`{"quant_method": "compressed-tensors", "format": "mixed-precision", "config_groups": {"a": {"format": "mxfp4-pack-quantized"}}}`: `format "mxfp4-pack-quantized"`,
		`{"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {"a": {"weights": {"symmetric": false}}}}`:  "zero points",
		`{"quant_method": "compressed-tensors", "format": "float-quantized", "transform_config": {"config_groups": {"u": {}}}}`:           "transform_config",
		`{"quant_method": "compressed-tensors", "format": "float-quantized", "sparsity_config": {"format": "sparse-24-bitmask"}}`:         "sparse-24-bitmask",

		`{"quant_method": "auto-round", "bits": 4, "packing_format": "auto_round:llm_compressor"}`:                                   `packing_format "auto_round:llm_compressor`,
		`{"quant_method": "auto-round", "bits": 4, "packing_format": "auto_round:auto_gptq", "extra_config": {"down": {"bits": 8}}}`: `extra_config "down"`,

		`null`: "",
		`{"quant_method": "bitsandbytes", "load_in_4bit": true, "bnb_4bit_quant_type": "nf4"}`:                                                                                             "",
		`{"quant_method": "auto-round", "bits": 4, "packing_format": "auto_round:auto_gptq", "extra_config": {"lm_head": {"bits": 16, "data_type": "float"}, "gate": {"group_size": 32}}}`: "",
		`{"quant_method": "awq", "bits": 4, "group_size": 128, "version": "GEMM", "zero_point": true}`:                                                                                     "",
		`{"quant_method": "gptq", "bits": 8, "desc_act": true, "dynamic": {"-:.*head.*": {}}, "checkpoint_format": "gptq"}`:                                                                "",
		`{"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"a": {"weights": {"symmetric": false, "type": "int"}}}}`:                                     "",
		`{"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}`:                                                                          "",
		`{"quant_method": "modelopt", "quant_algo": "NVFP4"}`:                                                                                                                              "",
		`{"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "sparsity_config": {}, "transform_config": {},
			"config_groups": {"group_0": {"weights": {"symmetric": true, "group_size": 16, "type": "float"}}}}`: "",
	} {
		var q *quantization
		if err := json.Unmarshal([]byte(config), &q); err != nil {
			t.Fatal(err)
		}
		err := q.check()
		if (err == nil) != (word == "") || err != nil && !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v, want %q", config, err, word)
		}
	}
	for config, want := range map[string][2]int{
		`null`:                            {128, 128},
		`{"weight_block_size": [64, 32]}`: {64, 32},
		`{"weight_block_size": null}`:     {128, 128},
		`{"config_groups": {"a": {"weights": {"block_structure": [128, 64]}}}}`: {128, 64},
		`{"config_groups": {"a": {"weights": {"group_size": 32}}}}`:             {1, 32},
	} {
		var q *quantization
		if err := json.Unmarshal([]byte(config), &q); err != nil {
			t.Fatal(err)
		}
		if got := q.block(); got != want {
			t.Errorf("%s: blocks of %v, want %v", config, got, want)
		}
	}
}
