package tokenizer

// The laws of encoding and decoding, on go-7m's tokenizer and on small ones made here.

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/tokenkind"
	"github.com/grovellm/grove/internal/testing/testdata"
	"pgregory.net/rapid"
)

func go7m(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := FromJSON(testdata.Path(t, "models/go-7m"))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// testdata/go-7m.json has texts written for this test and their ids by llama-tokenize (llama.cpp
// d32676d) with go-7m's GGUF file, with and without --no-parse-special.
func TestGolden(t *testing.T) {
	var rows []struct {
		Text    string
		Special bool
		IDs     []int32
	}
	b, err := os.ReadFile("testdata/go-7m.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &rows); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(testdata.Path(t, "models/go-7m/go-7m-f32.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fromGGUF, err := FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, tok := range []*Tokenizer{fromGGUF, go7m(t)} {
		for _, r := range rows {
			ids := tok.Encode(r.Text, EncodeOptions{ParseSpecial: r.Special})
			if !slices.Equal(ids, r.IDs) {
				t.Errorf("%s, special %v: %q\n got %v\nwant %v", tok.source, r.Special, r.Text, ids, r.IDs)
			}
			if back := tok.Decode(ids, DecodeOptions{Special: true}); back != r.Text {
				t.Errorf("%q decodes to %q", r.Text, back)
			}
		}
	}
	if n := fromGGUF.VocabSize(); n != 8192 || go7m(t).VocabSize() != n {
		t.Errorf("vocabulary sizes %d and %d, want 8192", n, go7m(t).VocabSize())
	}
}

// The ids that PyTorch's golden file was made with.
func TestGoldenPrompts(t *testing.T) {
	var golden struct {
		Prompts []struct {
			Prompt string
			IDs    []int32
		}
	}
	b, err := os.ReadFile(testdata.Path(t, "models/go-7m/golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &golden); err != nil || len(golden.Prompts) == 0 {
		t.Fatal(len(golden.Prompts), err)
	}
	tok := go7m(t)
	for _, p := range golden.Prompts {
		if ids := tok.Encode(p.Prompt, EncodeOptions{AddSpecial: true}); !slices.Equal(ids, p.IDs) {
			t.Errorf("%q\n got %v\nwant %v", p.Prompt, ids, p.IDs)
		}
	}
}

// anyText draws strings that are mostly UTF-8, with runs, spaces, and text that looks like special tokens.
var anyText = rapid.Custom(func(t *rapid.T) string {
	part := rapid.OneOf(rapid.SampledFrom(alphabet), rapid.String(),
		rapid.SampledFrom([]string{"<|im_end|>", "<|endoftext|>", "<s>", "</s>", "<0x41>", "<unk>", "▁", "  ", "word",
			"\xff", "\xe4\xb8"}))
	return strings.Join(rapid.SliceOfN(part, 0, 30).Draw(t, "parts"), "")
})

// small returns tokenizers of every model, made from a handful of merges.
func small(t testing.TB) map[string]*Tokenizer {
	t.Helper()
	m := map[string]*Tokenizer{"spm": smallSPM(t), "char": smallChar(t), "unigram": smallUnigram(t), "bytes": smallBytes(t)}
	if _, err := os.Stat(testdata.Dir()); err == nil {
		m["go-7m"] = go7m(t)
	}
	return m
}

// Decoding undoes encoding, byte for byte, even if the text is not UTF-8. Plain text never becomes
// a control token, and there are never ids outside the vocabulary.
func TestRoundTrip(t *testing.T) {
	for name, tok := range small(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				text := anyText.Draw(t, "text")
				if tok.model != byteBPE {
					text = strings.ReplaceAll(text, "▁", "_") // ▁ stands for a space in these models
				}
				ids := tok.Encode(text, EncodeOptions{})
				if back := tok.Decode(ids, DecodeOptions{}); back != text {
					t.Fatalf("%q decodes to %q by %v", text, back, ids)
				}
				for _, id := range ids {
					if !tok.has(id) || tok.types[id] == tokenkind.Control || tok.types[id] == tokenkind.Unknown {
						t.Fatalf("%q gives the token %d, %q", text, id, tok.Text(id))
					}
				}
				parsed := tok.Encode(text, EncodeOptions{ParseSpecial: true})
				if back := tok.Decode(parsed, DecodeOptions{Special: true}); back != text {
					t.Fatalf("%q decodes to %q by %v", text, back, parsed)
				}
			})
		})
	}
}

