package convert

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tokenizer"
	"pgregory.net/rapid"
)

// preTokenizers are llama.cpp's names of pre-tokenizers that tokenizer.json can express. Those of a line split
// alike; the first is the one that conversion writes.
var preTokenizers = []string{
	"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
	"dbrx smaug-bpe glm4 chatglm-bpe",
	"qwen2 deepseek-r1-qwen kormo megrez stablelm2 hunyuan solar-open grok-2 bailingmoe bailingmoe2 llada-moe",
	"gpt-2 phi-2 jina-es jina-de gigachat jina-v2-es jina-v2-de a.x-4.0 mellum modern-bert mpt olmo jais trillion " +
		"granite-docling exaone4",
	"smollm starcoder refact command-r codeshell exaone minerva-7b mellum2",
	"deepseek-v3 hunyuan-dense joyai-llm", "gpt-4o llama4 kanana2 talkie minimax-m2", "tiny_aya cohere2moe",
	"bloom poro-chat gpt3-finnish", "jais-2", "qwen35", "falcon", "default", "deepseek-llm", "deepseek-coder", "tekken",
	"seed-coder", "kimi-k2", "minicpm5", "laguna", "exaone-moe", "viking", "youtu",
}

// A byte-level tokenizer keeps its way of splitting text from GGUF to a folder and back, whatever its name.
func TestPreTokenizersBothWays(t *testing.T) {
	texts := rapid.Custom(func(t *rapid.T) string {
		part := rapid.OneOf(rapid.StringN(1, 3, -1), rapid.SampledFrom([]string{"a", "Straße", "I'LL", "中文", "あ", "한",
			"e\u0301", "12345", "٣", "½", " ", "  ", "\n", "\r\n", "\t", "\u00a0", ".", "/", "...", "$", "_", "`", "'s", "😀"}))
		return strings.Join(rapid.SliceOfN(part, 0, 12).Draw(t, "parts"), "")
	})
	base := kindOfVocabulary{name: "bytes", from: "tiny-qwen2", at: 300}.file(t, t.TempDir())
	for _, line := range preTokenizers {
		names := strings.Fields(line)
		for i, name := range names {
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				f := writeTokenizer(t, func(w *gguf.Writer) error {
					err := ggufkeys.SetTokenizer(w, base)
					w.Set("tokenizer.ggml.pre", name)
					return err
				})
				folder(t, f, dir)
				fromFile, err1 := tokenizer.FromGGUF(f)
				fromFolder, err2 := tokenizer.FromJSON(dir)
				if err1 != nil || err2 != nil {
					t.Fatal(err1, err2)
				}
				back := writeTokenizer(t, func(w *gguf.Writer) error {
					_, err := setTokenizer(w, dir, fromFolder, fromFolder.VocabSize())
					return err
				})
				if pre, _ := gguf.Get[string](back, "tokenizer.ggml.pre"); pre != names[0] {
					t.Errorf("the folder's pre-tokenizer is %q in GGUF: want %q", pre, names[0])
				}
				if i > 0 {
					return
				}
				fromBack, err := tokenizer.FromGGUF(back)
				if err != nil {
					t.Fatal(err)
				}
				rapid.Check(t, func(t *rapid.T) {
					text := texts.Draw(t, "text")
					want := fromFile.Encode(text, tokenizer.EncodeOptions{})
					for _, tok := range []*tokenizer.Tokenizer{fromFolder, fromBack} {
						if got := tok.Encode(text, tokenizer.EncodeOptions{}); !slices.Equal(got, want) {
							t.Fatalf("%q\n got %v\nwant %v", text, got, want)
						}
					}
				})
			})
		}
	}
}

// writeTokenizer writes a GGUF file that has only the keys that set sets, and opens it.
func writeTokenizer(t *testing.T, set func(*gguf.Writer) error) *gguf.File {
	t.Helper()
	w := new(gguf.Writer)
	path := filepath.Join(t.TempDir(), "tokenizer.gguf")
	if err := errors.Join(set(w), w.WriteFile(path)); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Words that are tokens but that merges do not make: a folder that keeps them whole is not converted where GGUF has no
// pre-tokenizer that does.
func TestWordsThatMergesDoNotMake(t *testing.T) {
	base := kindOfVocabulary{name: "bytes", from: "tiny-qwen2", at: 300}.file(t, t.TempDir())
	dir := t.TempDir()
	folder(t, base, dir)
	path := filepath.Join(dir, "tokenizer.json")
	for _, c := range []struct {
		word   string
		ignore bool
		taken  bool
	}{{"", true, true}, {"qzxjv", true, false}, {"qzxjv", false, true}} {
		var file fields
		readGolden(t, path, &file)
		model := file["model"].(fields)
		model["ignore_merges"] = c.ignore
		if vocab := model["vocab"].(fields); c.word != "" {
			vocab[c.word] = len(vocab)
		}
		if err := atomicfile.WriteJSON(path, file); err != nil {
			t.Fatal(err)
		}
		tok, err := tokenizer.FromJSON(dir)
		if err != nil {
			t.Fatal(err)
		}
		err = checkTokens(func(w *gguf.Writer) error {
			_, err := setTokenizer(w, dir, tok, tok.VocabSize())
			return err
		}, tok)
		if (err == nil) != c.taken {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// The tokenizers of folders without a tokenizer.json convert as others do.
func TestOtherVocabularyFiles(t *testing.T) {
	var golden struct {
		Tekken        struct{ File json.RawMessage }
		Tiktoken      struct{ File string }
		SentencePiece struct{ File []byte }
	}
	readGolden(t, "../../tokenizer/testdata/makejson.json", &golden)
	for name, c := range map[string]struct {
		contents    []byte
		config, pre string
	}{"tekken.json": {golden.Tekken.File, "{}", "tekken"},
		"tiktoken.model":  {[]byte(golden.Tiktoken.File), `{"tokenizer_class": "TikTokenTokenizer"}`, "kimi-k2"},
		"tokenizer.model": {golden.SentencePiece.File, `{"bos_token": "<s>"}`, "default"}} {
		dir := t.TempDir()
		testfile.Write(t, filepath.Join(dir, name), c.contents)
		testfile.Write(t, filepath.Join(dir, "tokenizer_config.json"), []byte(c.config))
		source := &tokenSource{dir: dir, vocab: 1000}
		f := writeTokenizer(t, func(w *gguf.Writer) error {
			_, err := source.add(w, "")
			return err
		})
		if pre, _ := gguf.Get[string](f, "tokenizer.ggml.pre"); pre != c.pre {
			t.Errorf("%s: the pre-tokenizer is %q in GGUF: want %q", name, pre, c.pre)
		}
	}
}
