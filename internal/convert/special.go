package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/infile"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/tokenizer"
)

// roles are the special tokens that files of both formats name: keys tokenizer.ggml.*_token_id, and
// fields *_token of tokenizer_config.json.
var roles = []struct{ key, field string }{
	{"bos", "bos"}, {"eos", "eos"}, {"unknown", "unk"}, {"padding", "pad"}, {"seperator", "sep"}, {"cls",
		"cls"}, {"mask", "mask"},
}

// endKeys are the keys of the tokens, other than EOS, that end a generation according to a GGUF file.
var endKeys = []string{"eot", "eom", "fim_pad", "fim_rep", "fim_sep"}

// namedTokens returns the special tokens that a GGUF file names, by their field of tokenizer_config.json.
func namedTokens(f *gguf.File, tok *tokenizer.Tokenizer) map[string]string {
	m := map[string]string{}
	special := lower.SpecialsOf(tok)
	known := map[string]int32{"bos": tok.BOS(), "eos": tok.EOS(), "unk": special.UNK, "pad": special.PAD}
	for _, r := range roles {
		id, ok := known[r.field]
		if v, found := tokenID(f, r.key, tok); found {
			id, ok = v, true
		}
		if ok && id >= 0 {
			m[r.field+"_token"] = tok.Text(id)
		}
	}
	return m
}

func tokenID(f *gguf.File, key string, tok *tokenizer.Tokenizer) (int32, bool) {
	v, _ := f.Lookup("tokenizer.ggml." + key + "_token_id")
	id, ok := gguf.As[int64](v)
	return int32(id), ok && id >= 0 && id < int64(tok.VocabSize())
}

// declaredEnds returns EOS and the other tokens that end a generation according to a GGUF file.
func declaredEnds(f *gguf.File, tok *tokenizer.Tokenizer) []int32 {
	ends := []int32{tok.EOS()}
	for _, key := range endKeys {
		if id, ok := tokenID(f, key, tok); ok {
			ends = append(ends, id)
		}
	}
	v, _ := f.Lookup("tokenizer.ggml.eos_token_ids")
	ids, _ := gguf.As[[]int64](v)
	for _, id := range ids {
		ends = append(ends, int32(id)) // package tokenizer has checked it
	}
	return distinct(ends)
}

// distinct removes −1, and repeated ids.
func distinct(ids []int32) []int32 {
	var out []int32
	for _, id := range ids {
		if id >= 0 && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// specialFields are what a folder's files say about special tokens in addition to what package tokenizer knows.
type specialFields struct {
	named map[string]int32 // by the key of GGUF files
	ends  []int32          // tokens other than EOS that end a generation, by the configuration
}

// readSpecial reads them.
func readSpecial(dir string, tok *tokenizer.Tokenizer) (s specialFields, err error) {
	var config, special map[string]json.RawMessage
	var model, generation struct {
		EOS json.RawMessage `json:"eos_token_id"`
	}
	if err := errors.Join(readJSON(dir, "tokenizer_config.json", &config),
		readJSON(dir, "special_tokens_map.json", &special),
		readJSON(dir, "config.json", &model), readJSON(dir, "generation_config.json", &generation)); err != nil {
		return s, err
	}
	s.named = map[string]int32{}
	others := lower.SpecialsOf(tok)
	known := map[string]int32{"bos": tok.BOS(), "eos": tok.EOS(), "unknown": others.UNK, "padding": others.PAD}
	if around := tok.Encode("", tokenizer.EncodeOptions{AddSpecial: true}); others.AddEOS && len(around) > 0 {
		known["eos"] = around[len(around)-1] // in GGUF files, EOS ends a text, as in Qwen3-Embedding
		s.ends = []int32{tok.EOS()}
	}
	for _, r := range roles {
		if id, ok := known[r.key]; ok && id >= 0 {
			s.named[r.key] = id
			continue
		}
		for _, from := range []map[string]json.RawMessage{special, config} { // the second is the newer
			if id, ok := tok.Find(tokenText(from[r.field+"_token"])); ok {
				s.named[r.key] = id
			}
		}
	}
	for _, raw := range []json.RawMessage{model.EOS, generation.EOS} {
		var ids []int32
		if json.Unmarshal(raw, &ids) != nil { // one id, or none
			ids = []int32{-1}
			_ = json.Unmarshal(raw, &ids[0])
		}
		s.ends = append(s.ends, ids...)
	}
	s.ends = slices.DeleteFunc(distinct(s.ends), func(id int32) bool { return id == known["eos"] })
	return s, nil
}

// tokenText reads a token: a text, or an object with its content.
func tokenText(raw json.RawMessage) (text string) {
	var object struct{ Content string }
	if json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &object) == nil {
		return object.Content
	}
	return text
}

// readJSON reads a file of a folder, if it exists.
func readJSON(dir, name string, to any) error {
	path := filepath.Join(dir, name)
	b, err := infile.ReadFile(path, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(infile.PlainJSON(b), to)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

const maxSettings = 16 << 20 // maximum bytes of a JSON file in addition to tokenizer.json

// setSpecial sets the special tokens and the chat templates.
func setSpecial(w *gguf.Writer, tok *tokenizer.Tokenizer, s specialFields) {
	for _, r := range roles {
		if id, ok := s.named[r.key]; ok && id >= 0 {
			w.Set("tokenizer.ggml."+r.key+"_token_id", uint32(id))
		}
	}
	if len(s.ends) > 0 {
		w.Set("tokenizer.ggml.eot_token_id", uint32(s.ends[0]))
	}
	if len(s.ends) > 1 { // a key of Ollama's
		w.Set("tokenizer.ggml.eos_token_ids", s.ends)
	}
	if ids := lower.SpecialsOf(tok).Suppressed; len(ids) > 0 {
		w.Set("tokenizer.ggml.suppress_tokens", ids)
	}
	w.Set("tokenizer.ggml.add_bos_token", tok.AddBOS())
	w.Set("tokenizer.ggml.add_eos_token", lower.SpecialsOf(tok).AddEOS)
	var names []string
	templates := tok.Templates()
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		if name == "default" {
			w.Set("tokenizer.chat_template", templates[name])
		} else {
			names = append(names, name)
			w.Set("tokenizer.chat_template."+name, templates[name])
		}
	}
	if names != nil {
		w.Set("tokenizer.chat_templates", names)
	}
}
