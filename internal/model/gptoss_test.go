package model_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// codes are experts' matrices in MXFP4: an element's four bits, and a block's exponent.
type codes struct {
	experts, rows, cols int
	bits, exponents     []byte
}

func randomCodes(r *rand.Rand, experts, rows, cols int) *codes {
	x := &codes{experts: experts, rows: rows, cols: cols}
	for range experts * rows * cols {
		x.bits = append(x.bits, byte(r.IntN(16)))
	}
	for range experts * rows * cols / 32 {
		x.exponents = append(x.exponents, byte(115+r.IntN(10)))
	}
	return x
}

// file returns the tensor as in a GGUF file: byte i of a block has elements i and i + 16.
func (x *codes) file(name string) tensor.Tensor {
	t := tensor.Tensor{Name: name, Type: tensor.MXFP4, Shape: []int{x.experts, x.rows, x.cols}}
	for b, e := range x.exponents {
		t.Data = append(t.Data, e)
		for i := range 16 {
			t.Data = append(t.Data, x.bits[32*b+i]|x.bits[32*b+16+i]<<4)
		}
	}
	return t
}

// folderPair returns the two tensors of a folder, whose rows alternate between the matrices: byte i
// of a block has elements 2i and 2i + 1.
func folderPair(name string, list ...*codes) []tensor.Tensor {
	x := list[0]
	shape := []int{x.experts, len(list) * x.rows, x.cols / 32}
	blocks := tensor.Tensor{Name: name + "_blocks", Type: numtype.U8, Shape: append(slices.Clone(shape), 16)}
	scales := tensor.Tensor{Name: name + "_scales", Type: numtype.U8, Shape: shape}
	for row := range x.experts * x.rows {
		for _, y := range list {
			for b := row * x.cols / 32; b < (row+1)*x.cols/32; b++ {
				scales.Data = append(scales.Data, y.exponents[b])
				for i := range 16 {
					blocks.Data = append(blocks.Data, y.bits[32*b+2*i]|y.bits[32*b+2*i+1]<<4)
				}
			}
		}
	}
	return []tensor.Tensor{blocks, scales}
}

// replaced returns a file's tensors, without those whose names drop selects, and others in addition.
func replaced(all []string, get func(name string) (tensor.Tensor, bool), drop func(name string) bool,
	more []tensor.Tensor) (list []tensor.Tensor) {
	for _, name := range all {
		if t, ok := get(name); ok && !drop(name) {
			list = append(list, t)
		}
	}
	return append(list, more...)
}

