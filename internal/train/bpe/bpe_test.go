package bpe

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/tokenizer"
	"pgregory.net/rapid"
)

func learn(t interface {
	Helper()
	Fatal(...any)
}, docs []string, o Options) *Vocabulary {
	t.Helper()
	c, err := NewCounter(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Add(docs, 1); err != nil {
		t.Fatal(err)
	}
	v, err := Train(context.Background(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// reference learns by counting all pairs of all words again for every merge.
func reference(words map[string]int64, size int) (tokens []string, merges [][2]int32) {
	var id [256]int32
	for i, b := range byteOrder() {
		id[b] = int32(i)
		tokens = append(tokens, string([]byte{b}))
	}
	spelt := map[string][]int32{}
	for w := range words {
		for i := range len(w) {
			spelt[w] = append(spelt[w], id[w[i]])
		}
	}
	for len(tokens) < size {
		counts := map[[2]int32]int64{}
		for w, ids := range spelt {
			for i := range len(ids) - 1 {
				counts[[2]int32{ids[i], ids[i+1]}] += words[w]
			}
		}
		var best [2]int32
		most := int64(1)
		for p, n := range counts {
			if slices.Contains(tokens, tokens[p[0]]+tokens[p[1]]) {
				continue
			}
			if n > most || n == most && n > 1 && slices.Compare(p[:], best[:]) < 0 {
				best, most = p, n
			}
		}
		if most < 2 {
			return tokens, merges
		}
		made := int32(len(tokens))
		tokens = append(tokens, tokens[best[0]]+tokens[best[1]])
		merges = append(merges, best)
		for w, ids := range spelt {
			var out []int32
			for i := 0; i < len(ids); i++ {
				if i+1 < len(ids) && ids[i] == best[0] && ids[i+1] == best[1] {
					out = append(out, made)
					i++
				} else {
					out = append(out, ids[i])
				}
			}
			spelt[w] = out
		}
	}
	return tokens, merges
}

// corpus draws texts of few letters, which repeat themselves, also in runs, where counting is error-prone.
func corpus() *rapid.Generator[[]string] {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("ab'S.\n é7")), 1, 12, -1)
	return rapid.Custom(func(t *rapid.T) []string {
		var docs []string
		for range rapid.IntRange(1, 5).Draw(t, "documents") {
			docs = append(docs, strings.Join(rapid.SliceOfN(word, 1, 40).Draw(t, "words"),
				rapid.SampledFrom([]string{" ", "", "\n"}).Draw(t, "between")))
		}
		return docs
	})
}

func TestMergesEqualTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		docs := corpus().Draw(t, "corpus")
		c, err := NewCounter(Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Add(docs, rapid.IntRange(1, 3).Draw(t, "weight")); err != nil {
			t.Fatal(err)
		}
		size := 256 + rapid.IntRange(0, 40).Draw(t, "merges")
		tokens, merges := reference(c.words, size)
		v, err := Train(context.Background(), c, Options{Size: len(tokens), Special: []string{}})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(v.Tokens, tokens) || !slices.Equal(v.Merges, merges) {
			t.Fatalf("learned %q by %v, the reference %q by %v", v.Tokens[256:], v.Merges, tokens[256:], merges)
		}
		if len(tokens) < size {
			if _, err := Train(context.Background(), c, Options{Size: size, Special: []string{}}); err == nil {
				t.Fatal("a vocabulary larger than the text can give is no error")
			}
		}
	})
}

// Decoding gives back any text.
func TestRoundTrip(t *testing.T) {
	docs := []string{strings.Repeat("func (t *Tokenizer) Encode(text string) []int32 { return nil } // the text's own\n", 9),
		strings.Repeat("Alice was beginning to get very tired of sitting by her sister on the bank, naïve 東京\n\n", 9)}
	v := learn(t, docs, Options{Size: 340})
	tok, err := v.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	if tok.VocabSize() != 340 {
		t.Fatalf("%d tokens, want 340", tok.VocabSize())
	}
	for _, name := range Special() {
		if id, ok := tok.Find(name); !ok || id != v.SpecialID(name) || !tok.IsSpecial(id) {
			t.Errorf("special token %q is %d, want %d", name, id, v.SpecialID(name))
		}
	}
	if eos := v.SpecialID(EndOfText); tok.EOS() != eos || !tok.IsEOG(v.SpecialID(TurnEnd)) {
		t.Errorf("end of text is %d, want %d", tok.EOS(), eos)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Map(corpus(), func(d []string) string { return strings.Join(d, "") }),
			rapid.SampledFrom(docs), rapid.Map(rapid.SliceOf(rapid.Byte()),
				func(b []byte) string { return string(b) })).Draw(t, "text")
		ids := tok.Encode(text, tokenizer.EncodeOptions{})
		var b strings.Builder
		for _, id := range ids {
			b.WriteString(tok.Piece(id))
		}
		if b.String() != text {
			t.Fatalf("%q came back as %q", text, b.String())
		}
	})
}

