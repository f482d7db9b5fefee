package tokenizer

// composed is how many times as many bytes a text can have as its NFC: the sign of kelvin, and Hangul syllables in
// parts, have three times as many.
const composed = 3

// reachOf returns the most bytes that one token can stand for, of those that have tokens at all; 0 if there is no
// limit, because white space around tokens may be left out, or text may become shorter first.
func (t *Tokenizer) reachOf(s *spec) int {
	if s.drops || t.model == unigram {
		return 0
	}
	for _, a := range s.attrs {
		if a&(attrLeft|attrRight) != 0 {
			return 0
		}
	}
	for b, id := range t.byteTok {
		used := b != 0xc0 && b != 0xc1 && b < 0xf5 // in UTF-8
		if used && id == none && (t.model != byteBPE || len(t.normalize) > 0 || t.unk != none) {
			return 0
		}
	}
	longest := 0
	for i, piece := range t.piece {
		longest = max(longest, len(piece))
		if t.model != byteBPE {
			longest = max(longest, len(t.text[i])) // the text may have ▁ itself
		}
	}
	if len(t.normalize) > 0 {
		longest *= composed
	}
	return longest
}

// least is lower.LeastTokens.
func (t *Tokenizer) least(text string) int {
	if t.reach == 0 {
		return 0
	}
	bytes := 0
	for i := range len(text) {
		if t.byteTok[text[i]] != none {
			bytes++
		}
	}
	return bytes / t.reach
}
