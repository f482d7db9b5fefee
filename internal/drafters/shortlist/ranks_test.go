package shortlist

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/models"
	"github.com/grovellm/grove/tokenizer"
)

func embedded(t testing.TB) *tokenizer.Tokenizer {
	f, err := gguf.Parse("draft", models.Draft())
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// Ranks have every token once: first the special ones, whatever their frequency, then the others by
// frequency.
func TestRanksOrder(t *testing.T) {
	tok := embedded(t)
	rapid.Check(t, func(t *rapid.T) {
		n := tok.VocabSize()
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		text := make([]int32, rapid.IntRange(0, 500).Draw(t, "length"))
		counts := make([]int64, n)
		for i := range text {
			text[i] = r.Int32N(int32(n)) >> r.IntN(12)
			counts[text[i]]++
		}
		ranks := Count(n, tok, "generated", text, []int32{-1, int32(n)})
		if sorted := slices.Sorted(slices.Values(ranks.Order)); len(slices.Compact(sorted)) != n || sorted[0] != 0 ||
			sorted[n-1] != int32(n-1) {
			t.Fatal("not every token once")
		}
		for i, token := range ranks.Order {
			if special := tok.IsSpecial(token) || tok.IsEOG(token); special != (i < ranks.Kept) {
				t.Fatalf("rank %d of %d kept: special is %v", i, ranks.Kept, special)
			}
			if i > ranks.Kept && counts[token] > counts[ranks.Order[i-1]] {
				t.Fatalf("rank %d occurs %d times, and %d the one before", i, counts[token], counts[ranks.Order[i-1]])
			}
		}
	})
}

func TestRanksFile(t *testing.T) {
	tok := embedded(t)
	path := filepath.Join(t.TempDir(), "ranks.gguf")
	want := Count(tok.VocabSize(), tok, "three tokens", []int32{5, 5, 9})
	if err := want.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	got, err := OpenRanks(path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Order, want.Order) || got.Kept != want.Kept || got.Source != want.Source ||
		got.Key != want.Key || got.Key == "" {
		t.Errorf("read %d ranks, %d kept, of %q (%s), wrote %d, %d, %q (%s)", len(got.Order), got.Kept, got.Source,
			got.Key, len(want.Order), want.Kept, want.Source, want.Key)
	}
	n := tok.VocabSize()
	for _, vocab := range []int{n, n + 5} {
		r, err := got.For(vocab, tok)
		if err != nil {
			t.Fatal(err)
		}
		if all := slices.Sorted(slices.Values(r.Order)); len(all) != vocab || len(slices.Compact(all)) != vocab ||
			r.Kept != got.Kept || r.Order[got.Kept] != 5 {
			t.Errorf("for %d tokens: %d ranks, %d kept, then %d", vocab, len(r.Order), r.Kept, r.Order[got.Kept])
		}
	}
	if _, err := got.For(n+1, nil); err == nil {
		t.Error("another size of vocabulary: no error")
	}
	got.Key = "another"
	if _, err := got.For(n, tok); err == nil {
		t.Error("another vocabulary: no error")
	}
}

func TestRanksFileRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		keys map[string]any
		want string
	}{
		"no ranks":     {map[string]any{keyArch: arch, keyKept: uint32(0)}, keyRanks},
		"another file": {map[string]any{keyArch: "llama"}, keyArch},
		"twice":        {map[string]any{keyArch: arch, keyKept: uint32(0), keyRanks: []int32{0, 0}}, keyRanks},
		"beyond":       {map[string]any{keyArch: arch, keyKept: uint32(0), keyRanks: []int32{0, 2}}, keyRanks},
		"negative":     {map[string]any{keyArch: arch, keyKept: uint32(0), keyRanks: []int32{0, -1}}, keyRanks},
		"none":         {map[string]any{keyArch: arch, keyKept: uint32(0), keyRanks: []int32{}}, keyRanks},
		"kept":         {map[string]any{keyArch: arch, keyKept: uint32(3), keyRanks: []int32{0, 1}}, keyKept},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "f.gguf")
			w := new(gguf.Writer)
			for k, v := range c.keys {
				w.Set(k, v)
			}
			if err := w.WriteFile(path); err != nil {
				t.Fatal(err)
			}
			if _, err := OpenRanks(path); err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), path) {
				t.Errorf("error %v: want one that names the file and %s", err, c.want)
			}
		})
	}
	if _, err := OpenRanks(filepath.Join(dir, "absent.gguf")); !os.IsNotExist(err) && err == nil {
		t.Error("no file: no error")
	}
}
