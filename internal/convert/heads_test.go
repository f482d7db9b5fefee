package convert

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/falcon"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/specblock"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// targets writes a model in both forms, and returns its configuration.
func targets(t *testing.T, dir string) model.Config {
	t.Helper()
	s, o := shape(t, "tiny-qwen3"), synth.Options{Type: tensor.F32, Seed: 1}
	if err := synth.WriteHF(t.Context(), filepath.Join(dir, "target"), s, o); err != nil {
		t.Fatal(err)
	}
	if err := synth.Write(t.Context(), filepath.Join(dir, "target.gguf"), s, o); err != nil {
		t.Fatal(err)
	}
	c, err := model.ReadFolder(filepath.Join(dir, "target"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// contents returns a folder's tensors by name.
func contents(t *testing.T, dir string) map[string]tensor.Tensor {
	t.Helper()
	f, err := safetensors.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	all := map[string]tensor.Tensor{}
	for _, x := range f.Tensors {
		lazy, _ := f.Tensor(x.Name)
		if all[x.Name], err = lazy.ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// sameFolders reports differences between the tensors of two folders.
func sameFolders(t *testing.T, a, b string) {
	t.Helper()
	x, y := contents(t, a), contents(t, b)
	if len(x) != len(y) {
		t.Errorf("%d tensors, want %d", len(y), len(x))
	}
	for name, p := range x {
		if q := y[name]; p.Type != q.Type || !slices.Equal(p.Shape, q.Shape) || !bytes.Equal(p.Data, q.Data) {
			t.Errorf("tensor %s came back as %v of shape %v, was %v of shape %v", name, q.Type, q.Shape, p.Type, p.Shape)
		}
	}
}

// EAGLE heads go from folders of either layout to GGUF and back, tensor by tensor, with every
// variant and with or without a draft vocabulary. SpecBlock heads do too.
func TestEagleHeads(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	target := targets(t, dir)
	for seed := range uint64(6) {
		c := synthetic.Config[eagle.Config](rand.New(rand.NewPCG(seed, 8)), fmt.Sprint("eagle", 3-int(seed%3/2)), target,
			tensor.F32)
		weights, err := synthetic.Tensors(&c, tensor.F32, seed)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(weights, func(w tensor.Tensor) bool { return w.Name == "output.weight" }) {
			own, err := tensor.FromFloat32s("output.weight", tensor.F32, []int{c.DraftVocab, c.Hidden},
				make([]float32, c.DraftVocab*c.Hidden))
			if err != nil {
				t.Fatal(err)
			}
			weights = append(weights, own)
		}
		sub := t.TempDir()
		in := func(name string) string { return filepath.Join(sub, name) }
		if err := headfile.WriteFolder(in("a"), &c, weights, synthetic.Tokens(&c, seed)); err != nil {
			t.Fatal(err)
		}
		notes, err := ToGGUF(ctx, in("a"), in("b.gguf"), Options{Type: Keep, Target: at("target")})
		if err != nil || (len(notes) > 0) != (c.Foreign() != "") {
			t.Fatalf("%+v: %v, %v", c, notes, err)
		}
		if _, err := ToHF(ctx, in("b.gguf"), in("c"), Options{Type: Keep}); err != nil {
			t.Fatal(err)
		}
		sameFolders(t, in("a"), in("c"))
		_, err = ToHF(ctx, in("b.gguf"), in("d"), Options{Type: Keep, Target: at("target.gguf"), Speculators: true,
			Verifier: "org/target"})
		if (err == nil) != (c.Version == 3) {
			t.Fatal(err)
		}
		if err == nil {
			if _, err := ToGGUF(ctx, in("d"), in("e.gguf"), Options{Type: Keep, Target: at("target.gguf")}); err != nil {
				t.Fatal(err)
			}
			var embedded []string
			if !slices.ContainsFunc(weights, func(w tensor.Tensor) bool { return w.Name == embedding }) {
				embedded = []string{embedding}
			}
			sameTensors(t, in("b.gguf"), in("e.gguf"), embedded...)
		}
		for _, name := range []string{"a", "b.gguf", "c"} {
			got, err := headfile.ReadConfig[eagle.Config](registry.Head{Name: in(name)}, &target)
			want := c
			want.Name, want.Rope.Neighbours = got.Name, got.Rope.Neighbours
			if d := cmp.Diff(want, got); d != "" || err != nil {
				t.Errorf("%s: %s, %v", name, d, err)
			}
		}
	}
	for seed := range uint64(4) {
		c := synthetic.Config[specblock.Config](rand.New(rand.NewPCG(seed, 8)), "specblock", target, tensor.F32)
		weights, err := synthetic.Tensors(&c, tensor.F32, seed)
		if err != nil {
			t.Fatal(err)
		}
		sub := t.TempDir()
		in := func(name string) string { return filepath.Join(sub, name) }
		if err := headfile.WriteFolder(in("a"), &c, weights, synthetic.Tokens(&c, seed)); err != nil {
			t.Fatal(err)
		}
		if _, err := ToGGUF(ctx, in("a"), in("b.gguf"), Options{Type: Keep, Target: at("target.gguf")}); err != nil {
			t.Fatal(err)
		}
		if _, err := ToHF(ctx, in("b.gguf"), in("c"), Options{Type: Keep}); err != nil {
			t.Fatal(err)
		}
		sameFolders(t, in("a"), in("c"))
	}
}

// A Falcon head goes from GGUF to a folder and back, tensor by tensor. The folder gets its target's
// embedding, which the authors' code needs, and zeros for the state before; without the target the
// conversion says what is missing.
func TestFalconHeads(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	target := targets(t, dir)
	c := synthetic.Config[falcon.Config](rand.New(rand.NewPCG(1, 8)), "falcon", target, tensor.F32)
	c.Recurrent = false
	weights, err := synthetic.Tensors(&c, tensor.F32, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := headfile.WriteGGUF(at("head.gguf"), "x", &c, weights, nil, nil, tensor.F32); err != nil {
		t.Fatal(err)
	}
	notes, err := ToHF(ctx, at("head.gguf"), at("without"), Options{})
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "no embedding") {
		t.Errorf("%v, %v", notes, err)
	}
	if notes, err = ToHF(ctx, at("head.gguf"), at("with"), Options{Type: Keep, Target: at("target")}); err != nil ||
		len(notes) > 0 {
		t.Fatalf("%v, %v", notes, err)
	}
	got, want := contents(t, at("with")), contents(t, at("target"))["model.embed_tokens.weight"]
	if e := got["embed_tokens.weight"]; e.Type != want.Type || !bytes.Equal(e.Data, want.Data) {
		t.Error("the embedding is not the target's")
	}
	for _, name := range []string{"lstm.weight_hh_l0", "lstm.weight_hh_l1", "lstm.bias_hh_l0", "lstm.bias_hh_l1"} {
		if x, ok := got[name]; !ok || len(bytes.Trim(x.Data, "\x00")) > 0 {
			t.Errorf("tensor %s is there: %v, or not of zeros", name, ok)
		}
	}
	if _, err := ToGGUF(ctx, at("with"), at("again.gguf"), Options{Type: Keep, Target: at("target")}); err != nil {
		t.Fatal(err)
	}
	if _, err := ToHF(ctx, at("again.gguf"), at("again"), Options{Type: Keep}); err != nil {
		t.Fatal(err)
	}
	sameFolders(t, at("with"), at("again"))
}

// A head without its own output matrix gets its target's in a folder. The conversion says what it lacks.
func TestHeadsOfTargets(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	target := targets(t, dir)
	c := synthetic.Config[eagle.Config](rand.New(rand.NewPCG(1, 8)), "eagle3", target, tensor.F32)
	c.DraftVocab, c.Taps = target.Vocab, []int{1, 2, 3}
	weights, err := synthetic.Tensors(&c, tensor.F32, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := headfile.WriteGGUF(at("head.gguf"), "x", &c, weights, nil, nil, tensor.F32); err != nil {
		t.Fatal(err)
	}
	notes, err := ToHF(ctx, at("head.gguf"), at("without"), Options{})
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "--target") {
		t.Errorf("%v, %v", notes, err)
	}
	want, ok := contents(t, at("target"))["model.embed_tokens.weight"] // tiny-qwen3 is tied
	if !ok {
		t.Fatal("the target has no embedding")
	}
	for i, from := range []string{"target", "target.gguf"} {
		to := at("with-" + from)
		if notes, err := ToHF(ctx, at("head.gguf"), to, Options{Target: at(from), Speculators: i == 0}); err != nil ||
			len(notes) > 0 {
			t.Fatalf("%v, %v", notes, err)
		}
		got := contents(t, to)["lm_head.weight"]
		if got.Type != want.Type || !bytes.Equal(got.Data, want.Data) {
			t.Errorf("%s: the output is not the target's", from)
		}
		embed, ok := contents(t, to)["embed_tokens.weight"] // without it, vLLM's speculators would use zeros
		if ok != (i == 0) || ok && !bytes.Equal(embed.Data, want.Data) {
			t.Errorf("%s: the embedding is there %v, and is not the target's", from, ok)
		}
		if _, ok := contents(t, to)["d2t"]; ok {
			t.Errorf("%s: a map of a whole vocabulary, which vLLM refuses", from)
		}
	}
	for want, o := range map[string]Options{
		"say which (--target": {Speculators: true}, "no such file": {Target: at("none")},
		"a drafter's head": {Target: at("head.gguf")},
	} {
		if _, err := ToHF(ctx, at("head.gguf"), at("never"), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := ToHF(ctx, at("target.gguf"), at("never"), Options{Speculators: true}); err == nil ||
		!strings.Contains(err.Error(), "no folder of vLLM") {
		t.Errorf("a model for a speculator: %v", err)
	}
	c.Taps, c.TargetLayers = nil, 0
	if _, err := ToGGUF(ctx, at("without"), at("c.gguf"), Options{Target: at("head.gguf")}); err == nil {
		t.Error("a head for a target is no error")
	}
}
