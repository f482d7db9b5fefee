package model_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// memoryOver is the most memory that models of a type may take, relative to their file's size.
var memoryOver = []struct {
	typ  tensor.Type
	most float64
}{
	{tensor.F32, 1.01}, {tensor.F16, 1.01}, {tensor.BF16, 1.01}, {tensor.Q8_0, 1.01},
	{tensor.Q6_K, 1.01}, {tensor.Q5_K, 1.03}, {tensor.Q4_K, 1.04},
	{tensor.Q5_1, 1.01}, {tensor.Q5_0, 1.01}, {tensor.Q4_1, 1.01}, {tensor.Q4_0, 1.01},
	{tensor.MXFP4, 1.07}, {tensor.IQ4_NL, 1.01}, {numtype.IQ4_XS, 1.07},
	{numtype.Q3_K, 1.04}, {numtype.Q2_K, 1.01},
}

// writeTyped writes a model whose matrices are zeros of any type that grove reads,
// and returns the file's size.
func writeTyped(t testing.TB, path string, s synth.Shape, typ tensor.Type) int64 {
	t.Helper()
	one := s
	one.Layers = 1
	if err := synth.Write(context.Background(), path+".f16", one, synth.Options{Type: tensor.F16}); err != nil {
		t.Fatal(err)
	}
	f := must(gguf.Open(path + ".f16"))
	defer os.Remove(path + ".f16")
	defer f.Close()
	w := new(gguf.Writer)
	ggufkeys.SetAll(w, f)
	w.Set(s.Arch+".block_count", uint32(s.Layers))
	zeros := make([]byte, 1<<20)
	add := func(name string, info gguf.Info) {
		if len(info.Shape) < 2 {
			x := must(f.Load(info.Name))
			x.Name = name
			w.AddTensor(x)
			return
		}
		w.Add(name, typ, info.Shape, func(out io.Writer) error {
			for n := must(typ.Size(info.Shape[0] * info.Shape[1])); n > 0; {
				k, err := out.Write(zeros[:min(n, len(zeros))])
				if err != nil {
					return err
				}
				n -= k
			}
			return nil
		})
	}
	for _, info := range f.Tensors {
		part, layered := strings.CutPrefix(info.Name, "blk.0.")
		if !layered {
			add(info.Name, info)
			continue
		}
		for layer := range s.Layers {
			add(fmt.Sprintf("blk.%d.%s", layer, part), info)
		}
	}
	if err := w.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	return must(os.Stat(path)).Size()
}

// A model takes the memory that ReadMemory reports, and relative to its file's size
// no more than its type may.
func TestMemoryOfTypes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	for _, c := range memoryOver {
		for _, tied := range []bool{true, false} {
			s := synth.Shape{Name: "small", Arch: "qwen3", Vocab: 4096, Hidden: 256, Layers: 3, Heads: 4, KVHeads: 2,
				HeadDim: 64, FFN: 768, Context: 1024, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 64, Tied: tied, Tokens: synth.Qwen2}
			file := writeTyped(t, path, s, c.typ)
			types, err := model.ReadMemory(path)
			if err != nil {
				t.Fatal(err)
			}
			m, err := model.Open(path, model.Options{Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			var all, tensors int64
			for _, x := range types {
				all, tensors = all+x.Memory, tensors+x.File
			}
			want := int64(m.WeightBytes())
			if !tied { // the embedding keeps the file's form, for lookups
				want += int64(s.Vocab * must(c.typ.Size(s.Hidden)))
			}
			f := must(gguf.Open(path))
			for _, info := range f.Tensors {
				tensors -= info.Size
				if len(info.Shape) < 2 {
					want += int64(4 * info.Shape[0])
				}
			}
			f.Close()
			m.Close()
			if all != want || tensors != 0 {
				t.Errorf("%v, tied %v: takes %d bytes, ReadMemory says %d, and leaves out %d bytes of the file",
					c.typ, tied, want, all, -tensors)
			}
			if over := float64(all) / float64(file); over > c.most {
				t.Errorf("%v, tied %v: takes %.3f × the file: want at most %.3f", c.typ, tied, over, c.most)
			}
		}
	}
}

// A tensor of several matrices, such as experts, counts as one.
func TestMemoryCountsTensors(t *testing.T) {
	for _, s := range synth.Small() {
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := synth.Write(context.Background(), path, s, synth.Options{Type: tensor.F16}); err != nil {
			t.Fatal(err)
		}
		f := must(gguf.Open(path))
		c := s.Config()
		want := len(slices.DeleteFunc(slices.Clone(f.Tensors), func(t gguf.Info) bool { return c.Spare(t.Name) }))
		if _, ok := f.Tensor("rope_freqs.weight"); ok { // it becomes angles
			want--
		}
		f.Close()
		got := 0
		for _, x := range must(model.ReadMemory(path)) {
			got += x.Tensors
		}
		if got != want {
			t.Errorf("%s: %d tensors in memory, want %d", s.Name, got, want)
		}
	}
}

var resident = flag.Bool("resident", false, "measure the resident memory of models of all types (Linux)")

// residentEnv names the file that the process of TestResidentProcess opens.
const residentEnv = "GROVE_TEST_RESIDENT"

// TestResident prints the memory that models of some 300 million parameters take according to the
// system: go test ./internal/model -run TestResident -resident -v
func TestResident(t *testing.T) {
	if !*resident {
		t.Skip("takes some minutes and 1.3 GB of disk: give -resident")
	}
	path := filepath.Join(t.TempDir(), "m.gguf")
	fmt.Printf("| type | tied | file, MB | weights | resident | peak while loading |\n|---|---|---|---|---|---|\n")
	for _, c := range memoryOver {
		for _, tied := range []bool{true, false} {
			s := synth.Shape{Name: "medium", Arch: "qwen3", Vocab: 32768, Hidden: 1024, Layers: 16, Heads: 16, KVHeads: 8,
				HeadDim: 128, FFN: 3072, Context: 4096, NormEps: 1e-6, RopeBase: 1e6, RopeDims: 128, Tied: tied, Tokens: synth.Qwen2}
			file := float64(writeTyped(t, path, s, c.typ))
			weights := int64(0)
			for _, x := range must(model.ReadMemory(path)) {
				weights += x.Memory
			}
			cmd := exec.Command(os.Args[0], "-test.run=^TestResidentProcess$")
			cmd.Env = append(os.Environ(), residentEnv+"="+path)
			out, err := cmd.Output()
			var before, after, peak float64
			if _, err2 := fmt.Sscan(string(out), &before, &after, &peak); err != nil || err2 != nil {
				t.Fatal(string(out), err, err2)
			}
			fmt.Printf("| %v | %v | %.0f | %.3f | %.3f | %.3f |\n",
				c.typ, tied, file/1e6, float64(weights)/file, (after-before)/file, (peak-before)/file)
		}
	}
}

// TestResidentProcess is not a test: it opens a model in its own process and prints the process's
// resident memory before, after and at its peak.
func TestResidentProcess(t *testing.T) {
	path := os.Getenv(residentEnv)
	if path == "" {
		t.Skip("run by TestResident")
	}
	before := status(t, "VmRSS")
	m, err := model.Open(path, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println(before, status(t, "VmRSS"), status(t, "VmHWM"))
	m.Close()
}

// status returns a size from /proc/self/status, in bytes.
func status(t testing.TB, key string) int64 {
	for line := range strings.Lines(string(must(os.ReadFile("/proc/self/status")))) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			return must(strconv.ParseInt(strings.Fields(value)[0], 10, 64)) << 10
		}
	}
	t.Fatal("no", key)
	return 0
}
