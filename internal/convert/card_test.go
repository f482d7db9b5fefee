package convert

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/tensor"
	"pgregory.net/rapid"
)

// A GGUF file's metadata about the model and its special tokens survives conversion to a folder and
// back: no key is lost, none is new, and no value differs.
func TestSameMetadata(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := synth.Write(ctx, at("a.gguf"), shape(t, "tiny-qwen2"), synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	source, err := gguf.Open(at("a.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	about := regexp.MustCompile(`^general\.|^tokenizer\.ggml\..*_token_ids?$`)
	words := rapid.StringMatching(`[A-Za-z0-9:#'"\\ \-/.é東|>{\[]{1,20}`)
	cases.Check(t, 20, func(r *rapid.T) {
		w := new(gguf.Writer)
		roles := []string{"unknown", "mask", "padding", "cls", "eot"}
		for name, value := range source.Meta() {
			key, special := strings.CutPrefix(strings.TrimSuffix(name, "_token_id"), "tokenizer.ggml.")
			if name != "general.name" && name != "general.description" && !(special && slices.Contains(roles, key)) {
				w.Set(name, value)
			}
		}
		for _, key := range []string{"name", "author", "organization", "finetune", "basename", "size_label",
			"license", "license.link",
			"source.url", "description", "quantized_by", "base_model.0.name"} {
			if rapid.Bool().Draw(r, "has "+key) {
				w.Set("general."+key, words.Draw(r, key))
			}
		}
		for _, key := range []string{"tags", "languages", "datasets"} {
			if rapid.Bool().Draw(r, "has "+key) {
				w.Set("general."+key, rapid.SliceOfN(words, 1, 4).Draw(r, key))
			}
		}
		if rapid.Bool().Draw(r, "has a count") {
			w.Set("general.base_model.count", uint32(1))
		}
		vocab := ggufkeys.Of(source).Strings("tokenizer.ggml.tokens")
		last := uint32(len(vocab)) - 1
		for _, key := range roles {
			if rapid.Bool().Draw(r, "has "+key) {
				w.Set("tokenizer.ggml."+key+"_token_id", last-uint32(rapid.IntRange(0, 1).Draw(r, key)))
			}
		}
		for _, info := range source.Tensors {
			x, err := source.Load(info.Name)
			if err != nil {
				r.Fatal(err)
			}
			w.AddTensor(x)
		}
		if err := w.WriteFile(at("b.gguf")); err != nil {
			r.Fatal(err)
		}
		if err := os.RemoveAll(at("folder")); err != nil {
			r.Fatal(err)
		}
		if _, err := ToHF(ctx, at("b.gguf"), at("folder"), Options{Type: Keep}); err != nil {
			r.Fatal(err)
		}
		if _, err := ToGGUF(ctx, at("folder"), at("c.gguf"), Options{Type: Keep}); err != nil {
			r.Fatal(err)
		}
		b, c := keysOf(r, at("b.gguf"), about), keysOf(r, at("c.gguf"), about)
		for key := range b {
			if b[key] != c[key] {
				r.Errorf("%s: %s became %q", key, b[key], c[key])
			}
		}
		for key := range c {
			if _, ok := b[key]; !ok && key != "general.name" {
				r.Errorf("%s = %s is new", key, c[key])
			}
		}
	})
}

func keysOf(r *rapid.T, path string, which *regexp.Regexp) map[string]string {
	f, err := gguf.Open(path)
	if err != nil {
		r.Fatal(err)
	}
	defer f.Close()
	m := map[string]string{}
	for name, value := range f.Meta() {
		if which.MatchString(name) {
			m[name] = value.String()
		}
	}
	return m
}

// A model card's fields are read as YAML, and the rest of a card is ignored.
func TestFrontMatter(t *testing.T) {
	got := frontMatter("---\nlicense: apache-2.0 # as is\nlanguage:\n- en\n  - \"de\"\ntags: [a, 'b c']\nbase_model:\n  name: x\nmodel_name: \"A: \\\"b\\\"\"\n" +
		"widget:\n- text: hello\n- more: {x: 1}\ndescription: |\n  many\n  lines: here\nempty:\n---\nlicense: mit\n")
	for name, want := range map[string][]string{"license": {"apache-2.0"}, "language": {"en", "de"}, "tags": {"a", "b c"},
		"model_name": {`A: "b"`}, "description": nil, "empty": nil, "base_model": nil} {
		if texts := got[name].texts(); !slices.Equal(texts, want) {
			t.Errorf("%s is %q, want %q", name, texts, want)
		}
	}
	for _, card := range []string{"", "# Title\n---\nlicense: mit\n---\n", "---\nlicense: mit\n"} {
		if got := frontMatter(card); len(got) != 0 {
			t.Errorf("%q has the fields %v", card, got)
		}
	}
}
