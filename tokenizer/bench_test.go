package tokenizer

import (
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grovellm/grove/internal/testing/testdata"
)

// BenchmarkEncode measures megabytes of text per second in one goroutine, with vocabularies from GROVE_VOCABS.
func BenchmarkEncode(b *testing.B) {
	text, err := os.ReadFile(testdata.Path(b, "prose/war_peace.txt"))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("random", func(b *testing.B) { // hardly any word occurs twice
		tok := openVocab(b, filepath.Join(vocabDir(b), "ggml-vocab-qwen2.gguf"))
		rng := rand.New(rand.NewSource(1))
		raw := make([]byte, 1<<20)
		for i := range raw {
			raw[i] = "abcdefghijklmnopqrstuvwxyzABCDEFGH01  "[rng.Intn(38)]
		}
		ids := tok.Encode(string(raw), EncodeOptions{})
		b.SetBytes(1 << 20)
		for b.Loop() {
			ids = tok.appendTokens(ids[:0], string(raw), EncodeOptions{})
		}
	})
	b.Run("one-word", func(b *testing.B) { // a megabyte of one letter
		tok := openVocab(b, filepath.Join(vocabDir(b), "ggml-vocab-gpt-2.gguf"))
		text := strings.Repeat("a", 1<<20)
		b.SetBytes(1 << 20)
		for b.Loop() {
			tok.Encode(text, EncodeOptions{})
		}
	})
	prose := string(text)
	for _, name := range []string{"gpt-2", "qwen2", "llama-bpe", "llama-spm", "deepseek-llm", "falcon"} {
		b.Run(name, func(b *testing.B) {
			tok := openVocab(b, filepath.Join(vocabDir(b), "ggml-vocab-"+name+".gguf"))
			ids := tok.Encode(prose, EncodeOptions{})
			b.SetBytes(int64(len(prose)))
			b.ReportAllocs()
			for b.Loop() {
				ids = tok.appendTokens(ids[:0], prose, EncodeOptions{})
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	tok, err := FromJSON(testdata.Path(b, "models/go-7m"))
	if err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile(testdata.Path(b, "prose/alice_valid.txt"))
	if err != nil {
		b.Fatal(err)
	}
	ids := tok.Encode(string(text), EncodeOptions{})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tok.Decode(ids, DecodeOptions{})
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, name := range []string{"gpt-2", "qwen2", "llama-spm"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				openVocab(b, filepath.Join(vocabDir(b), "ggml-vocab-"+name+".gguf"))
			}
		})
	}
}
