package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/grovellm/grove/internal/files/tokenkind"
	"pgregory.net/rapid"
)

// testdata/unigram.json is a tokenizer.json with a Unigram vocabulary of 420 pieces and a character map
// of 19 rules. SentencePiece 0.1.97 made it from grove's documentation and a few sentences in other
// languages. The fields around the vocabulary are those that transformers writes for such a model.
func unigramJSONFile(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/unigram.json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// unigramVocab reads that file's vocabulary and character map. With withBytes, the 256 byte tokens follow.
func unigramVocab(t testing.TB, withBytes bool) (vocab []any, charsmap []byte) {
	t.Helper()
	var file struct {
		Normalizer struct {
			Normalizers []struct {
				Charsmap []byte `json:"precompiled_charsmap"`
			}
		}
		Model struct{ Vocab []any }
	}
	if err := json.Unmarshal(unigramJSONFile(t), &file); err != nil {
		t.Fatal(err)
	}
	vocab = file.Model.Vocab
	for b := range 256 {
		if withBytes {
			vocab = append(vocab, []any{fmt.Sprintf("<0x%02X>", b), 0.0})
		}
	}
	return vocab, file.Normalizer.Normalizers[0].Charsmap
}

// unigramMeta returns the keys that llama.cpp's converter writes for a vocabulary.
func unigramMeta(vocab []any) meta {
	var tokens []string
	var scores []float32
	var types []int32
	for i, p := range vocab {
		text := p.([]any)[0].(string)
		ty := tokenkind.Normal
		if _, ok := fallbackByte(text); ok {
			ty = tokenkind.Byte
		}
		if i < 3 {
			ty = []int32{tokenkind.Control, tokenkind.Control, tokenkind.Unknown}[i]
		}
		tokens = append(tokens, text)
		scores = append(scores, float32(p.([]any)[1].(float64)))
		types = append(types, int32(ty))
	}
	return meta{"tokenizer.ggml.model": "t5", "tokenizer.ggml.pre": "default", "tokenizer.ggml.tokens": tokens,
		"tokenizer.ggml.scores": scores, "tokenizer.ggml.token_type": types,
		"tokenizer.ggml.padding_token_id": uint32(0), "tokenizer.ggml.eos_token_id": uint32(1),
		"tokenizer.ggml.unknown_token_id": uint32(2)}
}

// testdata/unigram_ids.json has random texts and their ids under many settings, with special tokens added and
// parsed. Cases with a patch are from Hugging Face's tokenizers 0.23.2 (the Node package of that name), which
// read unigram.json with those fields replaced. The others have keys of a GGUF file in addition to those of
// unigramMeta, and are from llama.cpp d32676d (llama_tokenize), which read that file. One case, with byte
// tokens, is from SentencePiece 0.1.97, since llama.cpp has no byte fallback in Unigram models. When this was
// written, 219,000 such texts gave no difference, 51,000 of them under T5's character map, nmt_nfkc.
func TestUnigramGolden(t *testing.T) {
	var cases []struct {
		Name     string
		Bytes    bool // the 256 byte tokens follow the vocabulary
		Charsmap bool
		User     []int // tokens that are user-defined
		Patch    map[string]any
		Keys     map[string]bool
		Texts    []string
		IDs      [][]int32
	}
	b, err := os.ReadFile("testdata/unigram_ids.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) == 0 {
		t.Fatal(len(cases), err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			vocab, charsmap := unigramVocab(t, c.Bytes)
			var tok *Tokenizer
			if c.Patch != nil {
				c.Patch["model"] = map[string]any{"vocab": vocab, "byte_fallback": c.Bytes}
				tok, err = parse(files{Name: c.Name, Tokenizer: patched(t, unigramJSONFile(t), c.Patch)})
			} else {
				m := unigramMeta(vocab)
				if c.Charsmap {
					m["tokenizer.ggml.precompiled_charsmap"] = charsmap
				}
				for _, id := range c.User {
					m["tokenizer.ggml.token_type"].([]int32)[id] = int32(tokenkind.UserDefined)
				}
				for k, v := range c.Keys {
					m["tokenizer.ggml."+k] = v
				}
				tok, err = FromGGUF(writeGGUF(t, m))
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, text := range c.Texts {
				if ids := tok.Encode(text, EncodeOptions{AddSpecial: true, ParseSpecial: true}); !slices.Equal(ids, c.IDs[i]) {
					t.Errorf("%q\n got %v\nwant %v", text, ids, c.IDs[i])
				}
			}
		})
	}
}

// smallUnigram returns a model whose normaliser loses nothing: Prepend and Replace, and byte tokens.
func smallUnigram(t testing.TB) *Tokenizer {
	t.Helper()
	return parseUnigram(t, true, obj{"normalizer": spaceSteps(true), "pre_tokenizer": nil, "decoder": plainDecoder("always")})
}

func parseUnigram(t testing.TB, withBytes bool, patch obj) *Tokenizer {
	t.Helper()
	vocab, _ := unigramVocab(t, withBytes)
	patch["model"] = map[string]any{"vocab": vocab, "byte_fallback": withBytes}
	tok, err := parse(files{Name: "small", Tokenizer: patched(t, unigramJSONFile(t), patch)})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// spaceSteps returns llama.cpp's rules for spaces, if it merges none, as in a tokenizer.json.
func spaceSteps(front bool) obj {
	steps := []any{}
	if front {
		steps = append(steps, obj{"type": "Prepend", "prepend": "▁"})
	}
	steps = append(steps, obj{"type": "Replace", "pattern": obj{"String": " "}, "content": "▁"})
	return obj{"type": "Sequence", "normalizers": steps}
}

func plainDecoder(scheme string) obj {
	return obj{"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme}
}

// randomUnigram draws a vocabulary of <unk>, the bytes and a few pieces. Sums of the scores are exact.
func randomUnigram(t *rapid.T) (pieces map[string]float64, s *spec) {
	s = testSpec(unigram)
	s.scores = []float64{}
	s.unk = s.addToken("<unk>", tokenkind.Unknown, 0)
	for b := range 256 {
		s.addToken(fmt.Sprintf("<0x%02X>", b), tokenkind.Byte, 0)
	}
	pieces = rapid.MapOfN(rapid.StringMatching(`a|b|▁|é|[ab▁éx]{2}|ax|[ab▁éx]{3}`), rapid.Custom(func(t *rapid.T) float64 {
		return float64(rapid.IntRange(-40, 40).Draw(t, "score")) / 4
	}), 1, 10).Draw(t, "pieces")
	for _, text := range slices.Sorted(maps.Keys(pieces)) {
		s.addToken(text, tokenkind.Normal, 0)
		s.scores[len(s.scores)-1] = pieces[text]
		s.lowest = min(s.lowest, pieces[text])
	}
	return pieces, s
}

// The tokens of a word are those of the best of all its segmentations.
func TestUnigramBestSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces, s := randomUnigram(t)
		tok, err := build(s)
		if err != nil {
			t.Fatal(err)
		}
		var best func(w string) float64
		best = func(w string) float64 {
			if w == "" {
				return 0
			}
			top := math.Inf(-1)
			for end := char(w); end <= len(w); end += char(w[end:]) {
				score, ok := pieces[w[:end]]
				if !ok && end == char(w) {
					score, ok = s.lowest-unknownPenalty, true
				}
				if ok {
					top = max(top, score+best(w[end:]))
				}
				if end == len(w) {
					break
				}
			}
			return top
		}
		for range 8 {
			word := rapid.StringMatching(`[ab▁éx]{1,8}`).Draw(t, "word")
			ids := tok.Encode(word, EncodeOptions{})
			sum, rest := 0.0, word
			for _, id := range ids {
				piece, score := s.tokens[id], s.scores[id]
				if tok.kind(id) == tokenkind.Byte {
					piece, score = rest[:1], 0
					if utf8.RuneStart(rest[0]) {
						score = s.lowest - unknownPenalty // for the character
					}
				}
				if tok.Piece(id) != strings.ReplaceAll(piece, "▁", " ") || !strings.HasPrefix(rest, piece) {
					t.Fatalf("%q gives %v, and %q is not where token %d is", word, ids, tok.Piece(id), id)
				}
				sum, rest = sum+score, rest[len(piece):]
			}
			if want := best(word); sum != want || rest != "" {
				t.Fatalf("%q with %v: %v has the sum %g, the best is %g", word, pieces, ids, sum, want)
			}
		}
	})
}

