package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/grovellm/grove/gguf"
	"github.com/grovellm/grove/internal/files/ggufkeys"
	"github.com/grovellm/grove/internal/files/tokenkind"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/tokenizer"
)

type fields = map[string]any

// tokenizerFiles makes the contents of tokenizer.json and tokenizer_config.json from a GGUF file's keys.
func tokenizerFiles(f *gguf.File, tok *tokenizer.Tokenizer) (tokens, settings fields, err error) {
	k := ggufkeys.Of(f)
	kind := k.String("tokenizer.ggml.model")
	pre := k.String("tokenizer.ggml.pre", "default")
	lines := k.Strings("tokenizer.ggml.merges", nil)
	values := k.Floats("tokenizer.ggml.scores", nil)
	front := k.Bool("tokenizer.ggml.add_space_prefix", true)
	if err := k.Err(); err != nil {
		return nil, nil, err
	}
	vocab, added, err := vocabulary(tok)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	model := fields{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil,
		"end_of_word_suffix": nil,
		"fuse_unk":           false, "byte_fallback": false, "ignore_merges": false, "vocab": vocab, "merges": lines}
	tokens = fields{"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "normalizer": nil,
		"post_processor": postProcessor(tok), "model": model}
	switch kind {
	case "gpt2":
		steps, ignoreMerges, err := lower.PreTokenizerSteps(pre)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: key \"tokenizer.ggml.pre\": %w", f.Path, err)
		}
		model["ignore_merges"] = ignoreMerges
		tokens["pre_tokenizer"] = fields{"type": "Sequence", "pretokenizers": steps}
		if len(steps) == 1 {
			tokens["pre_tokenizer"] = steps[0]
		}
		tokens["decoder"] = steps[len(steps)-1]
	case "llama":
		model["fuse_unk"] = true
		model["byte_fallback"] = true
		model["merges"] = joinPairs(lower.MergesByScore(tok, values))
		if id := lower.SpecialsOf(tok).UNK; id >= 0 {
			model["unk_token"] = tok.Text(id)
		}
		tokens["pre_tokenizer"] = nil
		maps.Copy(tokens, lower.PieceSteps(front))
	case "t5":
		if err := unigramFields(f, tok, tokens); err != nil {
			return nil, nil, err
		}
	default:
		return nil, nil, fmt.Errorf("%s: key \"tokenizer.ggml.model\": %q has no form in tokenizer.json that grove knows", f.Path, kind)
	}
	return tokens, settingsOf(f, tok), nil
}

// vocabulary returns the tokens, and those of them that are found in text before it is split. Readers
// give an added token its id in the vocabulary, and a new one if it is not there: so every token is.
func vocabulary(tok *tokenizer.Tokenizer) (vocab map[string]int32, added []fields, err error) {
	vocab = map[string]int32{}
	for id := range int32(tok.VocabSize()) {
		text, kind := tok.Text(id), lower.TokenKind(tok, id)
		if kind == tokenkind.Unused || text == "" {
			continue
		}
		if first, ok := vocab[text]; ok {
			return nil, nil, fmt.Errorf("key \"tokenizer.ggml.tokens\": tokens %d and %d are both %q, and tokenizer.json has one of a text",
				first, id, text)
		}
		vocab[text] = id
		if kind == tokenkind.Control || kind == tokenkind.UserDefined || kind == tokenkind.Unknown {
			added = append(added, fields{"id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false,
				"normalized": false, "special": kind != tokenkind.UserDefined})
		}
	}
	return vocab, added, nil
}

// joinPairs writes merges as older readers want them too, in one text each.
func joinPairs(merges [][2]string) []string {
	lines := make([]string, len(merges))
	for i, m := range merges {
		lines[i] = m[0] + " " + m[1]
	}
	return lines
}

// postProcessor adds the tokens around a text that the model expects.
func postProcessor(tok *tokenizer.Tokenizer) any {
	addEOS := lower.SpecialsOf(tok).AddEOS
	if !tok.AddBOS() && !addEOS {
		return nil
	}
	special := fields{}
	token := func(id int32, side int) fields {
		text := tok.Text(id)
		special[text] = fields{"id": text, "ids": []int32{id}, "tokens": []string{text}}
		return fields{"SpecialToken": fields{"id": text, "type_id": side}}
	}
	part := func(name string, side int) []fields {
		var out []fields
		if tok.AddBOS() {
			out = append(out, token(tok.BOS(), side))
		}
		out = append(out, fields{"Sequence": fields{"id": name, "type_id": side}})
		if addEOS {
			out = append(out, token(tok.EOS(), side))
		}
		return out
	}
	single, pair := part("A", 0), append(part("A", 0), part("B", 1)...)
	return fields{"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special}
}

// settingsOf returns tokenizer_config.json. Its class is the one that reads tokenizer.json as it
// is: the classes of model families replace some of its steps.
func settingsOf(f *gguf.File, tok *tokenizer.Tokenizer) fields {
	c := fields{"add_bos_token": tok.AddBOS(), "add_eos_token": lower.SpecialsOf(tok).AddEOS,
		"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false}
	for name, text := range namedTokens(f, tok) {
		c[name] = text
	}
	templates := tok.Templates()
	text, alone := templates["default"]
	switch n := len(templates); {
	case n == 1 && alone:
		c["chat_template"] = text
	case n > 0:
		var list []fields
		for _, name := range slices.Sorted(maps.Keys(templates)) {
			list = append(list, fields{"name": name, "template": templates[name]})
		}
		c["chat_template"] = list
	}
	return c
}

// specialIDs returns the fields of config.json that name tokens.
func specialIDs(tok *tokenizer.Tokenizer) map[string]int32 {
	m := map[string]int32{}
	for name, id := range map[string]int32{"bos_token_id": tok.BOS(), "eos_token_id": tok.EOS(),
		"pad_token_id": lower.SpecialsOf(tok).PAD} {
		if id >= 0 {
			m[name] = id
		}
	}
	return m
}

// modelName returns a name for a model that does not state its own.
func modelName(path string) string {
	base := strings.TrimRight(strings.ReplaceAll(path, `\`, "/"), "/")
	base = base[strings.LastIndexByte(base, '/')+1:]
	return strings.TrimSuffix(base, ".gguf")
}
