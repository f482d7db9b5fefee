package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove"
	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/command"
	"github.com/grovellm/grove/internal/drafters/registry"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/heads/headfile"
	"github.com/grovellm/grove/internal/inside"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/tensor"
)

// A job that cannot be trained is refused at once, with what to do about it.
func TestTrainRefuses(t *testing.T) {
	dir := t.TempDir()
	for want, args := range map[string][]string{
		"--name":              {"train", "jet", "--head", "causal", "--dir", dir, "--data", dir, "--from=-1,0,1", "--name", "target"},
		"--head":              {"train", "jet", "--dir", dir, "--data", dir},
		"--name \"cache\"":    {"train", "eagle", "--dir", dir, "--data", dir, "--name", "cache"},
		"--name \"features\"": {"train", "eagle", "--dir", dir, "--data", dir, "--name", "features"},
		"--eagle":             {"train", "eagle", "--dir", dir, "--data", dir, "--eagle", "4"},
		"--gamma":             {"train", "jet", "--head", "causal", "--dir", dir, "--data", dir, "--gamma", "much"},
	} {
		code, _, err := runGrove("", args...)
		if code != command.ExitUsage || !strings.Contains(err, want) {
			t.Errorf("grove %q: status %d, %q; want status 2 and an error with %q", args, code, err, want)
		}
	}
}

// The folder of heads is named after the model, wherever that lies.
func TestTrainDir(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]string{
		"": command.Embedded, "models/Tiny.Q4_K_M.gguf": "Tiny.Q4_K_M", "models/Tiny-1B/": "Tiny-1B",
		".": filepath.Base(here), "hub/models--Org--Tiny-1B/snapshots/0123456789abcdef": "Tiny-1B",
		"hub/models--Org--Tiny-GGUF/snapshots/0123456789abcdef/Tiny.gguf": "Tiny",
	} {
		if got := (&overFlags{Model: filepath.FromSlash(model)}).dir(); got != want+"-heads" {
			t.Errorf("heads of %q lie in %s, want %s-heads", model, got, want)
		}
	}
}

// A model of whose layers no draft model can be made is refused before it makes up any text.
func TestTrainDraftRefuses(t *testing.T) {
	dir := t.TempDir()
	shape, err := synth.Lookup("tiny-qwen3moe")
	if err != nil {
		t.Fatal(err)
	}
	experts := filepath.Join(dir, "experts.gguf")
	if err := synth.Write(context.Background(), experts, shape, synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"it has experts": {"-m", experts},
		"grove convert":  nil, // grove's small model, which is no file
	} {
		job := filepath.Join(dir, "job")
		code, out, errors := runGrove("", append([]string{"train", "draft", "--dir", job}, args...)...)
		if code == 0 || !strings.Contains(errors, want) || out != "" {
			t.Errorf("with %q: status %d, %q, %q; want an error with %q", args, code, out, errors, want)
		}
		if _, err := os.Stat(job); err == nil {
			t.Errorf("with %q: something was made in --dir", args)
		}
	}
}

