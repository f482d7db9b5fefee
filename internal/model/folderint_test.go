package model

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/tensor"
)

// openModule opens testdata/integers.safetensors, which integers.py made, with one module's tensors.
func openModule(t *testing.T, module string) (*safetensors.File, *quantization) {
	t.Helper()
	f, err := safetensors.Open(filepath.Join("testdata", "integers.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	f.Drop(func(name string) bool { return !strings.HasPrefix(name, module+".") })
	q := &quantization{Bits: 4}
	q.Method, _, _ = strings.Cut(module, ".")
	if strings.HasSuffix(module, "8_0") {
		q.Bits = 8
	}
	switch {
	case q.Method == "gptq_v2":
		q.Method, q.Checkpoint = "gptq", q.Method
	case q.Method == "bitsandbytes":
	case strings.HasSuffix(module, "4_0"):
		q.Middle = true
	case q.Method != "compressed-tensors": // AutoRound writes the same tensors
		q.Method, q.Packing = "auto-round", "auto_round:auto_"+q.Method
	}
	if err := q.check(); err != nil {
		t.Error(err)
	}
	return f, q
}

// modules returns the names of the file's modules.
func modules(t *testing.T) (names []string) {
	f, _ := openModule(t, "gptq.Q4_0")
	f.Close()
	f, err := safetensors.Open(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, info := range f.Tensors {
		if module, ok := strings.CutSuffix(info.Name, ".expected"); ok {
			names = append(names, module)
		}
	}
	return names
}

// Weights of AWQ, GPTQ, compressed-tensors and bitsandbytes are those that the packages which write them mean. In the
// types of GGUF files, scales and zero points have half precision. Nothing remains of their other tensors.
func TestIntegerWeights(t *testing.T) {
	all := modules(t)
	if len(all) < 14 {
		t.Errorf("the file has the modules %v", all)
	}
	for _, module := range all {
		f, q := openModule(t, module)
		wide := slices.ContainsFunc(f.Tensors, func(info safetensors.Info) bool {
			return (strings.HasSuffix(info.Name, "_scale") || strings.HasSuffix(info.Name, ".SCB")) && info.Type == tensor.F32
		})
		if err := decodeFolder(f, q); err != nil {
			t.Errorf("%s: %v", module, err)
			continue
		}
		x, ok := f.Tensor(module + ".weight")
		expected, _ := f.Tensor(module + ".expected")
		if !ok || len(f.Tensors) != 2 || !strings.HasSuffix(module, "."+x.Type.String()) {
			t.Errorf("%s: it became %v, among %d tensors", module, x.Type, len(f.Tensors))
			continue
		}
		want, err := expected.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		near := 0.
		if x.Type == tensor.Q4_1 || x.Type != tensor.F32 && wide {
			near = math.Ldexp(float64(slices.Max(want)), -9)
		}
		for range 2 { // the second reading decodes again
			got, err := x.Float32s()
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range got {
				if math.Abs(float64(v-want[i])) > near {
					t.Errorf("%s: weight %d is %g, want %g within %g", module, i, v, want[i], near)
					break
				}
			}
		}
		rows := x.Rows()
		part := make([]float32, 2*x.Cols())
		for _, r := range []int{rows - 2, 0, rows / 2} {
			if err := x.DequantizeRows(part, r, r+2); err != nil || math.Abs(float64(part[x.Cols()]-want[(r+1)*x.Cols()])) > near {
				t.Errorf("%s: row %d begins with %g: %v", module, r+1, part[x.Cols()], err)
			}
		}
	}
}

// Tensors that are missing or do not fit are refused by name, whichever of a module's they are.
func TestIntegerWeightsRefusals(t *testing.T) {
	for _, module := range modules(t) {
		f, _ := openModule(t, module)
		var names []string
		for _, info := range f.Tensors {
			names = append(names, info.Name)
		}
		for _, name := range names {
			f, q := openModule(t, module)
			x, _ := f.Tensor(name)
			x, err := x.ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			vector := len(x.Shape) == 1 && !strings.HasSuffix(name, "g_idx")
			if len(x.Shape) == 0 || vector || x.Shape[0] == 1 || strings.HasSuffix(name, ".expected") {
				continue
			}
			x.Data = x.Data[len(x.Data)/x.Shape[0]:] // without the first row
			x.Shape = slices.Clone(x.Shape)
			x.Shape[0]--
			cut := x
			x.Reader = func(dst []byte, r0, r1 int) error { return cut.ReadRows(dst, r0, r1) }
			f.Replace(name, x, x.Type)
			if err := decodeFolder(f, q); err == nil || !strings.Contains(err.Error(), module) {
				t.Errorf("%s without a row: %v", name, err)
			}
			if !strings.HasSuffix(name, "scales") && !strings.HasSuffix(name, "_scale") || strings.Contains(name, ".bytes.") {
				continue
			}
			f, q = openModule(t, module)
			f.Drop(func(other string) bool { return other == name })
			if err := decodeFolder(f, q); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("without %s: %v", name, err)
			}
		}
	}
	for _, module := range []string{"awq.Q4_1", "gptq.Q4_1"} {
		f, q := openModule(t, module)
		q.Middle = true
		if err := decodeFolder(f, q); err == nil || !strings.Contains(err.Error(), module+".qzeros") {
			t.Errorf("%s with zero points that it should not have: %v", module, err)
		}
	}
	f, _ := openModule(t, "awq.Q4_1")
	if err := decodeFolder(f, nil); err == nil || !strings.Contains(err.Error(), "quantization_config") {
		t.Errorf("without a quantization_config: %v", err)
	}
}
