package tokenizer

// Small tokenizers for tests, and the plainest possible merging to compare the real one with.

import (
	"fmt"
	"math"
	"math/rand"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/files/tokenkind"
	"pgregory.net/rapid"
)

func testSpec(m model) *spec {
	return &spec{
		source: "test", keys: func(f string) string { return f }, model: m,
		bos: none, eos: none, unk: none, pad: none,
	}
}

func mustBuild(t testing.TB, s *spec) *Tokenizer {
	t.Helper()
	tok, err := build(s)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// toAlphabet writes bytes in GPT-2's alphabet.
func toAlphabet(text string) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteRune(byteRune[text[i]])
	}
	return b.String()
}

// bytesSpec returns a byte-level model: all bytes, then the merged texts in order, then added tokens.
func bytesSpec(merges ...string) *spec {
	s := testSpec(byteBPE)
	s.stages = []scanner{scanGPT2}
	for b := range 256 {
		s.tokens = append(s.tokens, string(byteRune[b]))
	}
	for _, m := range merges {
		a, b, _ := strings.Cut(m, "|")
		a, b = toAlphabet(a), toAlphabet(b)
		s.merges = append(s.merges, [2]string{a, b})
		if !slices.Contains(s.tokens, a+b) {
			s.tokens = append(s.tokens, a+b)
		}
	}
	s.types = slices.Repeat([]int32{tokenkind.Normal}, len(s.tokens))
	return s
}

func (s *spec) addToken(text string, ty int32, a attr) int32 {
	id := int32(len(s.tokens))
	s.tokens, s.types = append(s.tokens, text), append(s.types, ty)
	if s.scores != nil {
		s.scores = append(s.scores, 0)
	}
	if s.attrs == nil {
		s.attrs = map[int32]attr{}
	}
	s.attrs[id] = a
	return id
}

var someMerges = []string{"t|h", "th|e", "i|n", "in|g", " |the", " |t", "e|e", "ee|ee", "e| ", "th|ing", "q|u",
	"\xe4|\xb8", " | ", "  |  ", "a|n", "an|d"}

func smallBytes(t testing.TB) *Tokenizer {
	t.Helper()
	s := bytesSpec(someMerges...)
	s.addToken("<|im_end|>", tokenkind.Control, 0)
	s.addToken("<s>", tokenkind.Control, 0)
	s.addToken("  word", tokenkind.UserDefined, 0)
	return mustBuild(t, s)
}

// somePieces are the pieces of the small SentencePiece models, best score first.
var somePieces = []string{"▁t", "he", "▁the", "in", "ing", "▁", "th", "▁▁", "▁▁▁▁", "er", "▁w", "or", "d", "ord",
	"▁word", "中文", "aa", "aaa", "aaaa", "\ufffd"}

func smallSPM(t testing.TB) *Tokenizer {
	t.Helper()
	s := testSpec(sentencePiece)
	s.space, s.fuseUnk = spaceSegments, true
	s.escape = []normalizer{escapeSpaces(true)}
	s.scores = []float64{}
	s.unk = s.addToken("<unk>", tokenkind.Unknown, 0)
	s.addToken("<s>", tokenkind.Control, 0)
	s.addToken("</s>", tokenkind.Control, 0)
	for b := range 256 {
		s.addToken(fmt.Sprintf("<0x%02X>", b), tokenkind.Byte, 0)
	}
	score := 0.0
	add := func(text string) {
		if !slices.Contains(s.tokens, text) {
			s.addToken(text, tokenkind.Normal, 0)
			s.scores[len(s.scores)-1] = score
			score--
		}
	}
	for _, p := range somePieces {
		add(p)
	}
	for _, p := range somePieces {
		for _, r := range p {
			add(string(r))
		}
	}
	return mustBuild(t, s)
}