// The same text gives the same files, however it is divided into calls, and with any number of threads.
func TestDeterministic(t *testing.T) {
	var docs []string
	for i := range 200 {
		docs = append(docs, strings.Repeat(fmt.Sprintf("word%c and another %c%cword\n", 'a'+i%17, 'e'+i%5, 'k'+i%7),
			i%7+1))
	}
	files := func(threads, cut int) []byte {
		o := Options{Size: 290, Threads: threads}
		c, err := NewCounter(o)
		if err != nil {
			t.Fatal(err)
		}
		for part := range slices.Chunk(docs, cut) {
			if err := c.Add(part, 2); err != nil {
				t.Fatal(err)
			}
		}
		v, err := Train(context.Background(), c, o)
		if err != nil {
			t.Fatal(err)
		}
		w := new(gguf.Writer)
		v.SetGGUF(w)
		var b bytes.Buffer
		if _, err := w.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	want := files(1, len(docs))
	for _, threads := range []int{1, 4} {
		for _, cut := range []int{len(docs), 7} {
			if !bytes.Equal(files(threads, cut), want) {
				t.Errorf("%d threads, %d documents a call: other files", threads, cut)
			}
		}
	}
}

// Text is cut into words where the tokenizer cuts it. The vocabulary has a token for every two
// bytes of the alphabet, so that a cut elsewhere shows.
func TestWordsAreTheTokenizers(t *testing.T) {
	alphabet := []rune("ab'StlLmſ.,(\r\n\t \u00a0\u3000\u0085é7٣½ª\u0301ǅ東😀")
	v := &Vocabulary{Pre: "qwen2", Special: []string{"<|end|>"}}
	var id [256]int32
	for i, b := range byteOrder() {
		id[b] = int32(i)
		v.Tokens = append(v.Tokens, string([]byte{b}))
	}
	bytes := []byte(string(alphabet))
	slices.Sort(bytes)
	bytes = slices.Compact(bytes)
	for _, a := range bytes {
		for _, b := range bytes {
			v.Merges = append(v.Merges, [2]int32{id[a], id[b]})
			v.Tokens = append(v.Tokens, string([]byte{a, b}))
		}
	}
	tok, err := v.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	cut, err := lower.FindSplitter("qwen2")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom(alphabet), 1, 60, -1).Draw(t, "text")
		var want []int32
		for rest := text; len(rest) > 0; {
			n := cut(rest)
			want = append(want, mergeWord(v, rest[:n])...)
			rest = rest[n:]
		}
		if got := tok.Encode(text, tokenizer.EncodeOptions{}); !slices.Equal(got, want) {
			t.Fatalf("%q: %v whole, %v by words", text, got, want)
		}
	})
}

// mergeWord merges the bytes of a word, the earliest merge first.
func mergeWord(v *Vocabulary, word string) []int32 {
	var ids []int32
	for i := range len(word) {
		ids = append(ids, int32(slices.Index(byteOrder(), word[i])))
	}
	for {
		best, at := len(v.Merges), 0
		for i := range len(ids) - 1 {
			if m := slices.Index(v.Merges[:best], [2]int32{ids[i], ids[i+1]}); m >= 0 {
				best, at = m, i
			}
		}
		if best == len(v.Merges) {
			return ids
		}
		ids = slices.Replace(ids, at, at+2, int32(256+best))
	}
}

func TestErrors(t *testing.T) {
	for _, o := range []Options{{Size: 10}, {Size: 1 << 30}, {Pre: "nonsense"}, {Special: []string{"<a>", "<a>"}},
		{Special: []string{""}}} {
		if _, err := NewCounter(o); err == nil {
			t.Errorf("%+v is no error", o)
		}
	}
	c, err := NewCounter(Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Add([]string{"a"}, 0); err == nil {
		t.Error("weight 0 is no error")
	}
	if _, err := Train(context.Background(), c, Options{}); err == nil ||
		!strings.Contains(err.Error(), "263 tokens only") {
		t.Errorf("an empty corpus: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Add([]string{strings.Repeat("some words ", 9)}, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := Train(ctx, c, Options{Size: 264}); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
}
