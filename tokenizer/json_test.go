package tokenizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/grovellm/grove/internal/testing/testdata"
)

// patched returns a tokenizer.json with some fields replaced, those of model one by one.
func patched(t testing.TB, base []byte, patch map[string]any) []byte {
	t.Helper()
	var file map[string]any
	if err := json.Unmarshal(base, &file); err != nil {
		t.Fatal(err)
	}
	for k, v := range patch {
		if m, ok := v.(map[string]any); ok && k == "model" {
			for k, v := range m {
				file["model"].(map[string]any)[k] = v
			}
			continue
		}
		file[k] = v
	}
	b, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Gemma 3 1B has an added token for which its embedding has no row. The token is read as text.
func TestAddedTokenWithoutRow(t *testing.T) {
	n := int64(0)
	tok, err := parse(files{Tokenizer: charJSON(t)})
	if err == nil {
		n = int64(tok.VocabSize())
	}
	var file map[string]any
	if err := json.Unmarshal(charJSON(t), &file); err != nil {
		t.Fatal(err)
	}
	more := append(file["added_tokens"].([]any), obj{"id": n, "content": "<image_soft_token>", "special": true})
	base := patched(t, charJSON(t), obj{"added_tokens": more})
	for config, want := range map[string]int64{`{}`: n + 1, fmt.Sprintf(`{"vocab_size": %d}`, n+1): n + 1,
		fmt.Sprintf(`{"vocab_size": %d}`, n): n, fmt.Sprintf(`{"text_config": {"vocab_size": %d}}`, n): n} {
		tok, err := parse(files{Tokenizer: base, Model: []byte(config)})
		if err != nil || int64(tok.VocabSize()) != want || len(tok.Notes()) != int(n+1-want) {
			t.Errorf("%s: %v, %v, want %d tokens", config, tok, err, want)
		}
	}
}

// testdata/hf.json has random texts and their ids by Hugging Face's tokenizers 0.23.2 (the Node
// package of that name), with special tokens added and parsed, under many settings: each case is
// go-7m's tokenizer.json, or testdata/char.json, with the fields in patch replaced. When this was
// written, 93,000 such texts were compared without a difference.
func TestHuggingFace(t *testing.T) {
	var cases []struct {
		Name, Base string
		Patch      map[string]any
		Texts      []string
		IDs        [][]int32
	}
	b, err := os.ReadFile("testdata/hf.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		t.Run(fmt.Sprint(i, c.Name), func(t *testing.T) {
			base := charJSON(t)
			if c.Base == "go-7m" {
				var err error
				if base, err = os.ReadFile(testdata.Path(t, "models/go-7m/tokenizer.json")); err != nil {
					t.Fatal(err)
				}
			}
			tok, err := parse(files{Name: c.Name, Tokenizer: patched(t, base, c.Patch)})
			if err != nil {
				t.Fatal(err)
			}
			for k, text := range c.Texts {
				if ids := tok.Encode(text, EncodeOptions{AddSpecial: true, ParseSpecial: true}); !slices.Equal(ids, c.IDs[k]) {
					t.Errorf("%q\n got %v\nwant %v", text, ids, c.IDs[k])
				}
			}
		})
	}
}

type obj = map[string]any

