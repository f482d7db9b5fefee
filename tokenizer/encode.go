package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// EncodeOptions says how text becomes ids. The zero value is safe for any text: no token is added,
// and names of special tokens are plain text.
type EncodeOptions struct {
	AddSpecial   bool // put the tokens around the text that the model expects (BOS, EOS)
	ParseSpecial bool // read names of control tokens as those tokens, as in the output of a chat template

	shield string // see lower.EncodeShielded
}

// Encode returns the ids of text.
func (t *Tokenizer) Encode(text string, o EncodeOptions) []int32 {
	return t.appendTokens(make([]int32, 0, len(text)/3+4), text, o)
}

// appendTokens appends the ids of text to dst. Once dst is large enough and the tokenizer warm,
// byte-level models allocate nothing.
func (t *Tokenizer) appendTokens(dst []int32, text string, o EncodeOptions) []int32 {
	sc := t.pool.Get().(*scratch)
	defer func() {
		sc.trim()
		t.pool.Put(sc)
	}()
	if o.AddSpecial {
		dst = append(dst, t.prefix...)
	}
	dst = t.encode(dst, text, o, sc)
	if o.AddSpecial {
		dst = append(dst, t.suffix...)
	}
	return dst
}

// encode cuts text at special tokens and encodes what lies between.
func (t *Tokenizer) encode(dst []int32, text string, o EncodeOptions, sc *scratch) []int32 {
	kind := 0
	if o.ParseSpecial {
		kind = 1
	}
	before, after := t.match[kind], t.match[2+kind]
	return cutAt(before, dst, text, func(dst []int32, text string, first bool) []int32 {
		// Some files want added tokens found in the normalised text.
		text = apply(t.normalize, text, first)
		return cutAt(after, dst, text, func(dst []int32, text string, start bool) []int32 {
			if o.shield != "" {
				text = strings.ReplaceAll(text, o.shield, "")
			}
			text = apply(t.escape, text, first && start)
			return t.split(dst, text, t.stages, len(dst), sc)
		})
	})
}

// cutAt appends the tokens that m finds in text and what each gives for the text between them, start
// being set at the beginning of text.
func cutAt(m *matcher, dst []int32, text string, each func(dst []int32, text string, start bool) []int32) []int32 {
	from, at := 0, 0
	for !m.empty() {
		sp, ok := m.next(text, from, at)
		if !ok {
			break
		}
		if at < sp.start {
			dst = each(dst, text[at:sp.start], at == 0)
		}
		dst = append(dst, sp.token)
		from, at = sp.after, sp.end
	}
	if at < len(text) {
		dst = each(dst, text[at:], at == 0)
	}
	return dst
}

// split cuts text into words by the stages and encodes them. from is where the segment's ids begin.
func (t *Tokenizer) split(dst []int32, text string, stages []scanner, from int, sc *scratch) []int32 {
	if len(stages) == 0 {
		return t.word(dst, text, from, sc)
	}
	for text != "" {
		n := stages[0](text)
		if len(stages) == 1 {
			dst = t.word(dst, text[:n], from, sc)
		} else {
			dst = t.split(dst, text[:n], stages[1:], from, sc)
		}
		text = text[n:]
	}
	return dst
}

// word appends the tokens of one word.
func (t *Tokenizer) word(dst []int32, w string, from int, sc *scratch) []int32 {
	if len(w) > cachedText {
		return t.mergeWord(dst, w, from, sc)
	}
	s, hit := sc.slot(w)
	if hit {
		ids := s.ids[:s.idsLen]
		if t.fuseUnk && ids[0] == t.unk && len(dst) > from && dst[len(dst)-1] == t.unk {
			ids = ids[1:]
		}
		return append(dst, ids...)
	}
	start := len(dst)
	dst = t.mergeWord(dst, w, start, sc)
	if len(dst) > start {
		s.store(w, dst[start:])
		if t.fuseUnk && start > from && dst[start] == t.unk && dst[start-1] == t.unk {
			dst = append(dst[:start], dst[start+1:]...)
		}
	}
	return dst
}

// mergeWord appends the tokens of one word without looking at the cache.
func (t *Tokenizer) mergeWord(dst []int32, w string, from int, sc *scratch) []int32 {
	if t.ignoreMerges {
		if id, ok := t.words[w]; ok {
			return append(dst, id)
		}
	}
	if t.model == unigram {
		return t.segment(dst, w, from, sc)
	}
	sym := sc.sym[:0]
	if t.model == byteBPE {
		for i := range len(w) {
			sym = append(sym, t.byteSym[w[i]])
		}
	} else {
		sym = t.characters(sym, w)
	}
	sc.sym = sym
	for _, s := range t.pairs.merge(sym, sc) {
		dst = t.emit(dst, s, from)
	}
	return dst
}

// Characters without a symbol travel as negative numbers, which no merge knows: −1−r, and bytes that
// are not UTF-8 beyond the last character.
const badByte = utf8.MaxRune + 1

func (t *Tokenizer) characters(sym []int32, w string) []int32 {
	for i := 0; i < len(w); {
		r, n := utf8.DecodeRuneInString(w[i:])
		if r == utf8.RuneError && n == 1 {
			r = badByte + rune(w[i])
		}
		id, ok := t.runeSym[r]
		if !ok {
			id = -1 - r
		}
		sym = append(sym, id)
		i += n
	}
	return sym
}

// emit appends the token of a symbol, or the tokens of its bytes where it is none.
func (t *Tokenizer) emit(dst []int32, s int32, from int) []int32 {
	if s >= 0 && int(s) < len(t.text) {
		return append(dst, s)
	}
	var buf [utf8.UTFMax]byte
	var text []byte
	switch r := -1 - s; {
	case s >= 0:
		text = []byte(t.extra[int(s)-len(t.text)])
	case r >= badByte:
		text = append(buf[:0], byte(r-badByte))
	default:
		text = utf8.AppendRune(buf[:0], r)
	}
	return spell(t, dst, text, from)
}

// spell appends the tokens of the bytes of text, where they all have one, or the unknown token. Where
// there is none of that either, bytes without a token are left out, as Hugging Face and llama.cpp do.
func spell[S string | []byte](t *Tokenizer, dst []int32, text S, from int) []int32 {
	spelled := true
	for i := range len(text) {
		spelled = spelled && t.byteTok[text[i]] != none
	}
	for i := range len(text) {
		switch b := text[i]; {
		case t.byteTok[b] != none && (spelled || t.model == byteBPE):
			dst = append(dst, t.byteTok[b])
		case t.unk != none:
			if !t.fuseUnk || len(dst) == from || dst[len(dst)-1] != t.unk {
				dst = append(dst, t.unk)
			}
			if t.model != byteBPE {
				return dst // one for the text
			}
		}
	}
	return dst
}
