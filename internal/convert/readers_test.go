package convert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/files/tokenkind"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/testing/testdata"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tensor"
	"github.com/grovellm/grove/tokenizer"
)

var keepFolders = flag.String("folders", "", "write the folders of TestReaders here")

// added are tokens that are inserted into a vocabulary among its others, where published files have them.
var added = []struct {
	text string
	kind int32
}{
	{"<|im_start|>", tokenkind.Control}, {"<|im_end|>", tokenkind.Control}, {"\n\n", tokenkind.UserDefined}, {"</b>",
		tokenkind.UserDefined},
	{"<table>", tokenkind.UserDefined}, {"[multimodal]", tokenkind.UserDefined}, {"<mask>", tokenkind.Control},
	{"[PAD]", tokenkind.Unused}, {"<end_of_turn>", tokenkind.Control}, {"\n\n\n", tokenkind.UserDefined},
}

// kindOfVocabulary is a tokenizer that grove writes into a folder.
type kindOfVocabulary struct {
	name, from string // from names a model with random weights
	pre        string // name of the pre-tokenizer, if it differs from the model's
	at         int    // where the added tokens are inserted
	front      bool   // SentencePiece's space in front
}

var vocabularies = []kindOfVocabulary{
	{"bytes-start", "tiny-qwen2", "smollm", 0, false},
	{"bytes-middle", "tiny-qwen2", "", 300, false},
	{"bytes-words", "tiny-llama3", "", 100, false},
	{"bytes-gpt2", "tiny-gptneox", "gpt-2", 256, false},
	{"pieces-space", "tiny-llama2", "", 3, true},
	{"pieces", "tiny-llama2", "", 300, false},
	{"unigram", "", "", 3, true},
	{"unigram-bytes", "", "", 280, true},
}

// file writes a GGUF file that has only the tokenizer.
func (k kindOfVocabulary) file(t *testing.T, dir string) *gguf.File {
	t.Helper()
	path := filepath.Join(dir, k.name+".gguf")
	if k.from == "" {
		k.unigram(t, path)
	} else if err := synth.Write(context.Background(), path, shape(t, k.from),
		synth.Options{Type: tensor.F32, Seed: 1}); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := new(gguf.Writer)
	if err := ggufkeys.SetTokenizer(w, f); err != nil {
		t.Fatal(err)
	}
	keys := ggufkeys.Of(f)
	texts, types := keys.Strings("tokenizer.ggml.tokens"), keys.Ints("tokenizer.ggml.token_type")
	scores := keys.Floats("tokenizer.ggml.scores", nil)
	kinds := make([]int32, len(types))
	for i, x := range types {
		kinds[i] = int32(x)
	}
	for _, a := range added {
		// a Unigram folder cannot leave one out
		if k.from == "" && a.kind == tokenkind.Unused || slices.Contains(texts, a.text) {
			continue
		}
		texts, kinds = slices.Insert(texts, k.at, a.text), slices.Insert(kinds, k.at, int32(a.kind))
		if scores != nil {
			scores = slices.Insert(scores, k.at, 0)
		}
	}
	shift := uint64(len(texts) - len(types))
	for key, value := range f.Meta() {
		if id, ok := gguf.As[uint64](value); ok && strings.HasSuffix(key, "_token_id") && id >= uint64(k.at) {
			w.Set(key, uint32(id+shift))
		}
	}
	w.Set("tokenizer.ggml.tokens", texts)
	w.Set("tokenizer.ggml.token_type", kinds)
	if scores != nil {
		w.Set("tokenizer.ggml.scores", scores)
		w.Set("tokenizer.ggml.add_space_prefix", k.front)
	}
	if k.pre != "" {
		w.Set("tokenizer.ggml.pre", k.pre)
	}
	path = filepath.Join(dir, k.name+"-added.gguf")
	if err := w.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	made, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { made.Close() })
	return made
}

// unigram writes the tokenizer of the tokenizer's own tests.
func (k kindOfVocabulary) unigram(t *testing.T, path string) {
	t.Helper()
	base, err := os.ReadFile("../../tokenizer/testdata/unigram.json")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	testfile.Write(t, filepath.Join(dir, "tokenizer.json"), base)
	tok, err := tokenizer.FromJSON(dir)
	if err != nil {
		t.Fatal(err)
	}
	w := new(gguf.Writer)
	if _, err := setTokenizer(w, dir, tok, tok.VocabSize()); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteFile(path); err != nil {
		t.Fatal(err)
	}
}

// folder writes a folder's files from a file's tokenizer.
func folder(t *testing.T, f *gguf.File, dir string) {
	t.Helper()
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		t.Fatal(err)
	}
	tokens, settings, err := tokenizerFiles(f, tok)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]fields{"tokenizer.json": tokens, "tokenizer_config.json": settings} {
		if err := atomicfile.WriteJSON(filepath.Join(dir, name), v); err != nil {
			t.Fatal(err)
		}
	}
}