// Anything unknown is refused, with the file and the field.
func TestJSONErrors(t *testing.T) {
	base := charJSON(t)
	split := func(pattern any, behavior string) obj {
		return obj{"type": "Split", "pattern": pattern, "behavior": behavior, "invert": false}
	}
	for _, c := range []struct {
		patch obj
		want  string
	}{
		{obj{"model": obj{"type": "WordPiece"}}, `model.type: "WordPiece" is not known`},
		{obj{"model": obj{"dropout": 0.1}}, "model.dropout"},
		{obj{"model": obj{"end_of_word_suffix": "</w>"}}, "model.end_of_word_suffix"},
		{obj{"model": obj{"continuing_subword_prefix": "##"}}, "model.continuing_subword_prefix"},
		{obj{"model": obj{"new_setting": true}}, `unknown field "new_setting"`},
		{obj{"model": obj{"unk_token": "?"}}, "model.unk_token"},
		{obj{"model": obj{"vocab": obj{}, "unk_token": nil}, "added_tokens": []any{}}, "model.vocab: the vocabulary is empty"},
		{obj{"model": obj{"vocab": obj{"a": int64(1) << 40}}}, "the highest id is"},
		{obj{"model": obj{"vocab": obj{"a": -1}}}, "has the id -1"},
		{obj{"model": obj{"vocab": obj{"a": 3, "b": 3}}}, "have the same id 3"},
		{obj{"model": obj{"vocab": obj{"a": 0, "b": 1}, "unk_token": nil, "merges": []any{}}, "added_tokens": []any{}},
			"has no token"},
		{obj{"model": obj{"merges": []any{"ab"}}}, "not two texts"},
		{obj{"model": obj{"merges": []any{[]any{"a", "b", "c"}}}}, "not a pair"},
		{obj{"model": obj{"merges": []any{[]any{"a", ""}}}}, "not a pair"},
		{obj{"model": 7}, `model.type: "" is not known`},
		{obj{"added_tokens": []any{obj{"id": 5000000, "content": "x"}}}, "the highest id is 5000000"},
		{obj{"added_tokens": []any{obj{"id": 1, "content": "x"}}}, "have the same id 1"},
		{obj{"added_tokens": []any{obj{"id": 300, "content": "the"}, obj{"id": 1, "content": "▁the"}}}, "in model.vocab"},
		{obj{"normalizer": obj{"type": "Lowercase"}}, `normalizer: "Lowercase" is not known`},
		{obj{"normalizer": obj{"type": "NFC", "strength": 2}}, `unknown field "strength"`},
		{obj{"normalizer": obj{"type": "Replace", "pattern": obj{"Regex": " +"}, "content": ""}}, "normalizer: Replace"},
		{obj{"pre_tokenizer": obj{"type": "Whitespace"}}, `pre_tokenizer: "Whitespace" is not known`},
		{obj{"pre_tokenizer": split(obj{"Regex": `\w+|[^\w\s]+`}, "Isolated")}, "grove has no scanner for"},
		{obj{"pre_tokenizer": split(obj{"Regex": `\p{N}`}, "Removed")}, `behavior "Removed"`},
		{obj{"pre_tokenizer": split(obj{"String": ""}, "Isolated")}, "the pattern is empty"},
		{obj{"pre_tokenizer": split(obj{"String": "x"}, "Removed")}, `behavior "Removed"`},
		{obj{"pre_tokenizer": split(nil, "Isolated")}, "neither a String nor a Regex"},
		{obj{"pre_tokenizer": obj{"type": "Metaspace", "replacement": "_"}}, `replacement "_"`},
		{obj{"pre_tokenizer": obj{"type": "Metaspace", "replacement": "▁", "prepend_scheme": "last"}},
			`prepend_scheme "last" of Metaspace`},
		{obj{"pre_tokenizer": obj{"type": "Punctuation", "behavior": "Isolated"}}, "Punctuation: behavior"},
		{obj{"pre_tokenizer": nest(10)}, "Sequences nested more than"},
		{obj{"post_processor": obj{"type": "BertProcessing", "pair": nil}}, `post_processor: "BertProcessing"`},
		{obj{"post_processor": obj{"type": "TemplateProcessing", "single": []any{}}}, "no sequence"},
		{obj{"post_processor": obj{"type": "TemplateProcessing", "single": []any{obj{"SpecialToken": obj{"id": "<x>"}}}}},
			`"<x>" is not among`},
		{obj{"post_processor": obj{"type": "TemplateProcessing", "single": []any{obj{"SpecialToken": obj{"id": "<x>"}},
			obj{"Sequence": obj{"id": "A"}}},
			"special_tokens": obj{"<x>": obj{"id": "<x>", "ids": []any{99999}}}}}, "99999 is outside the vocabulary"},
		{obj{"decoder": nil}, "decoder: missing"},
		{obj{"decoder": obj{"type": "WordPiece"}}, `decoder: "WordPiece"`},
		{obj{"decoder": obj{"type": "Strip", "content": " ", "start": 0, "stop": 1}}, `decoder: "Strip"`},
	} {
		_, err := parse(files{Name: "folder", Tokenizer: patched(t, base, c.patch)})
		if err == nil || !strings.Contains(err.Error(), c.want) ||
			!strings.Contains(err.Error(), filepath.Join("folder", "tokenizer.json")) {
			t.Errorf("%v\n got error %v\nwant %s", c.patch, err, c.want)
		}
	}
	for _, c := range []struct {
		files files
		want  string
	}{
		{files{Tokenizer: []byte(`{"model": `)}, "at byte"},
		{files{Tokenizer: nil}, "unexpected end"},
		{files{Tokenizer: base, Config: []byte(`{"bos_token": "<begin>"}`)},
			`"<begin>", from the files alongside, is not in the vocabulary`},
		{files{Tokenizer: base, Config: []byte(`{"chat_template": 7}`)}, "chat_template"},
		{files{Tokenizer: base, Config: []byte(`[]`)}, "tokenizer_config.json"},
		{files{Tokenizer: base, Model: []byte(`{"eos_token_id": [2, 70000]}`)}, "eos_token_id 70000"},
	} {
		if _, err := parse(c.files); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got error %v, want %s", err, c.want)
		}
	}
	if _, err := FromJSON(filepath.Join(t.TempDir(), "nothing")); err == nil {
		t.Error("no error for a missing file")
	}
}

