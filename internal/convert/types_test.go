package convert

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// Encoding a second time gives the same result as encoding the original numbers, and files that open.
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
			if _, err := Quantize(ctx, at("f32.gguf"), at("got.gguf"),
				Options{Type: typ, Progress: func(d, n int64) { done, total = d, n }}); err != nil {
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
			if n, _ := gguf.Get[uint64](f, "general.file_type"); uint32(n) != map[tensor.Type]uint32{tensor.F16: 1,
				tensor.Q8_0: 7,
				tensor.BF16: 32}[typ] {
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

// A model in a type of few bits has its output matrix in Q6_K, or Q8_0 if its rows are not a
// multiple of 256; other such rows have llama.cpp's next type of blocks of 32. Numbers are close to
// the original's, one note reports each kind of change, and the model runs.
func TestFewBits(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	next := map[tensor.Type]tensor.Type{tensor.Q4_K: tensor.Q5_0, tensor.Q5_K: tensor.Q5_1, tensor.Q6_K: tensor.Q8_0}
	bounds := map[tensor.Type]float64{tensor.Q4_0: .09, tensor.Q4_1: .08, tensor.Q5_0: .05, tensor.Q5_1: .04,
		tensor.Q4_K: .08, tensor.Q5_K: .04, tensor.Q6_K: .02, tensor.Q8_0: .01}
	for i, width := range []int{256, 256, 64, 192} {
		tied := i%2 == 1
		s := synth.Shape{Name: "k", Arch: "qwen3", Vocab: 500, Hidden: width, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 64,
			FFN: 544, Context: 256,
			NormEps: 1e-6, RopeBase: 1e6, RopeDims: 64, Tied: tied, Tokens: synth.Qwen2}
		if err := synth.Write(ctx, at("f32.gguf"), s, synth.Options{Type: tensor.F32, Seed: 3}); err != nil {
			t.Fatal(err)
		}
		from, err := gguf.Open(at("f32.gguf"))
		if err != nil {
			t.Fatal(err)
		}
		defer from.Close()
		for _, typ := range []tensor.Type{tensor.Q4_0, tensor.Q4_1, tensor.Q5_0, tensor.Q5_1, tensor.Q4_K,
			tensor.Q5_K, tensor.Q6_K} {
			notes, err := Quantize(ctx, at("f32.gguf"), at("k.gguf"), Options{Type: typ})
			if err != nil {
				t.Fatal(err)
			}
			to, err := gguf.Open(at("k.gguf"))
			if err != nil {
				t.Fatal(err)
			}
			changes := map[string]bool{}
			for _, info := range to.Tensors {
				x, err1 := from.Load(info.Name)
				y, err2 := to.Load(info.Name)
				if err1 != nil || err2 != nil {
					t.Fatal(err1, err2)
				}
				if len(y.Shape) < 2 {
					continue
				}
				want := typ
				output := y.Name == "output.weight" || tied && y.Name == "token_embd.weight"
				if output {
					want = tensor.Q6_K
				}
				if block, _ := want.Block(); y.Cols()%block != 0 {
					want = next[want]
				}
				if want != typ {
					changes[fmt.Sprint(want, output && typ != tensor.Q6_K)] = true
				}
				if y.Type != want {
					t.Errorf("%v, width %d, tied %v: %s is %v, want %v", typ, width, tied, y.Name, y.Type, want)
				}
				if e := relative(t, x, y); e > bounds[want] {
					t.Errorf("%s in %v is off by %.3f of its size", y.Name, y.Type, e)
				}
			}
			if len(notes) != len(changes) {
				t.Errorf("%v, width %d, tied %v: the changes are %v, the notes %q", typ, width, tied, changes, notes)
			}
			to.Close()
			logits(t, at("k.gguf"))
		}
	}
}

// relative returns the root of the mean squared difference, relative to that of x.
func relative(t *testing.T, x, y tensor.Tensor) float64 {
	a, err1 := x.Float32s()
	b, err2 := y.Float32s()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	var d, n float64
	for i := range a {
		d, n = d+float64(a[i]-b[i])*float64(a[i]-b[i]), n+float64(a[i])*float64(a[i])
	}
	return math.Sqrt(d / n)
}

// A layer after the model's, which drafts, keeps 8 bits, and a model's output matrix those of Q6_K
// or, in short rows, of Q8_0; a head's output matrix only ranks guesses.
func TestQuantizeKeepsBits(t *testing.T) {
	for arch, want := range map[string]map[string]tensor.Type{
		"qwen3": {"blk.3.nextn.eh_proj.weight": tensor.Q8_0, "blk.3.attn_q.weight": tensor.Q8_0,
			"blk.2.attn_q.weight": tensor.Q4_0, "output.weight": tensor.Q8_0, "token_embd.weight": tensor.Q4_0},
		"llama":  {"blk.2.attn_q.weight": tensor.Q4_0, "token_embd.weight": tensor.Q8_0},
		"eagle3": {"fc.weight": tensor.Q4_0, "output.weight": tensor.Q4_0},
		"eagle2": {"blk.0.nextn.eh_proj.weight": tensor.Q8_0, "output.weight": tensor.Q8_0},
	} {
		t.Run(arch, func(t *testing.T) { testBits(t, arch, want) })
	}
}

func testBits(t *testing.T, arch string, want map[string]tensor.Type) {
	dir, w := t.TempDir(), new(gguf.Writer)
	w.Set("general.architecture", arch)
	for name := range want {
		w.AddTensor(tensor.Tensor{Name: name, Type: tensor.F32, Shape: []int{2, 32}, Data: make([]byte, 256)})
	}
	a, b := filepath.Join(dir, "a.gguf"), filepath.Join(dir, "b.gguf")
	if err := w.WriteFile(a); err != nil {
		t.Fatal(err)
	}
	if _, err := Quantize(context.Background(), a, b, Options{Type: tensor.Q4_0}); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(b)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, typ := range want {
		if x, _ := f.Tensor(name); x.Type != typ {
			t.Errorf("%s is %v, want %v", name, x.Type, typ)
		}
	}
}

func TestQuantizeNotes(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	w := new(gguf.Writer)
	w.Set("general.architecture", "other")
	for _, x := range []struct {
		name  string
		typ   tensor.Type
		shape []int
	}{{"odd", tensor.F32, []int{2, 33}}, {"even", tensor.F32, []int{2, 64}}, {"norm", tensor.F16, []int{64}},
		{"again", tensor.Q8_0, []int{2, 64}}, {"ids", numtype.I32, []int{5}}} {
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
	for name, want := range map[string]tensor.Type{"odd": tensor.F16, "even": tensor.Q8_0, "norm": tensor.F32,
		"again": tensor.Q8_0, "ids": numtype.I32} {
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
		p, err1 := p.ReadAll()
		q, err2 := q.ReadAll()
		if !ok || err1 != nil || err2 != nil || p.Type != q.Type || string(p.Data) != string(q.Data) {
			t.Errorf("tensor %s came back as %v, was %v", info.Name, q.Type, p.Type)
		}
	}
}
