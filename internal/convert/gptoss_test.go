package convert

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/numtype"
	"github.com/grovellm/grove/internal/files/reshape"
	"github.com/grovellm/grove/internal/files/safetensors"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/tensor"
)

// Experts in MXFP4 keep their numbers, and the model its bits, from a file to a folder, to a file,
// and to a folder again. The second file and the second folder are the first ones.
func TestMXFP4BothWays(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := synth.Write(ctx, at("0.gguf"), shape(t, "tiny-gpt-oss"),
		synth.Options{Type: tensor.MXFP4, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		from, to string
		f        func(ctx context.Context, from, to string, o Options) ([]string, error)
	}{{"0.gguf", "1", ToHF}, {"1", "1.gguf", ToGGUF}, {"1.gguf", "2", ToHF}, {"2", "2.gguf", ToGGUF}} {
		if _, err := step.f(ctx, at(step.from), at(step.to), Options{Type: Keep}); err != nil {
			t.Fatal(err)
		}
	}
	want := logits(t, at("1"))
	for _, name := range []string{"1.gguf", "2", "2.gguf"} {
		sameBits(t, name, logits(t, at(name)), want)
	}
	sameTensors(t, at("1.gguf"), at("2.gguf"))
	sameMeta(t, at("0.gguf"), at("2.gguf"))

	a, err1 := safetensors.Open(at("1"))
	b, err2 := safetensors.Open(at("2"))
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	defer a.Close()
	defer b.Close()
	for _, info := range a.Tensors {
		x, _ := a.Tensor(info.Name)
		y, _ := b.Tensor(info.Name)
		if same, err := reshape.Equal(x, y); err != nil || !same {
			t.Errorf("tensor %s differs in the second folder: %v", info.Name, err)
		}
	}
	for _, ending := range []string{"gate_up_proj_blocks", "gate_up_proj_scales", "down_proj_blocks", "down_proj_scales"} {
		if x, ok := a.Tensor("model.layers.3.mlp.experts." + ending); !ok || x.Type != numtype.U8 {
			t.Errorf("%s is %v, %v", ending, x.Type, ok)
		}
	}
	first, err1 := gguf.Open(at("0.gguf"))
	second, err2 := gguf.Open(at("1.gguf"))
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	defer first.Close()
	defer second.Close()
	for _, part := range []string{"gate", "up", "down"} {
		x, _ := first.Tensor("blk.2.ffn_" + part + "_exps.weight")
		y, _ := second.Tensor("blk.2.ffn_" + part + "_exps.weight")
		if same, err := reshape.Equal(x, y); err != nil || !same || x.Type != tensor.MXFP4 {
			t.Errorf("experts' %s differ in the second file: %v", part, err)
		}
	}
}

// A folder in another type than the file's experts has their numbers, transposed.
func TestExpertsOfAnotherType(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := synth.Write(ctx, at("mxfp4.gguf"), shape(t, "tiny-gpt-oss"),
		synth.Options{Type: tensor.MXFP4, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	_, err1 := ToHF(ctx, at("mxfp4.gguf"), at("f32"), Options{Type: tensor.F32})
	_, err2 := Quantize(ctx, at("mxfp4.gguf"), at("f32.gguf"), Options{Type: tensor.F32})
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	sameBits(t, "MXFP4 as F32", logits(t, at("f32")), logits(t, at("f32.gguf")))
}

// Unrounded bounds of YaRN's blend are obeyed in both formats, and the conversion says what other
// programs do.
func TestTruncateIsKept(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := synth.WriteHF(ctx, at("hf"), shape(t, "tiny-gpt-oss"), synth.Options{Seed: 3}); err != nil {
		t.Fatal(err)
	}
	rounded := logits(t, at("hf"))
	settings := func(path string) (m map[string]any) {
		data, err := os.ReadFile(filepath.Join(path, "config.json"))
		if err == nil {
			err = json.Unmarshal(data, &m)
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := settings(at("hf"))
	m["rope_scaling"].(map[string]any)["truncate"] = false
	data, err := json.Marshal(m)
	if err == nil {
		err = os.WriteFile(filepath.Join(at("hf"), "config.json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := logits(t, at("hf"))
	same := true
	for i := range want {
		same = same && want[i] == rounded[i]
	}
	if same {
		t.Error("truncate changes nothing")
	}
	notes, err := ToGGUF(ctx, at("hf"), at("m.gguf"), Options{Type: Keep})
	if err != nil || !strings.Contains(strings.Join(notes, "\n"), "truncate") {
		t.Errorf("notes %q, %v", notes, err)
	}
	sameBits(t, "HF to GGUF", logits(t, at("m.gguf")), want)
	if _, err := ToHF(ctx, at("m.gguf"), at("back"), Options{Type: Keep}); err != nil {
		t.Fatal(err)
	}
	sameBits(t, "GGUF to HF", logits(t, at("back")), want)
	if v := settings(at("back"))["rope_scaling"].(map[string]any)["truncate"]; v != false {
		t.Errorf("truncate came back as %v", v)
	}
}
