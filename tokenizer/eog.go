package tokenizer

import (
	"github.com/grovellm/grove/internal/files/tokenkind"
	"slices"
	"strings"
)

// The tokens that end a generation. Files give the ids of one or two of them; chat models end their
// turn with others, known by their text alone, so the usual names count as well, unless the file says
// that such a token is text.

var eogNames = []string{
	"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
	"<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>",
	"<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[",
	// the separators between files and repositories in code models
	"<PAD>", "[PAD]", "<REPO>", "<reponame>",
	"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<|file_sep|>",
}

// fimNames are the tokens around the parts of a file in fill-in-the-middle prompts: control tokens,
// which some GGUF files call user-defined.
var fimNames = []string{
	"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>", "<|prefix|>",
	"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>", "<|suffix|>",
	"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>", "<|middle|>",
}

// findEOG marks the tokens that end a generation, and makes those found by name control tokens. The
// file's ids and types come first: where a file has control tokens, one that it calls user-defined ends
// nothing by its name, unless the file gives its id as an end or its chat template writes it. A GGUF
// file that calls one a plain word says nothing by that; a tokenizer.json (exact set) does.
func (t *Tokenizer) findEOG(declared []int32, exact bool) {
	declared = append(slices.Clone(declared), t.eos)
	typed := slices.Contains(t.types, tokenkind.Control)
	isEnd := func(id int32) bool {
		switch ty := t.types[id]; {
		case ty == tokenkind.Byte || exact && ty == tokenkind.Normal:
			return false
		case ty != tokenkind.UserDefined || !typed || slices.Contains(declared, id):
			return true
		}
		return slices.ContainsFunc(t.templates, func(c template) bool { return strings.Contains(c.text, t.text[id]) })
	}
	named := map[string]int32{}
	for i, text := range t.text {
		if slices.Contains(eogNames, text) && isEnd(int32(i)) {
			named[text] = int32(i)
		}
		if !exact && t.types[i] != tokenkind.Byte && slices.Contains(fimNames, text) {
			t.types[i] = tokenkind.Control
		}
	}
	has := func(names ...string) bool {
		for _, n := range names {
			if _, ok := named[n]; !ok {
				return false
			}
		}
		return true
	}
	// Where a message ends with <|end|> but the turn with another, <|end|> only ends a message; and
	// a model whose turn ends with <|tool_response> uses </s> as text.
	if has("<|return|>", "<|call|>") || has("<|call|>", "<|flush|>") || has("<|calls|>", "<|flush|>") {
		delete(named, "<|end|>")
	}
	if has("<|tool_response>") {
		delete(named, "</s>")
	}
	ids := declared
	for _, id := range named {
		t.types[id] = tokenkind.Control
		ids = append(ids, id)
	}
	slices.Sort(ids)
	t.eog = slices.DeleteFunc(slices.Compact(ids), func(id int32) bool { return id < 0 })
}
