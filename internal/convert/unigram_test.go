package convert

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/model/synth"
	"github.com/grovellm/grove/internal/testing/testfile"
	"github.com/grovellm/grove/tokenizer"
)

// A model with a Unigram vocabulary keeps its tokens from folder to file to folder, whatever its tokenizer
// does with spaces, with byte tokens and without. One whose rules GGUF cannot express is refused.
func TestUnigram(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := synth.WriteHF(ctx, at("a"), shape(t, "tiny-llama2"), synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	base, err := os.ReadFile("../../tokenizer/testdata/unigram.json")
	if err != nil {
		t.Fatal(err)
	}
	spaces := fields{"type": "Replace", "pattern": fields{"String": " "}, "content": "▁"}
	metaspace := func(scheme string) fields {
		return fields{"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme}
	}
	for i, c := range []struct {
		bytes bool
		patch fields
		want  string // part of the error
	}{
		{false, fields{}, ""},
		{true, fields{}, ""},
		{true, fields{"normalizer": fields{"type": "Sequence",
			"normalizers": []any{fields{"type": "Prepend", "prepend": "▁"}, spaces}},
			"pre_tokenizer": nil}, ""},
		{false, fields{"normalizer": spaces, "pre_tokenizer": nil, "decoder": metaspace("never")}, ""},
		{false, fields{"pre_tokenizer": metaspace("first")}, "the converted tokenizer differs"},
		{false, fields{"normalizer": fields{"type": "NFKD"}, "pre_tokenizer": metaspace("never")},
			"the converted tokenizer differs"},
	} {
		var file fields
		if err := json.Unmarshal(base, &file); err != nil {
			t.Fatal(err)
		}
		m := file["model"].(fields)
		m["vocab"] = m["vocab"].([]any)[:280] // the model has 544 tokens
		if c.bytes {
			m["byte_fallback"] = true
			for b := range 256 {
				m["vocab"] = append(m["vocab"].([]any), []any{fmt.Sprintf("<0x%02X>", b), 0})
			}
		}
		for k, v := range c.patch {
			file[k] = v
		}
		b, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		testfile.Write(t, at("a/tokenizer.json"), b)
		testfile.Write(t, at("a/tokenizer_config.json"), []byte(`{"eos_token":"</s>","pad_token":"<pad>"}`))
		made, back := at(fmt.Sprint(i, ".gguf")), at(fmt.Sprint(i))
		_, err = ToGGUF(ctx, at("a"), made, Options{})
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%d: got error %v, want %s", i, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		if _, err := ToHF(ctx, made, back, Options{}); err != nil {
			t.Errorf("%d: %v", i, err)
			continue
		}
		f, err := gguf.Open(made)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var toks []*tokenizer.Tokenizer
		for _, read := range []func() (*tokenizer.Tokenizer, error){
			func() (*tokenizer.Tokenizer, error) { return tokenizer.FromJSON(at("a")) },
			func() (*tokenizer.Tokenizer, error) { return tokenizer.FromGGUF(f) },
			func() (*tokenizer.Tokenizer, error) { return tokenizer.FromJSON(back) },
		} {
			tok, err := read()
			if err != nil {
				t.Fatal(err)
			}
			toks = append(toks, tok)
		}
		for _, text := range []string{"the training of a drafter", " 東京 ２ ﬁ…  \u00e9 x ", "<pad>a</s>b"} {
			o := tokenizer.EncodeOptions{AddSpecial: true, ParseSpecial: true}
			x := toks[0].Encode(text, o)
			y := toks[1].Encode(text, o)
			z := toks[2].Encode(text, o)
			if !slices.Equal(x, y) || !slices.Equal(x, z) || toks[0].EOS() != toks[2].EOS() {
				t.Errorf("%d: %q gives %v, as GGUF %v, back in a folder %v", i, text, x, y, z)
			}
		}
	}
}