func nest(n int) obj {
	if n == 0 {
		return obj{"type": "Digits", "individual_digits": true}
	}
	return obj{"type": "Sequence", "pretokenizers": []any{nest(n - 1)}}
}

// The files next to tokenizer.json say which tokens begin and end a text and a generation.
func TestConfigFiles(t *testing.T) {
	base := charJSON(t)
	tok, err := parse(files{
		Tokenizer: base, Config: []byte(`{"bos_token": {"content": "<s>", "lstrip": false}, "eos_token": null, "add_bos_token": true,
			"add_eos_token": true, "chat_template": [{"name": "default", "template": "A"}, {"name": "tool_use", "template": "B"}]}`),
		SpecialTokens: []byte(`{"eos_token": "</s>"}`), Model: []byte(`{"eos_token_id": 2}`), Generation: []byte(
			`{"eos_token_id": [2, 262]}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if tok.BOS() != 1 || tok.EOS() != 2 || tok.unk != 0 || tok.pad != -1 || !tok.AddBOS() || len(tok.suffix) == 0 {
		t.Error(tok.BOS(), tok.EOS(), tok.unk, tok.pad, tok.AddBOS(), len(tok.suffix) > 0)
	}
	if got := tok.eog; !slices.Equal(got, []int32{2, 262}) || !tok.IsEOG(262) || tok.IsEOG(1) || tok.IsEOG(-1) {
		t.Error(got)
	}
	if got := tok.Templates(); !maps.Equal(got, map[string]string{"default": "A", "tool_use": "B"}) {
		t.Error(got)
	}
	ids := tok.Encode("in", EncodeOptions{AddSpecial: true})
	if ids[0] != 1 || ids[len(ids)-1] != 2 || tok.Decode(ids, DecodeOptions{}) != "in" {
		t.Error(ids, tok.Decode(ids, DecodeOptions{}))
	}
	processor := []byte(`{"chat_template": "D"}`)
	for config, want := range map[string]string{`{}`: "D", `{"chat_template": null}`: "D", `{"chat_template": "A"}`: "A"} {
		tok, err := parse(files{Tokenizer: base, Config: []byte(config), Processor: processor})
		if err != nil || tok.Templates()["default"] != want {
			t.Errorf("%s, and another template in chat_template.json: %v, %v", config, tok.Templates(), err)
		}
	}
	// The classes that make their own post-processor drop the BOS if add_bos_token is false.
	around := obj{"type": "TemplateProcessing", "single": []any{obj{"SpecialToken": obj{"id": "<s>"}},
		obj{"Sequence": obj{"id": "A"}}},
		"special_tokens": obj{"<s>": obj{"id": "<s>", "ids": []any{1}}}}
	for class, want := range map[string]bool{"LlamaTokenizerFast": false, "PreTrainedTokenizerFast": true} {
		tok, err := parse(files{Tokenizer: patched(t, base, obj{"post_processor": around}),
			Config:       []byte(`{"tokenizer_class": "` + class + `", "bos_token": "<s>", "add_bos_token": false}`),
			ChatTemplate: []byte("C")})
		if err != nil {
			t.Fatal(err)
		}
		if tok.AddBOS() != want {
			t.Errorf("%s: BOS added %v", class, tok.AddBOS())
		}
		if got := tok.Templates(); !maps.Equal(got, map[string]string{"default": "C"}) {
			t.Error(got)
		}
	}
}

// Unicode normalisation inserts nothing into a text, however many marks a character has.
func TestFormsOfLongRuns(t *testing.T) {
	for _, f := range []norm.Form{norm.NFC, norm.NFD, norm.NFKC, norm.NFKD} {
		for _, text := range []string{"a" + strings.Repeat("\u0301", 100), "x" + strings.Repeat("\u0300\u0323", 40)} {
			if got := unicodeForm(f)(text, true); strings.Contains(got, "\u034f") {
				t.Errorf("form %v of %q has a joiner: %q", f, text, got)
			}
		}
		if text := "a\u034fb"; unicodeForm(f)(text, true) != text {
			t.Errorf("form %v takes a joiner away", f)
		}
	}
}

// Added tokens that are searched in normalised text come after the others, even if nothing is normalised.
func TestNormalizedTokensComeLast(t *testing.T) {
	var file map[string]any
	if err := json.Unmarshal(charJSON(t), &file); err != nil {
		t.Fatal(err)
	}
	added := file["added_tokens"].([]any)
	tok, err := parse(files{Tokenizer: charJSON(t)})
	if err != nil {
		t.Fatal(err)
	}
	id := tok.VocabSize()
	for i, a := range []obj{{"content": "<q>", "lstrip": true}, {"content": "\n\n", "normalized": true},
		{"content": "<q>z", "normalized": true}, {"content": "zz", "normalized": true, "single_word": true}} {
		a["id"] = id + i
		added = append(added, a)
	}
	tok, err = parse(files{Tokenizer: patched(t, charJSON(t), obj{"added_tokens": added, "normalizer": nil})})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int{"\n\n<q>": {0}, "\n\n": {1}, "<q>zz": {0, 3}, "zz<q>": {3, 0}} {
		for i := range want {
			want[i] += id
		}
		if got := tok.Encode(text, EncodeOptions{ParseSpecial: true}); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// Additional chat templates are in their own folder next to chat_template.jinja.
func TestNamedTemplateFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "additional_chat_templates"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"tokenizer.json": string(charJSON(t)), "chat_template.jinja": "plain",
		"additional_chat_templates/tool_use.jinja": "tools", "additional_chat_templates/README.md": "no template",
		"tokenizer_config.json": `{"chat_template": "an older one"}`} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	tok, err := FromJSON(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := tok.Templates(); !maps.Equal(got, map[string]string{"default": "plain", "tool_use": "tools"}) {
		t.Errorf("%v", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := FromJSON(dir); err == nil || !strings.Contains(err.Error(), "tokenizer_config.json: the file is empty") {
		t.Errorf("an empty file beside it: %v", err)
	}
}
