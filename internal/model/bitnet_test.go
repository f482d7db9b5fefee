package model_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/kernels/num"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// ternaryFolder is a folder of BitNet's whose products have weights −1, 0 and 1, times a scale of each.
type ternaryFolder struct {
	*folder
	names  []string
	shapes map[string][]int
	values map[string][]float32
}

const ternaryScale = 0.0625

func newTernaryFolder(t *testing.T) *ternaryFolder {
	t.Helper()
	s := synth.Shape{Name: "bitnet", Arch: "bitnet-b1.58", Vocab: 400, Hidden: 256, Layers: 2,
		Heads: 4, KVHeads: 2, HeadDim: 64, FFN: 512, Context: 64, NormEps: 1e-5, RopeBase: 5e5, RopeDims: 64,
		Tied: true, Tokens: synth.Qwen2}
	f := &ternaryFolder{folder: keyFolder(t, s), shapes: map[string][]int{}, values: map[string][]float32{}}
	from, err := safetensors.OpenFolder(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	r := rand.New(rand.NewPCG(1, 2))
	for _, info := range from.Tensors {
		if !strings.HasSuffix(info.Name, "_proj.weight") {
			continue
		}
		v := make([]float32, product(info.Shape))
		for i := range v {
			v[i] = float32(r.IntN(3) - 1)
		}
		f.names = append(f.names, info.Name)
		f.shapes[info.Name], f.values[info.Name] = info.Shape, v
	}
	return f
}

// written writes the products as made by form, which is given each one's name, shape and values.
func (f *ternaryFolder) written(form func(name string, shape []int, v []float32) []tensor.Tensor) *folder {
	f.t.Helper()
	var list []tensor.Tensor
	for _, name := range f.names {
		list = append(list, form(name, f.shapes[name], f.values[name])...)
	}
	return f.with(list...)
}

// packed packs four rows in one, as transformers does.
func packed(name string, shape []int, v []float32) tensor.Tensor {
	rows, cols := shape[0], shape[1]
	x := tensor.Tensor{Name: name, Type: numtype.U8, Shape: []int{rows / 4, cols}, Data: make([]byte, rows/4*cols)}
	for i, q := range v {
		r := i / cols
		x.Data[r%(rows/4)*cols+i%cols] |= byte(q+1) << (2 * (r / (rows / 4)))
	}
	return x
}

func ternaryFields(class, mode string) object {
	return object{"quantization_config": object{"quant_method": "bitnet", "linear_class": class, "quantization_mode": mode}}
}

// Weights are the same numbers in all forms of BitNet's folders. Logits of different types of weights would differ:
// where sums are rounded differently, inputs are now and then rounded to another integer.
func TestTernaryFolders(t *testing.T) {
	f := newTernaryFolder(t)
	for _, c := range []struct {
		class   string
		scale   float32
		weights func(name string, shape []int, v []float32) tensor.Tensor
		typ     tensor.Type
	}{
		{"autobitlinear", ternaryScale, packed, numtype.TQ2_0},
		{"bitlinear", 1 / float32(ternaryScale), packed, numtype.TQ2_0},
		{"autobitlinear", ternaryScale, func(name string, shape []int, v []float32) tensor.Tensor {
			w, _ := tensor.FromFloat32s(name, tensor.F32, shape, v)
			return w
		}, tensor.F32},
	} {
		form := f.written(func(name string, shape []int, v []float32) []tensor.Tensor {
			return []tensor.Tensor{c.weights(name, shape, v), filled(t, name+"_scale", c.scale, 1)}
		})
		if _, err := form.logits(ternaryFields(c.class, "offline")); err != nil {
			t.Fatal(err)
		}
		_, file, err := model.OpenFolder(form.dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range f.names {
			x, _ := file.Tensor(name)
			got, err := x.Float32s()
			if err != nil || x.Type != c.typ {
				t.Fatalf("%s is %v, want %v: %v", name, x.Type, c.typ, err)
			}
			for i, q := range f.values[name] {
				if got[i] != q*ternaryScale {
					t.Fatalf("%s: weight %d is %g, want %g", name, i, got[i], q*ternaryScale)
				}
			}
		}
		file.Close()
	}

	// Before rounding: the scale is the mean magnitude, rounded to BF16 like the weights.
	means := map[string]float32{}
	online := f.written(func(name string, shape []int, v []float32) []tensor.Tensor {
		r := rand.New(rand.NewPCG(3, 4))
		x, sum := make([]float32, len(v)), float32(0)
		for i, q := range v {
			x[i] = num.BF16(num.ToBF16((q + 0.4*(r.Float32()-0.5)) / 8))
			sum += max(x[i], -x[i])
		}
		means[name] = num.BF16(num.ToBF16(sum / float32(len(v))))
		w, _ := tensor.FromFloat32s(name, tensor.BF16, shape, x)
		return []tensor.Tensor{w}
	}).without("_proj.weight_scale")
	got, err := online.logits(ternaryFields("autobitlinear", "online"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := f.written(func(name string, shape []int, v []float32) []tensor.Tensor {
		return []tensor.Tensor{packed(name, shape, v), filled(t, name+"_scale", means[name], 1)}
	}).logits(ternaryFields("autobitlinear", "offline"))
	if err != nil || !sameBits(got, want) {
		t.Errorf("weights before rounding are another model: %v", err)
	}
	memory, err := model.ReadMemory(online.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range memory {
		if m.Type == tensor.BF16 && m.As != numtype.TQ2_0 {
			t.Errorf("memory is %+v: want TQ2_0", memory)
		}
	}
}

// Forms of BitNet's folders that grove does not compute are refused by name.
func TestTernaryFoldersRefused(t *testing.T) {
	f := newTernaryFolder(t)
	form := f.written(func(name string, shape []int, v []float32) []tensor.Tensor {
		return []tensor.Tensor{packed(name, shape, v), filled(t, name+"_scale", 1, 1)}
	})
	bad := func(field string, v any) object {
		q := object{"quant_method": "bitnet", "linear_class": "autobitlinear", field: v}
		return object{"quantization_config": q}
	}
	for want, change := range map[string]object{
		"quant_method": {"quantization_config": gone{}}, "use_rms_norm": bad("use_rms_norm", true),
		"linear_class": bad("linear_class", "other"), "quantization_mode": bad("quantization_mode", "half"),
		"modules_to_not_convert": bad("modules_to_not_convert", []string{"q_proj"}),
	} {
		if _, err := form.logits(change); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v: want an error about %s", change, err, want)
		}
	}
	const name = "model.layers.1.mlp.down_proj.weight"
	for what, folder := range map[string]*folder{
		name + "_scale": form.without(name + "_scale"),
		"one positive":  form.with(filled(t, name+"_scale", 1, 2)),
		"a weight is 2": form.with(tensor.Tensor{Name: name, Type: numtype.U8, Shape: []int{64, 512},
			Data: bytes.Repeat([]byte{255}, 64*512)}),
		"half precision": form.with(filled(t, name+"_scale", 1e-9, 1)),
	} {
		_, err := folder.logits(ternaryFields("autobitlinear", "offline"))
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v: want an error about %s", err, what)
		}
	}
}
