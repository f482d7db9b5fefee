package main

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/drafters/eagle"
	"github.com/grovellm/grove/internal/drafters/jet"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/tensor"
)

// A head is shown, converted both ways with its target's tokenizer, quantized, and drafts by flag
// and by variable the text of plain decoding.
func TestHead(t *testing.T) {
	target, dir := tiny(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	f, err := gguf.Open(target)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := model.ReadGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	c := synthetic.Config[jet.Config](rand.New(rand.NewPCG(1, 3)), "", m, tensor.Q8_0)
	c.Causal, c.Taps = true, []int{1, 2}
	weights, err := synthetic.Tensors(&c, tensor.Q8_0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := headfile.WriteFolder(at("folder"), &c, weights, nil); err != nil {
		t.Fatal(err)
	}
	must(t, "", "convert", at("folder"), at("head.gguf"), "--target", target)
	must(t, "", "convert", at("head.gguf"), at("again"))
	must(t, "", "quantize", at("head.gguf"), at("q.gguf"))
	for _, h := range []string{"folder", "head.gguf", "again", "q.gguf"} {
		if out := must(t, "", "inspect", "--no-tensors", at(h)); !strings.Contains(out, "block head, causal (JetSpec)") ||
			!strings.Contains(out, "taps after layers [1 2]") {
			t.Errorf("inspect %s:\n%s", h, out)
		}
	}
	common := []string{"run", "-m", target, "-n", "20", "--ignore-end", "--uncontrolled", "one two"}
	want := must(t, "", append(common, "-d", "plain")...)
	for _, args := range [][]string{{"-d", "jetspec", "--head", at("q.gguf")}, {"-d", "jetspec:tree=ddtree", "--head",
		at("folder")}, {"-d", "jetspec:model=" + at("again")}} {
		if got := must(t, "", append(common, args...)...); got != want {
			t.Errorf("grove run %q: %q, want %q", args, got, want)
		}
	}
	t.Setenv("GROVE_HEADS", at("q.gguf"))
	if got := must(t, "", append(common, "-d", "jetspec")...); got != want {
		t.Errorf("GROVE_HEADS: %q, want %q", got, want)
	}
	for wrong, args := range map[string][]string{
		"no bidirectional (DFlash) head": append(common, "-d", "dflash"),
		"not a model":                    {"run", "-m", at("q.gguf"), "x"},
		"not a draft head":               {"run", "-m", target, "--head", target, "x"},
	} {
		if code, _, err := runGrove("", args...); code == 0 || !strings.Contains(err, wrong) {
			t.Errorf("grove %q: status %d, %s: want %q", args, code, err, wrong)
		}
	}
}

// A head that was made for other weights drafts, and a warning says whose it is not.
func TestHeadOfOtherWeights(t *testing.T) {
	target, dir := tiny(t), t.TempDir()
	m, err := model.Open(target, model.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	c := synthetic.Config[jet.Config](rand.New(rand.NewPCG(1, 3)), "", m.Config, tensor.Q8_0)
	weights, err := synthetic.Tensors(&c, tensor.Q8_0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, made := range []string{"", m.WeightsID(), "0123"} {
		c.TargetWeights = made
		head := filepath.Join(dir, made+".gguf")
		if err := headfile.WriteGGUF(head, "head", &c, weights, nil, nil, tensor.Q8_0); err != nil {
			t.Fatal(err)
		}
		code, _, errors := runGrove("", "run", "-m", target, "-n", "2", "--head", head, "one two")
		if warned := strings.Contains(errors, head+" was made for other weights"); code != 0 || warned != (made == "0123") {
			t.Errorf("a head made for %q: status %d, %q", made, code, errors)
		}
	}
}

// An EAGLE head goes to a folder for vLLM with its target's output matrix and back, is told from
// other files, and drafts; PyTorch's files are inspected too.
func TestEagleHead(t *testing.T) {
	target, dir := tiny(t), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	f, err := gguf.Open(target)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := model.ReadGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	c := synthetic.Config[eagle.Config](rand.New(rand.NewPCG(1, 3)), "eagle3", m, tensor.Q8_0)
	c.DraftVocab = m.Vocab
	c.Taps = []int{1, 2, 3}
	c.TargetLayers = m.Layers
	weights, err := synthetic.Tensors(&c, tensor.Q8_0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := headfile.WriteGGUF(at("head.gguf"), "x", &c, weights, nil, nil, tensor.Q8_0); err != nil {
		t.Fatal(err)
	}
	must(t, "", "convert", at("head.gguf"), at("vllm"), "--target", target, "--speculators", "--verifier", "org/target")
	must(t, "", "convert", at("vllm"), at("again.gguf"), "--target", target)
	for h, want := range map[string]string{
		"head.gguf": "EAGLE-3 head: layers", "vllm": "an output head of its own, taps after layers [1 2 3]",
		"again.gguf": "EAGLE-3 head", "": "PyTorch, 1.5 KB",
	} {
		path := at(h)
		if h == "" {
			path = filepath.Join("..", "..", "internal", "files", "torch", "testdata", "protocol2.pt")
		}
		if out := must(t, "", "inspect", path); !strings.Contains(out, want) {
			t.Errorf("inspect %s:\n%s", path, out)
		}
	}
	common := []string{"run", "-m", target, "-n", "20", "--ignore-end", "--uncontrolled", "one two"}
	want := must(t, "", append(common, "-d", "plain")...)
	for _, args := range [][]string{{"-d", "eagle3", "--head", at("head.gguf")}, {"--head", at("vllm")},
		{"-d", "eagle3:model=" + at("again.gguf")}} {
		if got := must(t, "", append(common, args...)...); got != want {
			t.Errorf("grove run %q: %q, want %q", args, got, want)
		}
	}
	for wrong, args := range map[string][]string{
		"names a GGUF file":   {"convert", at("vllm"), at("x.gguf"), "--speculators"},
		"say which (--target": {"convert", at("head.gguf"), at("y"), "--speculators"},
		"--verifier ORG/REPO": {"convert", at("head.gguf"), at("y"), "--speculators", "--target", target},
		"needs --speculators": {"convert", at("head.gguf"), at("y"), "--target", target, "--verifier", "org/target"},
		"neither a repository": {"convert", at("head.gguf"), at("y"), "--speculators", "--target", target,
			"--verifier", "A Title"},
		"want EAGLE-2": append(common, "-d", "eagle2:model="+at("head.gguf")),
	} {
		if code, _, err := runGrove("", args...); code == 0 || !strings.Contains(err, wrong) {
			t.Errorf("grove %q: status %d, %s: want %q", args, code, err, wrong)
		}
	}
}