// What no head of any kind can be trained with is refused before the model writes any text.
func TestTrainRefusesBeforeText(t *testing.T) {
	model, dir := tiny(t), t.TempDir()
	prompts := filepath.Join(dir, "prompts.jsonl")
	if err := os.WriteFile(prompts, []byte(`{"prompt":"func main() {"}`+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	kinds := reflect.TypeFor[trainHeadCmds]()
	for i := range kinds.NumField() {
		f := kinds.Field(i)
		kind := cmp.Or(f.Tag.Get("name"), strings.ToLower(f.Name))
		if kind == "draft" {
			continue // of a model that is only in a file: see TestTrainDraftRefuses
		}
		for j, c := range []struct {
			want string
			bad  []string
		}{
			{"steps", []string{"--steps=0"}}, {"learning rate", []string{"--rate=-1"}}, {"rate of NaN", []string{"--rate=nan"}},
			{"--warmup 2", []string{"--warmup=2"}}, {"--clip -1", []string{"--clip=-1"}},
			{"changes nothing", []string{"--greedy", "0.5"}},
		} {
			if (i+j)%2 > 0 { // half of them, in turn
				continue
			}
			want, bad := c.want, c.bad
			job := filepath.Join(dir, "job")
			args := append([]string{"train", kind, "-m", model, "--dir", job, "--prompts", prompts, "--raw"}, bad...)
			if kind == "jet" {
				args = append(args, "--head", "causal")
			}
			code, out, errors := runGrove("", args...)
			if code == 0 || !strings.Contains(errors, want) || out != "" {
				t.Errorf("grove %q: status %d, %q, %q; want an error with %q", args, code, out, errors, want)
			}
			if _, err := os.Stat(job); err == nil {
				t.Fatalf("grove %q: something was made in --dir", args)
			}
		}
	}
}

// Where no drafter is named, weights of +text are fitted with one that runs the head: P-EAGLE's and ParallelSpec's are
// of one kind, and the drafter of the one does not run the other.
func TestAutoOf(t *testing.T) {
	m, err := grove.OpenGGUF(command.Embedded, models.Target(), grove.Options{HeadGGUF: models.Heads()})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	target, fitted := inside.Target(m), map[string]bool{}
	for i, data := range models.Heads() {
		head := filepath.Join(t.TempDir(), fmt.Sprint(i))
		if err := os.WriteFile(head, data, 0o666); err != nil {
			t.Fatal(err)
		}
		drafter, err := autoOf(head, target)
		if err != nil {
			continue // a router, or of a drafter that auto does not choose
		}
		target.Heads = []registry.Head{{Name: head}}
		if _, err := registry.New(drafter, target); err != nil {
			t.Error(err)
		}
		fitted[drafter] = true
	}
	if !fitted["peagle+text"] || !fitted["parallelspec+text"] {
		t.Errorf("heads are fitted with %v", slices.Sorted(maps.Keys(fitted)))
	}
}

// Weights of +text that are fitted to a head lie in its file, from which the drafter begins;
// another number of them is refused.
func TestTrainText(t *testing.T) {
	dir := t.TempDir()
	head := filepath.Join(dir, "head.gguf")
	fitted := filepath.Join(dir, "fitted.gguf")
	suite := filepath.Join(dir, "prompts.jsonl")
	for _, data := range models.Heads() { // the first of an EAGLE head
		if err := os.WriteFile(head, data, 0o666); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(must(t, "", "inspect", head, "--no-tensors"), "eagle3") {
			break
		}
	}
	if err := os.WriteFile(suite, []byte(`{"prompt":"func main() {"}`+"\n"+`{"prompt":"type T struct {"}`+"\n"),
		0o666); err != nil {
		t.Fatal(err)
	}
	must(t, "", "train", "text", "--suite", suite, "--prompts", "2", "-n", "8", head, fitted)
	weights := func(path string) []float32 {
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return ggufkeys.Of(f).Floats("grove.text.weights", nil)
	}
	if got, was := weights(fitted), weights(head); len(got) == 0 || len(got) != len(was) || slices.Equal(got, was) {
		t.Errorf("%d weights, before %d, the same: %v", len(got), len(was), slices.Equal(got, was))
	}
	bad := filepath.Join(dir, "bad.gguf")
	if err := headfile.WriteTextWeights(head, bad, []float32{1, 2}); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(dir, "target.gguf")
	if err := os.WriteFile(target, models.Target(), 0o666); err != nil {
		t.Fatal(err)
	}
	run := func(head string) (int, string) {
		code, _, err := runGrove("", "run", "-m", target, "--head", head, "-d", "eagle3+text", "-n", "4", "x")
		return code, err
	}
	if code, err := run(fitted); code != 0 {
		t.Error(err)
	}
	if code, err := run(bad); code == 0 || !strings.Contains(err, "grove train text") {
		t.Errorf("a head with two weights: status %d, %s", code, err)
	}
	code, _, err := runGrove("", "train", "text", "--suite", suite, "-d", "lookup", head, fitted)
	if code == 0 || !strings.Contains(err, "+text") {
		t.Errorf("a drafter without +text: status %d, %s", code, err)
	}
}

// Without the target's name there is no folder for vLLM; the command that training prints writes it.
func TestTrainSaysHowToWriteSpeculators(t *testing.T) {
	dir := t.TempDir()
	model, prompts := filepath.Join(dir, "model.gguf"), filepath.Join(dir, "prompts.jsonl")
	shape, err := synth.Lookup("tiny-qwen3-untied")
	if err != nil {
		t.Fatal(err)
	}
	if err := synth.Write(t.Context(), model, shape, synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(prompts, []byte(`{"prompt":"a b"}`+"\n"+`{"prompt":"c d"}`+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	code, notes, failed := runGrove("", "train", "eagle", "-m", model, "--prompts", prompts, "--raw", "--length", "16",
		"--steps", "1", "--dir", dir)
	_, line, found := strings.Cut(notes, "which name their target: grove ")
	if code != 0 || !found {
		t.Fatalf("status %d, %s%s", code, notes, failed)
	}
	args, _, _ := strings.Cut(line, " writes it")
	folder := filepath.Join(dir, "speculators")
	args = strings.NewReplacer("FOLDER", folder, "FILE", model).Replace(args)
	must(t, "", strings.Fields(args)...)
	if _, err := os.Stat(filepath.Join(folder, "config.json")); err != nil {
		t.Error(err)
	}
}