// A GGUF file and a tokenizer.json with the same vocabulary give the same tokens, and with byte
// tokens both decode to the text.
func TestUnigramSameInBothFormats(t *testing.T) {
	for _, withBytes := range []bool{false, true} {
		vocab, charsmap := unigramVocab(t, withBytes)
		for name, c := range map[string]struct {
			front, merge bool
			patch        obj // nil: the file unchanged
			letters      string
		}{
			"plain": {false, false, obj{"normalizer": spaceSteps(false), "pre_tokenizer": nil, "decoder": plainDecoder("never")},
				"▁\t "},
			"space before": {true, false, obj{"normalizer": spaceSteps(true), "pre_tokenizer": nil,
				"decoder": plainDecoder("always")}, "▁\t "},
			"merged": {true, true, obj{}, "\t\n… ﬁ２ "},
		} {
			m := unigramMeta(vocab)
			m["tokenizer.ggml.add_space_prefix"], m["tokenizer.ggml.remove_extra_whitespaces"] = c.front, c.merge
			if c.merge {
				m["tokenizer.ggml.precompiled_charsmap"] = charsmap
			}
			fromGGUF, err := FromGGUF(writeGGUF(t, m))
			if err != nil {
				t.Fatal(err)
			}
			fromJSON := parseUnigram(t, withBytes, c.patch)
			rapid.Check(t, func(t *rapid.T) {
				text := strings.Join(rapid.SliceOfN(rapid.OneOf(
					rapid.StringMatching("[a-zA-Zé中文"+c.letters+"]{0,8}"), rapid.SampledFrom([]string{"</s>", "the ",
						" of the training", "\xff"}),
				), 0, 10).Draw(t, "parts"), "")
				for _, part := range strings.Split(text, "</s>") {
					if part != "" && strings.Trim(part, " ") == "" {
						return // llama.cpp puts no space before spaces
					}
				}
				for _, o := range []EncodeOptions{{}, {AddSpecial: true, ParseSpecial: true}} {
					a, b := fromGGUF.Encode(text, o), fromJSON.Encode(text, o)
					if !slices.Equal(a, b) {
						t.Fatalf("%s: %q\n gives %v from GGUF,\n and %v from JSON", name, text, a, b)
					}
					// ▁ stands for a space, and a text that begins with a token has no space before it.
					if withBytes && !c.merge && !o.ParseSpecial && !strings.Contains(text, "▁") {
						if x, y := fromGGUF.Decode(a, DecodeOptions{}), fromJSON.Decode(b, DecodeOptions{}); x != text || y != text {
							t.Fatalf("%s: %q decodes to %q and %q", name, text, x, y)
						}
					}
				}
			})
		}
	}
}