// smallChar returns a model of the same kind as a Hugging Face file: merges, Prepend and Replace,
// byte fallback. One of its merges spans a space.
func smallChar(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := parse(files{Name: "small", Tokenizer: charJSON(t)})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func charJSON(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/char.json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// naiveMerge searches all pairs for the lowest rank, leftmost first, and merges it, until none is left.
func naiveMerge(p *pairTable, sym []int32) []int32 {
	sym = slices.Clone(sym)
	for {
		at := -1
		low := int32(math.MaxInt32)
		out := int32(0)
		for i := range len(sym) - 1 {
			if r, o := p.find(sym[i], sym[i+1]); r < low {
				at = i
				low = r
				out = o
			}
		}
		if at < 0 {
			return sym
		}
		sym = append(append(sym[:at:at], out), sym[at+2:]...)
	}
}

// The linear search and the heap both merge like the plain loop, even if ranks are
// equal, as scores can be.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPairTable(60)
		next := int32(4)
		for range rapid.IntRange(1, 60).Draw(t, "merges") {
			left, right := rapid.Int32Range(0, next-1).Draw(t, "left"), rapid.Int32Range(0, next-1).Draw(t, "right")
			p.add(left, right, rapid.Int32Range(0, 20).Draw(t, "rank"), next)
			next++
		}
		word := rapid.SliceOfN(rapid.Int32Range(0, 3), 1, 120).Draw(t, "word")
		want := naiveMerge(p, word)
		sc := newScratch().(*scratch)
		if len(word) <= shortWord {
			if got := p.mergeShort(slices.Clone(word), sc); !slices.Equal(got, want) {
				t.Fatalf("short: got %v, want %v", got, want)
			}
		}
		if got := p.mergeLong(slices.Clone(word), sc); !slices.Equal(got, want) {
			t.Fatalf("long: got %v, want %v", got, want)
		}
	})
}

func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := minHeap(rapid.SliceOf(rapid.Uint64()).Draw(t, "start"))
		all := slices.Clone(h)
		h.init()
		for _, x := range rapid.SliceOf(rapid.Uint64()).Draw(t, "pushed") {
			h.push(x)
			all = append(all, x)
		}
		slices.Sort(all)
		for _, want := range all {
			if got := h.pop(); got != want {
				t.Fatalf("got %d, want %d", got, want)
			}
		}
	})
}

// The number of steps for a word is in proportion to its length. The steps are counted, not timed.
func TestMergeIsLinear(t *testing.T) {
	s := bytesSpec("a|a", "aa|aa", "aaaa|aaaa", " | ", "  |  ", "b|a", "a|b", "ab|ab")
	tok := mustBuild(t, s)
	rng := rand.New(rand.NewSource(1))
	for _, unit := range []string{"a", " ", "ab", "ba", "aab", "\xff", ""} {
		steps := func(n int) int {
			word := strings.Repeat(unit, n)
			if unit == "" { // a random word
				b := make([]byte, n)
				for i := range b {
					b[i] = "ab "[rng.Intn(3)]
				}
				word = string(b)
			}
			sc := newScratch().(*scratch)
			tok.mergeWord(nil, word, 0, sc)
			return sc.work
		}
		small, large := steps(1<<12), steps(1<<18)
		if large > 64*small*5/4 {
			t.Errorf("words of %q: %d steps for 4096, %d for 262144", unit, small, large)
		}
	}
}

// SentencePiece's rule by its definition: join the neighbours whose joined text has the best score.
func TestSentencePieceByDefinition(t *testing.T) {
	tok := smallSPM(t)
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SampledFrom([]string{"the", "in", "word", " ", "  ", "a", "aa", "中", "文", "中文", "w",
			"é", "t", "h", "\xff"})
		text := strings.Join(rapid.SliceOfN(parts, 0, 40).Draw(t, "text"), "")
		got := tok.Encode(text, EncodeOptions{})
		if want := sentencePieceByDefinition(tok, text); !slices.Equal(got, want) {
			t.Fatalf("%q\n got %v\nwant %v", text, got, want)
		}
	})
}

func sentencePieceByDefinition(tok *Tokenizer, text string) (ids []int32) {
	if text == "" {
		return nil
	}
	score := map[string]int{}
	for i, p := range somePieces {
		score[p] = -i
	}
	var parts []string
	for s := strings.ReplaceAll(" "+text, " ", "▁"); s != ""; s = s[char(s):] {
		parts = append(parts, s[:char(s)])
	}
	for {
		at, best := -1, math.MinInt
		for i := range len(parts) - 1 {
			if x, ok := score[parts[i]+parts[i+1]]; ok && x > best {
				at, best = i, x
			}
		}
		if at < 0 {
			break
		}
		parts = append(append(parts[:at:at], parts[at]+parts[at+1]), parts[at+2:]...)
	}
	for _, p := range parts {
		if id, ok := tok.words[p]; ok {
			ids = append(ids, id)
			continue
		}
		for _, b := range []byte(p) {
			id, _ := tok.Find(fmt.Sprintf("<0x%02X>", b))
			ids = append(ids, id)
		}
	}
	return ids
}
