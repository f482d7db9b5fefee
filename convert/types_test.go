package convert

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/model/synth"
	"github.com/grovellm/grove/safetensors"
	"github.com/grovellm/grove/tensor"
)

// Encoding anew gives what the encoding of the original numbers gives, and files that open.
func TestTypes(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{"tiny-llama2", "tiny-qwen3", "tiny-gptneox"} {
		s, dir := shape(t, name), t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		if err := synth.Write(ctx, at("f32.gguf"), s, synth.Options{Type: tensor.F32, Seed: 5}); err != nil {
			t.Fatal(err)
		}
		for _, typ := range []tensor.Type{tensor.F16, tensor.BF16, tensor.Q8_0} {
			if err := synth.Write(ctx, at("want.gguf"), s, synth.Options{Type: typ, Seed: 5}); err != nil {
				t.Fatal(err)
			}
			var done, total int64
			if _, err := Quantize(ctx, at("f32.gguf"), at("got.gguf"), Options{Type: typ, Progress: func(d, n int64) { done, total = d, n }}); err != nil {
				t.Fatal(err)
			}
			if done != total || total == 0 {
				t.Errorf("progress ended at %d of %d", done, total)
			}
			sameTensors(t, at("want.gguf"), at("got.gguf"))
			f, err := gguf.Open(at("got.gguf"))
			if err != nil {
				t.Fatal(err)
			}
			if n, _ := f.Uint("general.file_type"); uint32(n) != map[tensor.Type]uint32{tensor.F16: 1, tensor.Q8_0: 7, tensor.BF16: 32}[typ] {
				t.Errorf("%s in %v: file type %d", name, typ, n)
			}
			f.Close()
			logits(t, at("got.gguf"))
			if typ == tensor.Q8_0 {
				continue
			}
			hf := at("hf-" + typ.String())
			if _, err := ToHF(ctx, at("f32.gguf"), hf, Options{Type: typ}); err != nil {
				t.Fatal(err)
			}
			if s.Arch != "llama" {
				sameBits(t, "HF of another type", logits(t, hf), logits(t, at("got.gguf")))
			}
		}
		// and a quantized file as a folder, its numbers kept
		if _, err := ToHF(ctx, at("got.gguf"), at("hf-kept"), Options{Type: Keep}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestQuantizeNotes(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	w := gguf.NewWriter()
	w.Set("general.architecture", "other")
	for _, x := range []struct {
		name  string
		typ   tensor.Type
		shape []int
	}{{"odd", tensor.F32, []int{2, 33}}, {"even", tensor.F32, []int{2, 64}}, {"norm", tensor.F16, []int{64}}, {"again", tensor.Q8_0, []int{2, 64}}, {"ids", tensor.I32, []int{5}}} {
		size, err := x.typ.Size(tensor.Tensor{Shape: x.shape}.Elements())
		if err != nil {
			t.Fatal(err)
		}
		w.AddTensor(tensor.Tensor{Name: x.name, Type: x.typ, Shape: x.shape, Data: make([]byte, size)})
	}
	a, b := filepath.Join(dir, "a.gguf"), filepath.Join(dir, "b.gguf")
	if err := w.WriteFile(a); err != nil {
		t.Fatal(err)
	}
	notes, err := Quantize(ctx, a, b, Options{Type: tensor.Q8_0})
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "odd") {
		t.Errorf("notes %q, %v", notes, err)
	}
	f, err := gguf.Open(b)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, want := range map[string]tensor.Type{"odd": tensor.F16, "even": tensor.Q8_0, "norm": tensor.F32, "again": tensor.Q8_0, "ids": tensor.I32} {
		if x, _ := f.Tensor(name); x.Type != want {
			t.Errorf("%s is %v, want %v", name, x.Type, want)
		}
	}
}

// Vectors that the matrices' type holds exactly take it, so that a folder comes back as it was.
func TestVectorsExact(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := synth.WriteHF(ctx, at("a"), shape(t, "tiny-gptneox"), synth.Options{Type: tensor.BF16, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := ToGGUF(ctx, at("a"), at("a.gguf"), Options{Type: Keep}); err != nil {
		t.Fatal(err)
	}
	if _, err := ToHF(ctx, at("a.gguf"), at("b"), Options{Type: Keep}); err != nil {
		t.Fatal(err)
	}
	x, err := safetensors.Open(at("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	y, err := safetensors.Open(at("b"))
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	for _, info := range x.Tensors {
		p, _ := x.Tensor(info.Name)
		q, ok := y.Tensor(info.Name)
		if !ok || p.Type != q.Type || string(p.Data) != string(q.Data) {
			t.Errorf("tensor %s came back as %v, was %v", info.Name, q.Type, p.Type)
		}
	}
}
