package tokenizer

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// madeGolden is testdata/makejson.json, which testdata/makejson.py made.
type madeGolden struct {
	Texts  []string
	Tekken struct {
		File json.RawMessage
		IDs  [][]int32
	}
	Tiktoken struct {
		File string
		IDs  [][]int32
	}
	SentencePiece, NoSpace struct {
		File []byte
		IDs  [][]int32
	}
}

func readMadeGolden(t testing.TB) (g madeGolden) {
	t.Helper()
	b, err := os.ReadFile("testdata/makejson.json")
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.Replace(b, []byte(`"sentencepiece-no-space"`), []byte(`"nospace"`), 1)
	if err := json.Unmarshal(b, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// kimiConfig names a few of the tokens behind the 600 of the vocabulary.
const kimiConfig = `{"tokenizer_class": "TikTokenTokenizer", "bos_token": "[BOS]", "eos_token": "<|im_end|>",
	"added_tokens_decoder": {"600": {"content": "[BOS]", "special": true}, "602": {"content": "<|im_end|>", "special": true},
	"603": {"content": "<tool>", "special": false}}}`

// Folders without a tokenizer.json give the ids of mistral-common, tiktoken and SentencePiece.
func TestOtherVocabularyFiles(t *testing.T) {
	g := readMadeGolden(t)
	for name, c := range map[string]struct {
		file     string
		contents []byte
		config   string
		ids      [][]int32
		prefix   string
	}{
		"tekken":   {"tekken.json", g.Tekken.File, "", g.Tekken.IDs, "<s>"},
		"tiktoken": {"tiktoken.model", []byte(g.Tiktoken.File), kimiConfig, g.Tiktoken.IDs, ""},
		"space":    {"tokenizer.model", g.SentencePiece.File, "", g.SentencePiece.IDs, "<s>"},
		"no space": {"tokenizer.model", g.NoSpace.File, `{"add_bos_token": false}`, g.NoSpace.IDs, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tok, err := Parse("folder", map[string][]byte{c.file: c.contents, "tokenizer_config.json": []byte(c.config)})
			if err != nil {
				t.Fatal(err)
			}
			for i, text := range g.Texts {
				if got := tok.Encode(text, EncodeOptions{}); !slices.Equal(got, c.ids[i]) {
					t.Errorf("%q\n got %v\nwant %v", text, got, c.ids[i])
				}
				if got := tok.Decode(c.ids[i], DecodeOptions{}); got != text && !strings.Contains(text, "▁") {
					t.Errorf("%v is %q: want %q", c.ids[i], got, text)
				}
			}
			want := []int32{}
			if c.prefix != "" {
				id, _ := tok.Find(c.prefix)
				want = append(want, id)
			}
			if got := tok.Encode("", EncodeOptions{AddSpecial: true}); !slices.Equal(got, want) {
				t.Errorf("an empty text begins with %v: want %v", got, want)
			}
		})
	}
}

// Tokens of tokenizer_config.json behind the vocabulary have their names, and those without one are reserved; those in
// a SentencePiece vocabulary replace its pieces.
func TestNamesOfAddedTokens(t *testing.T) {
	g := readMadeGolden(t)
	kimi, err := Parse("folder", map[string][]byte{"tiktoken.model": []byte(g.Tiktoken.File),
		"tokenizer_config.json": []byte(kimiConfig)})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int32]string{600: "[BOS]", 601: "<|reserved_token_601|>", 602: "<|im_end|>", 603: "<tool>",
		855: "<|reserved_token_855|>"} {
		if got := kimi.Text(id); got != want || kimi.IsSpecial(id) != (id != 603) {
			t.Errorf("token %d is %q: want %q", id, got, want)
		}
	}
	if kimi.VocabSize() != 856 || kimi.BOS() != 600 || !kimi.IsEOG(602) {
		t.Errorf("%d tokens, BOS %d", kimi.VocabSize(), kimi.BOS())
	}
	pieces, err := Parse("folder", map[string][]byte{"tokenizer.model": g.SentencePiece.File,
		"tokenizer_config.json": []byte(`{"eos_token": "<|im_end|>", "added_tokens_decoder": {"3": {"content": "<|im_end|>", "special": true},
		"520": {"content": "<|call|>", "special": true}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	got := pieces.Encode("x<|im_end|><|call|>", EncodeOptions{ParseSpecial: true})
	if n := len(got); n < 3 || got[n-2] != 3 || got[n-1] != 520 || !pieces.IsEOG(3) {
		t.Errorf("the renamed and the added token are %v", got)
	}
}

// A damaged file is an error that names it, and never a crash.
func TestDamagedVocabularyFiles(t *testing.T) {
	g := readMadeGolden(t)
	files := map[string][]byte{"tekken.json": g.Tekken.File, "tiktoken.model": []byte(g.Tiktoken.File),
		"tokenizer.model": g.SentencePiece.File}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"tekken.json", "tiktoken.model", "tokenizer.model"}).Draw(t, "file")
		b := slices.Clone(files[name])
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			switch rapid.IntRange(0, 2).Draw(t, "how") {
			case 0:
				b[at] = rapid.Byte().Draw(t, "byte")
			case 1:
				b = b[:at+1]
			default:
				b = append(b[:at:at], b[min(len(b), at+rapid.IntRange(1, 40).Draw(t, "gone")):]...)
			}
			if len(b) == 0 {
				return
			}
		}
		tok, err := Parse("folder", map[string][]byte{name: b, "tokenizer_config.json": []byte(kimiConfig)})
		if err != nil && !strings.Contains(err.Error(), name) && !strings.Contains(err.Error(), "special token") {
			t.Fatalf("the error does not name the file %s: %v", name, err)
		}
		if err == nil {
			tok.Encode("Hello, world", EncodeOptions{AddSpecial: true, ParseSpecial: true})
		}
	})
}

// What cannot be honoured is refused by name.
func TestRefusedVocabularyFiles(t *testing.T) {
	g := readMadeGolden(t)
	for _, c := range []struct{ file, contents, config, want string }{
		{"tiktoken.model", g.Tiktoken.File, `{"tokenizer_class": "OtherTokenizer"}`, `tokenizer_class "OtherTokenizer"`},
		{"tiktoken.model", "IQ== 1\n", kimiConfig, "line 1"},
		{"tokenizer.model", g.Tiktoken.File, "", "no SentencePiece model"},
		{"tokenizer.model", "\x12\x02\x18\x01", "", "model_type 1 is not BPE"},
		{"tokenizer.model", "\x12\x02\x18\x02", "", "remove_extra_whitespaces"},
		{"tekken.json", `{"config": {"default_vocab_size": 4, "default_num_special_tokens": 2}, "vocab": [{"rank": 0}]}`, "",
			"default_vocab_size 4"},
		{"tekken.json", strings.Replace(string(g.Tekken.File), `"pattern":"`, `"pattern":"x`, 1), "", "no scanner"},
	} {
		_, err := Parse("folder", map[string][]byte{c.file: []byte(c.contents), "tokenizer_config.json": []byte(c.config)})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "folder/"+c.file) {
			t.Errorf("%s: %v: want %q", c.file, err, c.want)
		}
	}
}