// checkDecoder checks that the pieces of a Decoder make up the result of Decode, with bytes that are not
// UTF-8 replaced one by one; that every piece is valid UTF-8; and that at most three bytes are held back.
func checkDecoder(t interface{ Fatalf(string, ...any) }, tok *Tokenizer, ids []int32, o DecodeOptions) {
	d := tok.NewDecoder(o)
	var got strings.Builder
	for _, id := range ids {
		s := d.Push(id)
		if !utf8.ValidString(s) {
			t.Fatalf("%v: Push gave %q", ids, s)
		}
		if len(d.pending) > 3 {
			t.Fatalf("%v: %d bytes held back", ids, len(d.pending))
		}
		got.WriteString(s)
	}
	got.WriteString(d.Flush())
	if want := string([]rune(tok.Decode(ids, o))); got.String() != want {
		t.Fatalf("%v: %q in pieces, %q at once", ids, got.String(), want)
	}
}

func TestDecoder(t *testing.T) {
	for name, tok := range small(t) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				ids := rapid.SliceOf(rapid.Int32Range(-2, int32(tok.VocabSize())+1)).Draw(t, "ids")
				o := DecodeOptions{Special: rapid.Bool().Draw(t, "special"), Continue: rapid.Bool().Draw(t, "continue")}
				checkDecoder(t, tok, ids, o)
			})
		})
	}
}

func FuzzDecoder(f *testing.F) {
	toks := small(f)
	f.Add([]byte("hello"), false, false)
	f.Add([]byte{0xe4, 0xb8, 0xad, 0xff, 0x20, 0xf0, 0x9f}, true, true)
	f.Fuzz(func(t *testing.T, raw []byte, special, cont bool) {
		for _, tok := range toks {
			ids := make([]int32, len(raw))
			for i, b := range raw {
				ids[i] = int32(b) % int32(tok.VocabSize()+1)
			}
			checkDecoder(t, tok, ids, DecodeOptions{special, cont})
		}
	})
}

func FuzzEncodeDecode(f *testing.F) {
	toks := small(f)
	for _, s := range []string{"", " ", "Hello, world", "<s><|im_end|></s>", "\xff\xfe\x80", "▁▁ ▁a", "e\u0301 中文 😀"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, tok := range toks {
			text := text
			if tok.model != byteBPE {
				text = strings.ReplaceAll(text, "▁", "_")
			}
			for _, o := range []EncodeOptions{{}, {ParseSpecial: true}} {
				ids := tok.Encode(text, o)
				if back := tok.Decode(ids, DecodeOptions{Special: true}); back != text {
					t.Fatalf("%s: %q decodes to %q by %v", name, text, back, ids)
				}
				checkDecoder(t, tok, ids, DecodeOptions{})
			}
		}
	})
}

// A tokenizer used from many goroutines gives the same results as in one.
func TestConcurrentUse(t *testing.T) {
	tok := smallBytes(t)
	texts := []string{strings.Repeat("the quick thing ", 200), strings.Repeat("in then ", 500), strings.Repeat("e", 3000)}
	want := make([][]int32, len(texts))
	for i, s := range texts {
		want[i] = tok.Encode(s, EncodeOptions{})
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for k := range 20 {
				i := (g + k) % len(texts)
				if !slices.Equal(tok.Encode(texts[i], EncodeOptions{}), want[i]) {
					t.Errorf("goroutine %d got other ids", g)
				}
			}
		})
	}
	wg.Wait()
}

// A shielded name is text, and encodes like the name when special tokens are not parsed.
func TestShield(t *testing.T) {
	const shield = "\ufdd0"
	for name, tok := range small(t) {
		for id, text := range tok.text {
			if tok.types[id] != tokenkind.Control {
				continue
			}
			in := "a " + text[:1] + shield + text[1:] + " b"
			got := tok.Encode(in, EncodeOptions{ParseSpecial: true, shield: shield})
			if want := tok.Encode("a "+text+" b", EncodeOptions{}); !slices.Equal(got, want) {
				t.Errorf("%s: %q gives %v, want %v", name, in, got, want)
			}
		}
	}
}

// Words seen before allocate nothing.
func TestNoAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	tok := smallBytes(t)
	text := strings.Repeat("the quick brown thing, then another. ", 50)
	ids := tok.Encode(text, EncodeOptions{})
	if n := testing.AllocsPerRun(50, func() { ids = tok.appendTokens(ids[:0], text, EncodeOptions{}) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
