package bpe

import (
	"bytes"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/tokenizer"
)

func (v *Vocabulary) mergeLines(texts []string) []string {
	lines := make([]string, len(v.Merges))
	for i, m := range v.Merges {
		lines[i] = texts[m[0]] + " " + texts[m[1]]
	}
	return lines
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

// WriteGGUF writes a file with only the vocabulary, completely or not at all. llama.cpp can load it.
func (v *Vocabulary) WriteGGUF(path string) error { return v.file().WriteFile(path) }

// Tokenizer returns the tokenizer that reads such a file.
func (v *Vocabulary) Tokenizer() (*tokenizer.Tokenizer, error) {
	var b bytes.Buffer
	if _, err := v.file().WriteTo(&b); err != nil {
		return nil, err
	}
	f, err := gguf.Parse("vocabulary", b.Bytes())
	if err != nil {
		return nil, err
	}
	return tokenizer.FromGGUF(f)
}

func (v *Vocabulary) file() *gguf.Writer {
	w := new(gguf.Writer)
	w.Set("general.architecture", "llama")
	w.Set("general.type", "vocab")
	w.Set("general.name", "vocabulary")
	w.Set("llama.vocab_size", uint32(v.Size()))
	v.SetGGUF(w)
	return w
}
