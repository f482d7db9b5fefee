package train

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/internal/model"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/train/data"
	"github.com/grovellm/grove/tokenizer"
)

// Only keeps all generated texts that begin with the named source, in their order. A source that
// does not exist is refused, as for the training text itself.
func TestOnly(t *testing.T) {
	tok := tinyTokenizer(t)
	var sets []*data.Set
	weight := []float64{1, 3}
	// no token is in both texts
	for i, text := range []string{strings.Repeat("ABCD", 300), strings.Repeat("WXYZ", 500)} {
		set, err := data.FromDocuments(context.Background(), text[:1],
			[]data.Document{{Name: text[:1], Parts: []data.Part{{Text: text}}}}, tok, data.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		set.Weight = weight[i]
		sets = append(sets, set)
	}
	sides := map[string][]int32{"A": tok.Encode("ABCD", tokenizer.EncodeOptions{}),
		"W": tok.Encode("WXYZ", tokenizer.EncodeOptions{})}
	rapid.Check(t, func(t *rapid.T) {
		g := Generated{Prompt: rapid.IntRange(2, 9).Draw(t, "prompt")}
		g.Length = g.Prompt + rapid.IntRange(1, 4).Draw(t, "said")
		mix, err := g.beginnings(sets)
		if err != nil {
			t.Fatal(err)
		}
		only := rapid.SampledFrom([]string{"A", "W", ""}).Draw(t, "only")
		var tokens, want []int32
		row := make([]int32, g.Prompt+1)
		for i := range rapid.IntRange(1, 60).Draw(t, "texts") {
			mix.Row(uint64(i), row)
			text := append(slices.Clone(row[:g.Prompt]), make([]int32, g.Length-g.Prompt)...)
			text[g.Length-1] = int32(i)
			tokens = append(tokens, text...)
			if only == "" || slices.ContainsFunc(row[:g.Prompt],
				func(id int32) bool { return slices.Contains(sides[only], id) }) {
				want = append(want, text...)
			}
		}
		h := HeadText{Only: only}
		if got, err := h.begun(tokens, g, sets); err != nil || !slices.Equal(got, want) {
			t.Fatalf("of source %q there are\n%v, want\n%v (%v)", only, got, want, err)
		}
		if got, err := h.sources(sets); err != nil || len(got) != map[bool]int{true: 2, false: 1}[only == ""] ||
			only != "" && got[0].Name != only {
			t.Fatalf("of the training text source %q is %v (%v)", only, got, err)
		}
	})
	h := HeadText{Only: "Q"}
	// the target is not asked for any text before
	if _, err := new(Job).OpenTexts(t.Context(), h, 1, 1, &Corpus{train: sets}); err == nil ||
		!strings.Contains(err.Error(), `--only "Q": the training text has no such source: want one of A, W`) {
		t.Errorf("a source that is not there: %v", err)
	}
}

// One recipe's texts stay when another recipe generates in the same folder: nothing
// is generated twice.
func TestGeneratedStays(t *testing.T) {
	sets, _, _ := tinySets(t)
	shape, err := synth.Lookup("tiny-qwen3")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "random.gguf")
	if err := synth.Write(t.Context(), file, shape, synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	m, err := model.Open(file, model.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if m.Config.Vocab < 272 {
		t.Fatalf("the model has %d tokens, and the text 272", m.Config.Vocab)
	}
	j, dir := &Job{Target: m}, t.TempDir()
	one := Generated{Files: 2, Texts: 3, Prompt: 4, Length: 12, Greedy: 0.5}
	other := Generated{Files: 1, Texts: 5, Prompt: 4, Length: 10}
	var first []int32
	for i, g := range []Generated{one, other, one} {
		missing, err := g.missing(dir, "m", sets)
		if want := g.Files * g.Texts * (g.Length - g.Prompt); err != nil || i < 2 && missing != want || i == 2 &&
			missing != 0 {
			t.Errorf("recipe %d: %d tokens are missing, %v", i, missing, err)
		}
		tokens, err := g.tokens(t.Context(), j, m, dir, "m", sets)
		if err != nil || len(tokens) != g.Files*g.Texts*g.Length {
			t.Fatalf("recipe %d: %d tokens, %v", i, len(tokens), err)
		}
		switch {
		case i == 0:
			first = tokens
		case i == 2 && !slices.Equal(first, tokens):
			t.Error("the same recipe has other texts the second time")
		}
	}
}
