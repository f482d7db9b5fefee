package tokenizer

import (
	"math"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/files/tokenkind"
)

// ggufKeys are the metadata keys that messages about a spec's fields name.
var ggufKeys = map[string]string{
	"tokens": "tokenizer.ggml.tokens", "types": "tokenizer.ggml.token_type", "scores": "tokenizer.ggml.scores",
	"merges": "tokenizer.ggml.merges", "special": "tokenizer.ggml.*_token_id", "pre": "tokenizer.ggml.pre",
	"model": "tokenizer.ggml.model", "unknown": "tokenizer.ggml.unknown_token_id",
}

// keyRules are the keys after "tokenizer.ggml." that llama.cpp and Ollama read. An ignored key is
// of a tokenizer of another kind, or names a token that encoding and decoding do not use.
var keyRules = ggufkeys.Rules{
	Obeyed: strings.Fields(`model pre tokens token_type scores merges add_space_prefix add_bos_token add_eos_token
		bos_token_id eos_token_id eot_token_id eom_token_id unknown_token_id padding_token_id eos_token_ids suppress_tokens
		fim_pad_token_id fim_rep_token_id fim_sep_token_id`),
	Ignored: strings.Fields(`token_type_count added_tokens mask_token_id cls_token_id seperator_token_id
		separator_token_id fim_pre_token_id fim_suf_token_id fim_mid_token_id prefix_token_id suffix_token_id
		middle_token_id add_unknown_token add_padding_token add_mask_token add_cls_token add_separator_token`),
	Neutral: map[string][]any{
		"add_sep_token":            {false},
		"normalizer.lowercase":     {false},
		"normalizer.strip_accents": {false},
		"precompiled_charsmap":     {},
		"remove_extra_whitespaces": {false},
	},
}

// unigramRules are those besides of Unigram models.
var unigramRules = ggufkeys.Rules{Obeyed: []string{"precompiled_charsmap", "remove_extra_whitespaces"}}

// FromGGUF makes the tokenizer that a GGUF file's metadata describes, with llama.cpp's keys and
// llama.cpp's defaults for missing ones.
func FromGGUF(f *gguf.File) (*Tokenizer, error) {
	rules := []ggufkeys.Rules{keyRules}
	if kind, _ := gguf.Get[string](f, "tokenizer.ggml.model"); kind == "t5" {
		rules = append(rules, unigramRules)
	}
	if err := ggufkeys.Check(f, "tokenizer.ggml.", rules...); err != nil {
		return nil, err
	}
	k := ggufkeys.Of(f)
	s := &spec{
		source: f.Path,
		keys: func(field string) string {
			if key := ggufKeys[field]; key != "" {
				return key
			}
			return field
		},
		tokens: k.Strings("tokenizer.ggml.tokens"),
		unk:    none,
	}
	kind := k.String("tokenizer.ggml.model")
	pre := k.String("tokenizer.ggml.pre", "")
	types := k.Ints("tokenizer.ggml.token_type", nil)
	for _, x := range k.Floats("tokenizer.ggml.scores", nil) {
		s.scores = append(s.scores, float64(x))
	}
	merges := k.Strings("tokenizer.ggml.merges", nil)
	name := k.String("general.name", "")
	if err := k.Err(); err != nil {
		return nil, err
	}
	if len(s.tokens) == 0 {
		return nil, s.errorf("tokens", "the vocabulary is empty")
	}
	for i, ty := range types {
		if ty < 0 || ty > int64(tokenkind.Byte) {
			return nil, s.errorf("types", "entry %d is %d, which is not a token type", i, ty)
		}
		s.types = append(s.types, max(int32(ty), tokenkind.Normal))
	}

	addBOS, addEOS := false, false
	defaults := [3]int32{none, none, none} // bos, eos, unk
	switch kind {
	case "gpt2":
		p, err := s.bytePreset(pre, merges)
		if err != nil {
			return nil, err
		}
		s.model = byteBPE
		s.stages = p.stages
		s.ignoreMerges = p.ignoreMerges
		addBOS = p.addBOS
	case "llama":
		s.model = sentencePiece
		s.fuseUnk = true
		addBOS = true
		defaults = [3]int32{1, 2, 0}
		front := k.Bool("tokenizer.ggml.add_space_prefix", true)
		s.escape = []normalizer{escapeSpaces(front)}
		if front {
			s.space = spaceSegments
		}
	case "gemma4":
		s.model = charBPE
		s.stages = []scanner{lines}
		s.fuseUnk = true
		addBOS = true
		defaults = [3]int32{2, 1, 3}
		s.escape = []normalizer{escapeSpaces(false)}
		if err := s.readMerges(merges); err != nil {
			return nil, err
		}
	case "t5":
		addEOS = true
		defaults = [3]int32{none, 1, 2}
		if err := s.ggufUnigram(f, k); err != nil {
			return nil, err
		}
	default:
		return nil, s.errorf("model", "tokenizer model %q is not known; known are gpt2 (byte-level BPE), gemma4 (BPE over characters), llama (SentencePiece) "+
			"and t5 (Unigram)", kind)
	}

	s.eog = []int32{none, none, none, none, none}
	for _, id := range []struct {
		to   *int32
		name string
		def  int32
	}{
		{&s.bos, "bos", defaults[0]}, {&s.eos, "eos", defaults[1]}, {&s.unk, "unknown", defaults[2]}, {&s.pad, "padding", none},
		{&s.eog[0], "eot", none}, {&s.eog[1], "eom", none}, // the rest ends a file or a part of it in code
		{&s.eog[2], "fim_pad", none}, {&s.eog[3], "fim_rep", none}, {&s.eog[4], "fim_sep", none},
	} {
		var err error
		if *id.to, err = s.ggufID(f, id.name, id.def); err != nil {
			return nil, err
		}
	}
	s.suppressed = k.Ints("tokenizer.ggml.suppress_tokens", nil)
	for i, id := range k.Ints("tokenizer.ggml.eos_token_ids", nil) {
		if id < 0 || id >= int64(len(s.tokens)) {
			return nil, s.errorf("tokenizer.ggml.eos_token_ids", "entry %d is %d, outside the vocabulary of %d tokens",
				i, id, len(s.tokens))
		}
		s.eog = append(s.eog, int32(id))
	}
	if k.Bool("tokenizer.ggml.add_bos_token", addBOS) && s.bos != none {
		s.prefix = []int32{s.bos}
	}
	if k.Bool("tokenizer.ggml.add_eos_token", addEOS) && s.eos != none {
		s.suffix = []int32{s.eos}
	}
	s.ggufTemplates(f)
	if err := k.Err(); err != nil {
		return nil, err
	}
	// GGUF does not say which added tokens take the white space after them. Phi-3's do; llama.cpp
	// knows that model by its name too.
	if n := strings.ToLower(name); strings.Contains(n, "phi-3") || strings.Contains(n, "phi3") {
		s.attrs = phi3Attrs(s)
	}
	return build(s)
}

