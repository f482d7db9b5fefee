package tokenizer

// llama.cpp's own vocabulary tests: ggml-vocab-NAME.gguf with texts (.inp) and the ids that Hugging
// Face's tokenizers gave for them (.out). They cannot be kept here: GROVE_VOCABS names a folder
// that has them (the folder models of a llama.cpp checkout).

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
)

func vocabDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("GROVE_VOCABS")
	if dir == "" {
		t.Skip("no vocabulary files: set GROVE_VOCABS to the folder models of a llama.cpp checkout")
	}
	return dir
}

func openVocab(t testing.TB, path string) *Tokenizer {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Skipf("cannot open: %v", err)
	}
	t.Cleanup(func() { f.Close() })
	tok, err := FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// llama.cpp's BERT vocabularies are WordPiece, which grove does not read.
var notOurs = []string{"bert-bge", "nomic-bert-moe"}

func TestLlamaCppVocabularies(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(vocabDir(t), "ggml-vocab-*.gguf"))
	if len(files) == 0 {
		t.Skipf("no ggml-vocab-*.gguf in %s", vocabDir(t))
	}
	for _, path := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "ggml-vocab-"), ".gguf")
		if slices.Contains(notOurs, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			tok := openVocab(t, path)
			in, err := os.ReadFile(path + ".inp")
			if err != nil {
				t.Skipf("no texts for this vocabulary: %v", err)
			}
			out, err := os.ReadFile(path + ".out")
			if err != nil {
				t.Skipf("no ids for this vocabulary: %v", err)
			}
			texts := strings.Split(string(in), "\n__ggml_vocab_test__\n")
			lines := strings.Split(string(out), "\n")
			passed, total := 0, 0
			for i, line := range lines[:len(lines)-1] {
				total++
				got := strings.Trim(fmt.Sprint(tok.Encode(texts[i], EncodeOptions{})), "[]")
				if want := strings.Join(strings.Fields(line), " "); got != want {
					t.Errorf("%q\n got %s\nwant %s", texts[i], got, want)
				} else {
					passed++
				}
				if back := tok.Decode(tok.Encode(texts[i], EncodeOptions{}), DecodeOptions{}); back != texts[i] {
					t.Errorf("%q decodes to %q", texts[i], back)
				}
			}
			t.Logf("%d of %d", passed, total)
		})
	}
}