func folderHash(t *testing.T, dir string) string {
	t.Helper()
	h := sha256.New()
	for _, name := range []string{"tokenizer.json", "tokenizer_config.json"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Transformers reads the folders that grove writes with the same ids as the GGUF files, whatever
// the kind of tokenizer and wherever its added tokens are. testdata/readers.json has texts and
// their ids, which transformers 5.24 and tokenizers 0.23 computed from exactly the folders that
// this test writes: internal/_conformance/files.py --kinds made it.
func TestReaders(t *testing.T) {
	var golden map[string]struct {
		Folder     string
		Texts      []string
		IDs, Plain [][]int32
	}
	readGolden(t, "testdata/readers.json", &golden)
	dir := *keepFolders
	if dir == "" {
		dir = t.TempDir()
	}
	for _, k := range vocabularies {
		t.Run(k.name, func(t *testing.T) {
			f, path := k.file(t, t.TempDir()), filepath.Join(dir, k.name)
			if err := os.MkdirAll(path, 0o777); err != nil {
				t.Fatal(err)
			}
			folder(t, f, path)
			want := golden[k.name]
			if *keepFolders == "" && folderHash(t, path) != want.Folder {
				t.Fatal("the folder is not the one that the golden ids are of: make them again with internal/_conformance/files.py --kinds")
			}
			fromFile, err1 := tokenizer.FromGGUF(f)
			fromFolder, err2 := tokenizer.FromJSON(path)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			for i, text := range want.Texts {
				same := func(from string, tok *tokenizer.Tokenizer, parse bool, ids []int32) {
					o := tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: parse}
					if got := tok.Encode(text, o); !slices.Equal(got, ids) {
						t.Errorf("%s, %+v: %q\n got %v\nwant %v", from, o, text, got, ids)
					}
				}
				same("folder", fromFolder, true, want.IDs[i])
				if k.from == "" { // its names are pieces elsewhere, and its file cannot describe all white space
					continue
				}
				same("folder", fromFolder, false, want.Plain[i])
				same("file", fromFile, true, want.IDs[i])
				same("file", fromFile, false, want.Plain[i])
			}
		})
	}
}

func readGolden(t *testing.T, path string, to any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, to); err != nil {
		t.Fatal(err)
	}
}

// The same of a published model, with 1,000 texts: testdata/published.json was made by files.py --golden.
func TestPublishedReader(t *testing.T) {
	var golden struct {
		Model, Folder string
		Texts, IDs    []string
	}
	readGolden(t, "testdata/published.json", &golden)
	f, err := gguf.Open(testdata.Path(t, "../models/"+golden.Model))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dir := t.TempDir()
	folder(t, f, dir)
	if folderHash(t, dir) != golden.Folder {
		t.Fatal("the folder is not the one that the golden ids are of: make them again with internal/_conformance/files.py --golden")
	}
	fromFile, err1 := tokenizer.FromGGUF(f)
	fromFolder, err2 := tokenizer.FromJSON(dir)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for i, text := range golden.Texts {
		for from, tok := range map[string]*tokenizer.Tokenizer{"file": fromFile, "folder": fromFolder} {
			ids := tok.Encode(text, tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true})
			b, err := json.Marshal(ids)
			if err != nil {
				t.Fatal(err)
			}
			if h := sha256.Sum256(b); hex.EncodeToString(h[:])[:12] != golden.IDs[i] {
				t.Errorf("%s: %q has the ids %v: not those of transformers", from, text, ids)
			}
		}
	}
}

// A split that never matches, as in Gemma's folders, is converted as no split; one that can match is refused.
func TestSplitOfNothing(t *testing.T) {
	dir := t.TempDir()
	for _, k := range vocabularies {
		if !strings.HasPrefix(k.name, "pieces") {
			continue
		}
		folder(t, k.file(t, t.TempDir()), dir)
		path := filepath.Join(dir, "tokenizer.json")
		for _, c := range []struct {
			pattern, behavior string
			taken             bool
		}{{" ", "MergedWithPrevious", true}, {" ", "Isolated", true}, {"a", "MergedWithPrevious", false},
			{"▁", "Isolated", false}} {
			var file fields
			readGolden(t, path, &file)
			file["pre_tokenizer"] = fields{"type": "Split", "pattern": fields{"String": c.pattern},
				"behavior": c.behavior, "invert": false}
			if err := atomicfile.WriteJSON(path, file); err != nil {
				t.Fatal(err)
			}
			tok, err := tokenizer.FromJSON(dir)
			if err != nil {
				t.Fatal(err)
			}
			set := func(w *gguf.Writer) error {
				_, err := setTokenizer(w, dir, tok, tok.VocabSize())
				return err
			}
			if err := checkTokens(set, tok); (err == nil) != c.taken {
				t.Errorf("%s: Split of %q: %v", k.name, c.pattern, err)
			}
		}
	}
}
