package convert

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
)

// A head goes from its folder to GGUF and back, tensor by tensor, with the tokenizer of its target in either form.
func TestHeads(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	s := shape(t, "tiny-qwen3")
	for name, write := range map[string]func(context.Context, string, synth.Shape, synth.Options) error{
		"target": synth.WriteHF, "target.gguf": synth.Write} {
		if err := write(ctx, at(name), s, synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := synth.WriteHF(ctx, at("other"), shape(t, "tiny-qwen2"), synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	target, err := model.ReadFolder(at("target"))
	if err != nil {
		t.Fatal(err)
	}
	c := synthetic.Config[jet.Config](rand.New(rand.NewPCG(8, 8)), "", target, tensor.F32)
	c.Taps = []int{1, 4}
	c.Causal = true
	c.TargetLayers = target.Layers
	weights, err := synthetic.Tensors(&c, tensor.F32, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := headfile.WriteFolder(at("head"), &c, weights, nil); err != nil {
		t.Fatal(err)
	}
	for _, from := range []string{"target", "target.gguf"} {
		path := at("with-" + filepath.Base(from) + ".gguf")
		if notes, err := ToGGUF(ctx, at("head"), path, Options{Target: at(from)}); err != nil || len(notes) > 0 {
			t.Fatalf("%v, %v", notes, err)
		}
		got, err := headfile.ReadConfig[jet.Config](registry.Head{Name: path}, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := c
		want.Name, want.Tied = got.Name, got.Tied
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if tok, err := tokenizer.FromGGUF(f); err != nil || tok.VocabSize() != c.Vocab {
			t.Errorf("the tokenizer of %s: %v", from, err)
		}
		f.Close()
		if _, err := ToHF(ctx, path, at("back-"+from), Options{Type: Keep}); err != nil {
			t.Fatal(err)
		}
		if got, err := headfile.ReadConfig[jet.Config](registry.Head{Name: at("back-" + from)}, nil); err != nil ||
			got.Mask != c.Mask || !got.Causal {
			t.Errorf("%+v, %v", got, err)
		}
		again := at("again-" + filepath.Base(from) + ".gguf")
		notes, err := ToGGUF(ctx, at("back-"+from), again, Options{Type: Keep})
		if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "--target") {
			t.Fatalf("%v, %v", notes, err)
		}
		sameTensors(t, path, again)
		if _, err := Quantize(ctx, path, at("bf16.gguf"), Options{Type: tensor.BF16}); err != nil {
			t.Fatal(err)
		}
		if _, err := headfile.ReadConfig[jet.Config](registry.Head{Name: at("bf16.gguf")}, nil); err != nil {
			t.Error(err)
		}
	}
	for want, o := range map[string][2]string{"hidden size": {"head", "other"}, "tokenizer of its own": {"target",
		"target"}, "no such file": {"head", "none"}} {
		if _, err := ToGGUF(ctx, at(o[0]), at("x.gguf"), Options{Target: at(o[1])}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
