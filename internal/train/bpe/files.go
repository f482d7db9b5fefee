package bpe

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/atomicfile"
	"github.com/grovellm/grove/tokenizer"
)

// patterns are the regular expressions that tokenizer.json spells a pre-tokenizer out with.
var patterns = map[string]string{
	"qwen2": `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	"dbrx":  `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	"gpt-2": "", // ByteLevel's own
}

type object = map[string]any

// JSON returns the content of tokenizer.json.
func (v *Vocabulary) JSON() ([]byte, error) {
	pattern, ok := patterns[v.Pre]
	if !ok {
		return nil, fmt.Errorf("pre-tokenizer %q has no form in tokenizer.json: use qwen2, dbrx or gpt-2", v.Pre)
	}
	texts := v.texts()
	added := make([]object, len(v.Special))
	for i, name := range v.Special {
		added[i] = object{"id": len(v.Tokens) + i, "content": name, "single_word": false, "lstrip": false,
			"rstrip":     false,
			"normalized": false, "special": true}
	}
	ids := make(map[string]int, len(v.Tokens))
	for i := range v.Tokens {
		ids[texts[i]] = i
	}
	level := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": pattern == ""}
	pre := any(level)
	if pattern != "" {
		pre = object{"type": "Sequence", "pretokenizers": []object{
			{"type": "Split", "pattern": object{"Regex": pattern}, "behavior": "Isolated", "invert": false}, level}}
	}
	return encodeJSON(object{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "normalizer": nil,
		"pre_tokenizer": pre, "post_processor": nil, "decoder": level,
		"model": object{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil,
			"end_of_word_suffix": nil,
			"fuse_unk":           false, "byte_fallback": false, "ignore_merges": false, "vocab": ids,
			"merges": v.mergeLines(texts)},
	})
}

// Config returns the content of tokenizer_config.json.
func (v *Vocabulary) Config() ([]byte, error) {
	c := object{"add_bos_token": false, "add_eos_token": false, "tokenizer_class": "PreTrainedTokenizerFast",
		"clean_up_tokenization_spaces": false}
	if v.Pre == "qwen2" {
		c["tokenizer_class"] = "Qwen2Tokenizer"
	}
	if v.SpecialID(EndOfText) >= 0 {
		c["eos_token"], c["pad_token"] = EndOfText, EndOfText
	}
	if v.SpecialID(Mask) >= 0 {
		c["mask_token"] = Mask
	}
	if v.chats() {
		c["chat_template"] = ChatTemplate
	}
	return encodeJSON(c)
}

func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	err := e.Encode(v) // maps in the order of their keys: the same vocabulary gives the same bytes
	return b.Bytes(), err
}

func (v *Vocabulary) mergeLines(texts []string) []string {
	lines := make([]string, len(v.Merges))
	for i, m := range v.Merges {
		lines[i] = texts[m[0]] + " " + texts[m[1]]
	}
	return lines
}

// Tokenizer makes the tokenizer.
func (v *Vocabulary) Tokenizer() (*tokenizer.Tokenizer, error) {
	t, err := v.JSON()
	if err != nil {
		return nil, err
	}
	c, err := v.Config()
	if err != nil {
		return nil, err
	}
	return tokenizer.Parse("vocabulary", map[string][]byte{"tokenizer.json": t, "tokenizer_config.json": c})
}

// WriteFolder writes tokenizer.json and tokenizer_config.json into a folder, which is made where it
// is missing.
func (v *Vocabulary) WriteFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		make func() ([]byte, error)
	}{{"tokenizer.json", v.JSON}, {"tokenizer_config.json", v.Config}} {
		b, err := f.make()
		if err != nil {
			return err
		}
		if err := atomicfile.Write(filepath.Join(dir, f.name), func(w io.Writer) error {
			_, err := w.Write(b)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// The kinds of tokens in tokenizer.ggml.token_type.
const (
	normalToken  int32 = 1
	controlToken int32 = 3
)

// SetGGUF sets the keys tokenizer.* as llama.cpp reads them.
func (v *Vocabulary) SetGGUF(w *gguf.Writer) {
	texts := v.texts()
	kinds := make([]int32, len(texts))
	for i := range kinds {
		kinds[i] = normalToken
		if i >= len(v.Tokens) {
			kinds[i] = controlToken
		}
	}
	w.Set("tokenizer.ggml.model", "gpt2")
	w.Set("tokenizer.ggml.pre", v.Pre)
	w.Set("tokenizer.ggml.tokens", texts)
	w.Set("tokenizer.ggml.token_type", kinds)
	w.Set("tokenizer.ggml.merges", v.mergeLines(texts))
	for _, s := range []struct{ key, name string }{
		{"bos", EndOfText}, {"eos", EndOfText}, {"eot", TurnEnd}, {"padding", EndOfText}, {"mask", Mask},
		{"fim_pre", "<|fim_prefix|>"}, {"fim_mid", "<|fim_middle|>"}, {"fim_suf", "<|fim_suffix|>"},
	} {
		if id := v.SpecialID(s.name); id >= 0 {
			w.Set("tokenizer.ggml."+s.key+"_token_id", uint32(id))
		}
	}
	w.Set("tokenizer.ggml.add_bos_token", false)
	w.Set("tokenizer.ggml.add_eos_token", false)
	if v.chats() {
		w.Set("tokenizer.chat_template", ChatTemplate)
	}
}

// WriteGGUF writes a file of the vocabulary alone, whole or not at all. llama.cpp loads it as such.
func (v *Vocabulary) WriteGGUF(path string) error {
	w := new(gguf.Writer)
	w.Set("general.architecture", "llama")
	w.Set("general.type", "vocab")
	w.Set("general.name", "vocabulary")
	w.Set("llama.vocab_size", uint32(v.Size()))
	v.SetGGUF(w)
	return w.WriteFile(path)
}