// mxfp4Folder writes a random gpt-oss model with experts in MXFP4, as a folder and as a GGUF file.
func mxfp4Folder(t *testing.T, r *rand.Rand) (f *folder, path string) {
	t.Helper()
	small := synth.Small()
	s := small[slices.IndexFunc(small, func(s synth.Shape) bool { return s.Arch == "gpt-oss" })]
	s.Hidden, s.FFN = 32*(1+r.IntN(3)), 32*(1+r.IntN(3))
	experts := 1 + r.IntN(5)
	tune := s.Tune
	s.Tune = func(c *model.Config) {
		tune(c)
		c.Experts, c.Used = experts, 1+experts/3
	}
	plain, file := keyFolder(t, s), keyFile(t, s)
	var inFolder, inFile []tensor.Tensor
	for _, layer := range []string{"0", "1"} {
		gate := randomCodes(r, experts, s.FFN, s.Hidden)
		up := randomCodes(r, experts, s.FFN, s.Hidden)
		down := randomCodes(r, experts, s.Hidden, s.FFN)
		blk, prefix := "blk."+layer+".ffn_", "model.layers."+layer+".mlp.experts."
		inFile = append(inFile, gate.file(blk+"gate_exps.weight"), up.file(blk+"up_exps.weight"),
			down.file(blk+"down_exps.weight"))
		inFolder = slices.Concat(inFolder, folderPair(prefix+"gate_up_proj", gate, up), folderPair(prefix+"down_proj", down))
	}

	from, err := safetensors.OpenFolder(plain.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	f = &folder{t: t, dir: t.TempDir(), fields: plain.fields}
	f.fields["quantization_config"] = object{"quant_method": "mxfp4"}
	var names []string
	for _, info := range from.Tensors {
		names = append(names, info.Name)
	}
	w := safetensors.NewWriter()
	for _, x := range replaced(names, from.Tensor, func(name string) bool { return strings.HasSuffix(name, "_proj") },
		inFolder) {
		w.AddTensor(x)
	}
	if err := w.WriteFile(filepath.Join(f.dir, "model.safetensors")); err != nil {
		t.Fatal(err)
	}

	names = nil
	for _, info := range file.Tensors {
		names = append(names, info.Name)
	}
	g := new(gguf.Writer)
	ggufkeys.SetAll(g, file)
	for _, x := range replaced(names, file.Tensor, func(name string) bool {
		return strings.HasSuffix(name, "_exps.weight")
	}, inFile) {
		g.AddTensor(x)
	}
	path = filepath.Join(t.TempDir(), "m.gguf")
	if err := g.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	return f, path
}

// A gpt-oss folder with experts in MXFP4 is, to the bit, the same model as the GGUF file with the
// same numbers, and takes the same memory.
func TestMXFP4Folder(t *testing.T) {
	for seed := range uint64(6) {
		f, path := mxfp4Folder(t, rand.New(rand.NewPCG(seed, 1)))
		got, err := f.logits(nil)
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.Open(path, model.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		if !sameBits(got, logitsOf(t, m)) {
			t.Errorf("seed %d: the folder and the file are two models", seed)
		}
		a, err1 := model.ReadMemory(f.dir)
		b, err2 := model.ReadMemory(path)
		for i := range a { // gate and up are one tensor in the folder
			a[i].Tensors, b[i].Tensors = 0, 0
		}
		if err1 != nil || err2 != nil || !slices.Equal(a, b) {
			t.Errorf("seed %d: weights take %+v from the folder, %+v from the file: %v, %v", seed, a, b, err1, err2)
		}
	}
}

// Parts that a gpt-oss folder lacks, has twice, or has in another form are refused by name.
func TestMXFP4FolderRefusals(t *testing.T) {
	f, _ := mxfp4Folder(t, rand.New(rand.NewPCG(9, 1)))
	for _, change := range []map[string]any{
		{"rope_scaling": gone{}}, {"attention_bias": false}, {"quantization_config": object{"quant_method": "fp8"}},
		{"swiglu_limit": 6}, {"num_experts_per_tok": 9},
	} {
		for name := range change {
			if _, err := f.logits(change); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%v: %v", change, err)
			}
		}
	}
	const prefix = "model.layers.1.mlp.experts."
	for _, x := range []tensor.Tensor{
		filled(t, prefix+"down_proj_scales", 1, 2, 3), filled(t, prefix+"down_proj_blocks", 1, 2, 3),
		{Name: prefix + "down_proj_blocks", Type: numtype.U8, Shape: []int{1, 2, 3}, Data: make([]byte, 6)},
		{Name: prefix + "gate_up_proj_scales", Type: numtype.U8, Shape: []int{1, 2, 3}, Data: make([]byte, 6)},
		filled(t, prefix+"gate_up_proj", 1, 2, 3), filled(t, prefix+"down_proj_bias", 1, 2, 3),
		filled(t, prefix+"gate_up_proj_bias", 1, 2, 3), filled(t, prefix+"gate_up_proj.weight", 1, 2, 3),
	} {
		if _, err := f.with(x).logits(nil); err == nil || !strings.Contains(err.Error(), x.Name) {
			t.Errorf("tensor %s of %v: %v", x.Name, x.Type, err)
		}
	}
	for _, name := range []string{prefix + "down_proj_scales", prefix + "gate_up_proj_blocks"} {
		if _, err := f.without(name).logits(nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
