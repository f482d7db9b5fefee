package synth

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"

	"github.com/grovellm/grove/internal/files/atomicfile"
)

// The regular expressions of tokenizer.json by which each family splits text before merging.
var splits = map[Tokens]string{
	Qwen2:  `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	Llama3: `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
}

// writeFiles writes tokenizer.json and tokenizer_config.json to a folder.
func (v *vocab) writeFiles(dir string, kind Tokens) error {
	err := atomicfile.WriteJSON(filepath.Join(dir, "tokenizer.json"), v.tokenizerJSON(kind))
	return errors.Join(err, atomicfile.WriteJSON(filepath.Join(dir, "tokenizer_config.json"), v.tokenizerConfig(kind)))
}

// tokenizerJSON returns tokenizer.json, for the same tokenizer that the GGUF file's metadata describes.
func (v *vocab) tokenizerJSON(kind Tokens) object {
	ids := make(map[string]int32, len(v.pieces))
	for i, p := range v.pieces {
		ids[p] = int32(i)
	}
	added := make([]object, len(v.special))
	for i, p := range v.special {
		added[i] = object{"id": ids[p], "content": p, "single_word": false, "lstrip": false, "rstrip": false,
			"normalized": false, "special": true}
	}
	words := make(map[string]int32, len(ids))
	for i, p := range v.pieces {
		if kind == SPM || v.kinds[i] != control { // byte-level vocabularies list their special tokens separately
			words[p] = int32(i)
		}
	}
	model := object{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil,
		"end_of_word_suffix": nil,
		"fuse_unk":           false, "byte_fallback": false, "ignore_merges": kind == Llama3, "vocab": words}
	t := object{"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": added, "normalizer": nil,
		"post_processor": nil, "model": model}

	merges := v.merges
	if kind == SPM {
		merges = v.allMerges(ids)
		model["unk_token"] = "<unk>"
		model["fuse_unk"] = true
		model["byte_fallback"] = true
		t["normalizer"] = sequence("normalizers", object{"type": "Prepend", "prepend": "▁"},
			object{"type": "Replace", "pattern": object{"String": " "}, "content": "▁"})
		t["pre_tokenizer"] = nil
		t["decoder"] = sequence("decoders", object{"type": "Replace", "pattern": object{"String": "▁"}, "content": " "},
			object{"type": "ByteFallback"}, object{"type": "Fuse"}, object{"type": "Strip", "content": " ", "start": 1, "stop": 0})
	} else {
		level := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": kind == GPT2}
		t["pre_tokenizer"], t["decoder"] = level, level
		if re := splits[kind]; re != "" {
			t["pre_tokenizer"] = sequence("pretokenizers",
				object{"type": "Split", "pattern": object{"Regex": re}, "behavior": "Isolated", "invert": false}, level)
		}
	}
	lines := make([]string, len(merges))
	for i, m := range merges {
		lines[i] = m[0] + " " + m[1]
	}
	model["merges"] = lines
	if v.addBOS {
		bos := v.pieces[v.bos]
		one := object{"SpecialToken": object{"id": bos, "type_id": 0}}
		text := func(id string, typ int) object { return object{"Sequence": object{"id": id, "type_id": typ}} }
		t["post_processor"] = object{"type": "TemplateProcessing",
			"single":         []object{one, text("A", 0)},
			"pair":           []object{one, text("A", 0), {"SpecialToken": object{"id": bos, "type_id": 1}}, text("B", 1)},
			"special_tokens": object{bos: object{"id": bos, "ids": []int32{v.bos}, "tokens": []string{bos}}}}
	}
	return t
}

func sequence(field string, parts ...object) object {
	return object{"type": "Sequence", field: parts}
}

// allMerges lists every pair of pieces that joins to a piece. SentencePiece merges the two
// neighbours that join to the piece with the best score; tokenizer.json expresses this as merges
// in the order of these scores.
func (v *vocab) allMerges(ids map[string]int32) [][2]string {
	type merge struct {
		made, left, right int32
		pair              [2]string
	}
	var ms []merge
	for i, p := range v.pieces {
		if v.kinds[i] != normal {
			continue
		}
		for cut := range p { // at the start of every rune
			left, okLeft := ids[p[:cut]]
			right, okRight := ids[p[cut:]]
			if cut > 0 && okLeft && okRight && v.kinds[left] == normal && v.kinds[right] == normal {
				ms = append(ms, merge{int32(i), left, right, [2]string{p[:cut], p[cut:]}})
			}
		}
	}
	slices.SortFunc(ms, func(a, b merge) int {
		return cmp.Or(cmp.Compare(a.made, b.made), cmp.Compare(a.left, b.left), cmp.Compare(a.right, b.right))
	})
	out := make([][2]string, len(ms))
	for i, m := range ms {
		out[i] = m.pair
	}
	return out
}

// tokenizerConfig returns tokenizer_config.json.
func (v *vocab) tokenizerConfig(kind Tokens) object {
	c := object{"add_bos_token": v.addBOS, "add_eos_token": false, "eos_token": v.pieces[v.eos],
		"tokenizer_class": map[Tokens]string{SPM: "LlamaTokenizer", Llama3: "PreTrainedTokenizerFast",
			Qwen2: "Qwen2Tokenizer", GPT2: "GPT2Tokenizer"}[kind]}
	if v.bos >= 0 && kind != Qwen2 {
		c["bos_token"] = v.pieces[v.bos]
	}
	if kind == SPM {
		c["unk_token"] = "<unk>"
	}
	if v.template != "" {
		c["chat_template"] = v.template
	}
	return c
}
