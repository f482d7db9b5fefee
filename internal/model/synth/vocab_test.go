package synth

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
)

// The results of llama.cpp's llama-tokenize for the sentence with these files.
const sentence = "The theatre's notes, 1234 times: héllo 世界"

var llamaCpp = map[string][]int32{
	"tiny-llama2": {1, 259, 311, 500, 479, 393, 526, 328, 266, 342, 438, 386, 342, 271, 259, 276, 277, 278, 279, 413, 336,
		465, 285, 361, 198, 172, 335, 335, 338, 259, 231, 187, 153, 234, 152, 143},
	"tiny-llama3": {763, 84, 402, 381, 295, 428, 101, 39, 115, 340, 288, 115, 44, 32, 49, 50, 51, 52, 315, 109, 367, 58,
		263, 195, 169, 108, 516, 32, 228, 184, 150, 231, 149, 140},
	"tiny-qwen2": {84, 402, 381, 295, 428, 101, 39, 115, 340, 288, 115, 44, 32, 49, 50, 51, 52, 315, 109, 367, 58, 263,
		195, 169, 108, 516, 32, 228, 184, 150, 231, 149, 140},
	"tiny-gptneox": {84, 402, 381, 295, 428, 101, 39, 115, 340, 288, 115, 44, 32, 49, 50, 51, 52, 315, 109, 367, 58, 263,
		195, 169, 108, 516, 32, 228, 184, 150, 231, 149, 140},
}

// Both files' tokenizers agree with each other and with llama.cpp, and lose nothing.
func TestTokenizers(t *testing.T) {
	texts := []string{sentence, "", " ", "  two  spaces\n\n and\ttabs ", "a", "int main() { return 0; }",
		strings.Repeat("the rest of the street ", 40), "\x00\xff"}
	for _, s := range tiny() {
		w, dir := new(gguf.Writer), t.TempDir()
		s.setMeta(w, tensor.F32)
		v, err := buildVocab(s.Tokens, s.Vocab)
		if err := errors.Join(err, s.setTokenizer(w), v.writeFiles(dir, s.Tokens)); err != nil {
			t.Fatal(err)
		}
		var data bytes.Buffer
		if _, err := w.WriteTo(&data); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Parse(s.Name, data.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		a, err := tokenizer.FromGGUF(f)
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		b, err := tokenizer.FromJSON(filepath.Join(dir, "tokenizer.json"))
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		if a.VocabSize() != s.Vocab || b.VocabSize() != s.Vocab {
			t.Errorf("%s: %d and %d tokens, want %d", s.Name, a.VocabSize(), b.VocabSize(), s.Vocab)
		}
		if a.EOS() != b.EOS() || a.AddBOS() != b.AddBOS() || !a.IsEOG(a.EOS()) {
			t.Errorf("%s: the files disagree on the specials", s.Name)
		}
		o := tokenizer.EncodeOptions{AddSpecial: true}
		for _, text := range texts {
			x, y := a.Encode(text, o), b.Encode(text, o)
			if !slices.Equal(x, y) {
				t.Errorf("%s: %q is %v in GGUF, %v in tokenizer.json", s.Name, text, x, y)
			}
			if got := a.Decode(a.Encode(text, tokenizer.EncodeOptions{}), tokenizer.DecodeOptions{}); got != text {
				t.Errorf("%s: %q comes back as %q", s.Name, text, got)
			}
		}
		if want, ok := llamaCpp[s.Name]; ok && !slices.Equal(a.Encode(sentence, o), want) {
			t.Errorf("%s: %q is %v, llama.cpp says %v", s.Name, sentence, a.Encode(sentence, o), want)
		}
	}
}

func TestVocabularies(t *testing.T) {
	for _, kind := range []Tokens{SPM, Llama3, Qwen2, GPT2} {
		for _, n := range []int{minVocab, 401, 777, 32000, 151936, maxVocab} {
			if n > 1000 && (testing.Short() || n > 32000 && kind != SPM && kind != Qwen2) {
				continue // one function makes the words of all kinds
			}
			v, err := buildVocab(kind, n)
			if err != nil {
				t.Fatal(err)
			}
			seen := make(map[string]bool, n)
			for _, p := range v.pieces {
				if p == "" || seen[p] {
					t.Fatalf("%s, %d pieces: %q is empty or there twice", kind, n, p)
				}
				seen[p] = true
			}
			if len(v.pieces) != n || len(v.kinds) != n {
				t.Errorf("%s: %d pieces of %d kinds, want %d", kind, len(v.pieces), len(v.kinds), n)
			}
			made := map[string]bool{}
			for _, m := range v.merges {
				if !seen[m[0]] || !seen[m[1]] || !seen[m[0]+m[1]] || made[m[0]+m[1]] {
					t.Fatalf("%s, %d pieces: merge %q", kind, n, m)
				}
				made[m[0]+m[1]] = true
			}
		}
	}
}