// bytePreset reads the pre-tokenizer's name and the merges of a byte-level model.
func (s *spec) bytePreset(pre string, merges []string) (preset, error) {
	if pre == "" {
		pre = "default"
		s.notes = append(s.notes, "the file does not name its pre-tokenizer (tokenizer.ggml.pre); text is cut by llama.cpp's default, "+
			"which may differ from what the model was trained with. Converting the model again adds the name")
	}
	p, err := presetFor(pre)
	if err != nil {
		return p, s.errorf("pre", "%v", err)
	}
	return p, s.readMerges(merges)
}

// readMerges reads the merges of a BPE.
func (s *spec) readMerges(merges []string) error {
	if len(merges) == 0 {
		return s.errorf("merges", "missing, but BPE needs them")
	}
	s.merges = make([][2]string, len(merges))
	for i, m := range merges {
		pair, ok := cutMerge(m)
		if !ok {
			return s.errorf("merges", "entry %d, %q, is not two texts separated by a space", i, m)
		}
		s.merges[i] = pair
	}
	return nil
}

// cutMerge parses "a b". The first text is not empty, and may itself begin with a space.
func cutMerge(m string) (pair [2]string, ok bool) {
	if len(m) < 3 {
		return pair, false
	}
	a, b, ok := strings.Cut(m[1:], " ")
	return [2]string{m[:1] + a, b}, ok && b != ""
}

// ggufID reads the id of a special token. Writers store "none" as −1 or 2^32−1. A padding token is
// of no use here, so a wrong one is no error.
func (s *spec) ggufID(f *gguf.File, name string, def int32) (int32, error) {
	key := "tokenizer.ggml." + name + "_token_id"
	v, ok := f.Lookup(key)
	if !ok {
		if int(def) < len(s.tokens) {
			return def, nil
		}
		return none, nil
	}
	id, ok := gguf.As[int64](v)
	switch {
	case ok && id >= 0 && id < int64(len(s.tokens)):
		return int32(id), nil
	case ok && (id == -1 || id == math.MaxUint32) || name == "padding":
		return none, nil
	}
	return none, s.errorf(key, "%v is outside the vocabulary of %d tokens", v, len(s.tokens))
}

func (s *spec) ggufTemplates(f *gguf.File) {
	if text, ok := gguf.Get[string](f, "tokenizer.chat_template"); ok {
		s.templates = append(s.templates, template{"default", text})
	}
	names, _ := gguf.Get[[]string](f, "tokenizer.chat_templates")
	for _, n := range names {
		if text, ok := gguf.Get[string](f, "tokenizer.chat_template."+n); ok {
			s.templates = append(s.templates, template{n, text})
		}
	}
}

func phi3Attrs(s *spec) map[int32]attr {
	m := map[int32]attr{}
	for i, text := range s.tokens {
		special := i < len(s.types) &&
			(s.types[i] == tokenkind.Control || s.types[i] == tokenkind.UserDefined || s.types[i] == tokenkind.Unknown)
		if special && text != "<unk>" && text != "<s>" && text != "<|endoftext|>" {
			m[int32(i)] = attrRight
		}
	}
	return m
}