// The work is in proportion to the text.
func TestUnigramIsLinear(t *testing.T) {
	for name, tok := range map[string]*Tokenizer{"words": smallUnigram(t),
		"one": parseUnigram(t, true, obj{"pre_tokenizer": nil})} {
		steps := func(n int) int {
			sc := newScratch().(*scratch)
			tok.mergeWord(nil, strings.Repeat("training the", n), 0, sc)
			return sc.work
		}
		if small, large := steps(1<<8), steps(1<<14); small == 0 || large > 65*small {
			t.Errorf("%s: %d steps for 256, %d for 16384", name, small, large)
		}
	}
}

// Invalid vocabularies are refused, with the name of the field.
func TestUnigramErrors(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		change func(vocab []any, m meta)
		want   string
	}{
		{func(v []any, m meta) { m["tokenizer.ggml.scores"].([]float32)[7] = float32(nan) },
			"tokenizer.ggml.scores: entry 7 is NaN"},
		{func(v []any, m meta) { m["tokenizer.ggml.scores"].([]float32)[7] = float32(inf) },
			"tokenizer.ggml.scores: entry 7 is +Inf"},
		{func(v []any, m meta) { delete(m, "tokenizer.ggml.scores") }, "tokenizer.ggml.scores: 0 entries for 420"},
		{func(v []any, m meta) { m["tokenizer.ggml.tokens"].([]string)[9] = "s" },
			`tokenizer.ggml.tokens: entries 4 and 9 are the same piece, "s"`},
		{func(v []any, m meta) { m["tokenizer.ggml.tokens"].([]string)[9] = strings.Repeat("s", maxPiece+1) },
			"tokenizer.ggml.tokens: entry 9 has 1025 bytes"},
		{func(v []any, m meta) { m["tokenizer.ggml.unknown_token_id"] = uint32(5) },
			"tokenizer.ggml.unknown_token_id: missing"},
		{func(v []any, m meta) { m["tokenizer.ggml.precompiled_charsmap"] = []int32{1, 2} },
			"tokenizer.ggml.precompiled_charsmap: "},
		{func(v []any, m meta) { m["tokenizer.ggml.precompiled_charsmap"] = []byte{1, 2} },
			"tokenizer.ggml.precompiled_charsmap: "},
		{func(v []any, m meta) { m["tokenizer.ggml.remove_extra_whitespaces"] = "yes" },
			"tokenizer.ggml.remove_extra_whitespaces"},
	} {
		vocab, _ := unigramVocab(t, false)
		m := unigramMeta(vocab)
		c.change(vocab, m)
		if _, err := FromGGUF(writeGGUF(t, m)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got error %v, want %s", err, c.want)
		}
	}
	for _, c := range []struct {
		patch obj
		want  string
	}{
		{obj{"model": obj{"unk_id": nil}}, "model.unk_id: missing"},
		{obj{"model": obj{"unk_id": 420}}, "model.unk_id: 420 is outside"},
		{obj{"model": obj{"alpha": 0.1}}, `unknown field "alpha"`},
		{obj{"model": obj{"vocab": []any{[]any{"a", 1}, []any{"a", 2}}}},
			`model.vocab: entries 0 and 1 are the same piece, "a"`},
		{obj{"model": obj{"vocab": []any{[]any{"a"}}}}, `model.vocab: ["a"] is not a piece with its score`},
		{obj{"model": obj{"vocab": []any{[]any{"a", nil}}}}, "is not a piece with its score"},
		{obj{"pre_tokenizer": obj{"type": "ByteLevel"}}, "pre_tokenizer: ByteLevel is not supported with a Unigram model"},
		{obj{"pre_tokenizer": obj{"type": "WhitespaceSplit"}}, `pre_tokenizer: "WhitespaceSplit" is not known`},
		{obj{"pre_tokenizer": obj{"type": "Sequence", "pretokenizers": []any{obj{"type": "WhitespaceSplit"},
			obj{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"}}}},
			"pre_tokenizer: WhitespaceSplit is supported only before"},
		{obj{"normalizer": obj{"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, "normalizer.precompiled_charsmap: "},
		{obj{"normalizer": obj{"type": "Replace", "pattern": obj{"Regex": "a+"}, "content": "b"}}, "normalizer: Replace: only"},
		{obj{"decoder": nil}, "decoder: missing"},
	} {
		if _, err := parse(files{Name: "x", Tokenizer: patched(t, unigramJSONFile(t), c.patch)}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("got error %v, want %s", err, c.want)
		}
	}
}
