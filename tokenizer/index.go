package tokenizer

// The tables of a tokenizer, which build makes of a spec: tokens by text, pairs to merge, tokens of
// bytes, and special tokens to find.

import (
	"fmt"
	"github.com/grovellm/grove/internal/files/tokenkind"
	"slices"
	"strings"
	"unicode/utf8"
)

// indexTokens fills piece, words and names.
func (t *Tokenizer) indexTokens() {
	size := 0
	for _, w := range t.text {
		size += len(w)
	}
	arena := make([]byte, 0, size)
	ends := make([]int, len(t.text))
	inWords := make([]bool, len(t.text))
	for i, w := range t.text {
		switch {
		case t.types[i] == tokenkind.Byte:
			if b, ok := fallbackByte(w); ok {
				arena = append(arena, b)
			}
		case t.types[i] == tokenkind.Normal && t.model == byteBPE:
			start := len(arena)
			arena, inWords[i] = alphabetBytes(arena, w)
			if !inWords[i] {
				arena = append(arena[:start], w...)
			}
		case t.types[i] == tokenkind.Normal:
			arena = append(arena, strings.ReplaceAll(w, "▁", " ")...)
			inWords[i] = true
		case t.types[i] != tokenkind.Unused:
			arena = append(arena, w...)
			inWords[i] = t.types[i] == tokenkind.UserDefined && t.model != byteBPE
		}
		ends[i] = len(arena)
	}
	all, start := string(arena), 0
	t.piece = make([]string, len(t.text))
	for i, w := range t.text {
		t.piece[i] = all[start:ends[i]]
		start = ends[i]
		key, in := w, t.names
		if inWords[i] {
			in = t.words
			if t.model == byteBPE {
				key = t.piece[i]
			}
		}
		if _, taken := in[key]; !taken && key != "" {
			in[key] = int32(i)
		}
	}
}

// indexMerges makes the pair table. Symbols are token ids, and beyond them ids for texts that only
// the merges name, or that are only single characters of tokens.
func (t *Tokenizer) indexMerges(s *spec) error {
	extra := map[string]int32{}
	symbol := func(text []byte) int32 {
		if id, ok := t.words[string(text)]; ok {
			return id
		}
		id, ok := extra[string(text)]
		if !ok {
			id = int32(len(t.text) + len(extra))
			extra[string(text)] = id
		}
		return id
	}
	list := t.listMerges
	if t.model == sentencePiece {
		list = t.scoreMerges
	}
	if err := list(s, symbol); err != nil {
		return err
	}
	t.runeSym = map[rune]int32{}
	if t.model != byteBPE {
		for _, m := range []map[string]int32{t.words, extra} {
			for text, id := range m {
				if r, n := utf8.DecodeRuneInString(text); n == len(text) && (r != utf8.RuneError || n > 1) {
					t.runeSym[r] = id
				}
			}
		}
	}
	for b := range t.byteSym {
		if t.model == byteBPE {
			t.byteSym[b] = symbol([]byte{byte(b)})
		}
	}
	t.extra = make([]string, len(extra))
	for text, id := range extra {
		t.extra[int(id)-len(t.text)] = text
	}
	return nil
}

func (t *Tokenizer) listMerges(s *spec, symbol func([]byte) int32) error {
	t.pairs = newPairTable(len(s.merges))
	var buf []byte
	for rank, m := range s.merges {
		buf = buf[:0]
		var cut int
		if t.model == byteBPE {
			var ok1, ok2 bool
			buf, ok1 = alphabetBytes(buf, m[0])
			cut = len(buf)
			buf, ok2 = alphabetBytes(buf, m[1])
			if !ok1 || !ok2 {
				continue // no text can reach it
			}
		} else {
			buf = append(append(buf, m[0]...), m[1]...)
			cut = len(m[0])
		}
		if cut == 0 || cut == len(buf) {
			return s.errorf("merges", "entry %d, %q, is not a pair", rank, m)
		}
		t.pairs.add(symbol(buf[:cut]), symbol(buf[cut:]), int32(rank), symbol(buf))
	}
	return nil
}

const (
	maxPiece = 1 << 10 // bytes of a piece: listing its pairs takes the square of that
	maxPairs = 1 << 17 // pairs of pieces besides 4 for each piece: vocabularies have 2
)

// scoreMerges lists, for every piece, the pairs of pieces or characters that make it. Its rank is
// that of its score among all scores, highest first.
func (t *Tokenizer) scoreMerges(s *spec, symbol func([]byte) int32) error {
	order := slices.Clone(s.scores)
	slices.Sort(order)
	order = slices.Compact(order)
	rank := make(map[float64]int32, len(order))
	for i, x := range order {
		rank[x] = int32(len(order) - 1 - i)
	}
	known := func(text string) bool {
		if _, ok := t.words[text]; ok {
			return true
		}
		return char(text) == len(text)
	}
	type pair struct{ left, right, rank, out int32 }
	var pairs []pair
	for id, text := range t.text {
		if t.words[text] != int32(id) || text == "" {
			continue
		}
		if len(text) > maxPiece {
			return s.errorf("tokens", "entry %d has %d bytes: want at most %d", id, len(text), maxPiece)
		}
		for cut := char(text); cut < len(text); cut += char(text[cut:]) {
			if known(text[:cut]) && known(text[cut:]) {
				pairs = append(pairs, pair{symbol([]byte(text[:cut])), symbol([]byte(text[cut:])), rank[s.scores[id]], int32(id)})
			}
		}
		if len(pairs) > 4*len(t.text)+maxPairs {
			return s.errorf("tokens", "more than %d pairs of pieces make a piece", 4*len(t.text)+maxPairs)
		}
	}
	t.pairs = newPairTable(len(pairs))
	for _, p := range pairs {
		t.pairs.add(p.left, p.right, p.rank, p.out)
	}
	return nil
}

// splitAtSpaces adds a last cut before every ▁ that follows another character, where no merge and no
// piece reaches across one: words cut there give the same result one by one, and are found in the cache.
func (t *Tokenizer) splitAtSpaces() {
	if t.model == byteBPE || t.ignoreMerges {
		return
	}
	if t.model == unigram {
		for _, n := range t.lattice.pieces.nodes {
			if n.token >= 0 && crossesSpace(t.text[n.token]) {
				return
			}
		}
	} else {
		for _, p := range t.pairs.slots {
			if p.key != 0 && crossesSpace(t.symbolText(p.out)) {
				return
			}
		}
	}
	t.stages = append(slices.Clip(t.stages), spaceWords)
}

// spaceWords returns the length of ▁*[^▁]* at the start of s.
func spaceWords(s string) int {
	i := 0
	for strings.HasPrefix(s[i:], "▁") {
		i += len("▁")
	}
	if k := strings.Index(s[i:], "▁"); k >= 0 {
		return i + k
	}
	return len(s)
}

func crossesSpace(text string) bool { return text != "" && spaceWords(text) < len(text) }

func (t *Tokenizer) symbolText(id int32) string {
	if int(id) < len(t.text) {
		return t.text[id]
	}
	return t.extra[int(id)-len(t.text)]
}

// indexBytes finds the token of every byte. Many vocabularies have none for bytes that UTF-8 seldom or
// never uses, and some none for control characters; with no token for unknown text either, text loses
// them. A vocabulary that could not spell ordinary text is refused.
func (t *Tokenizer) indexBytes(s *spec) error {
	for b := range t.byteTok {
		t.byteTok[b] = none
		if t.model == byteBPE {
			if id := t.byteSym[b]; int(id) < len(t.text) {
				t.byteTok[b] = id
			}
		} else if id, ok := t.names[fmt.Sprintf("<0x%02X>", b)]; ok && t.types[id] == tokenkind.Byte {
			t.byteTok[b] = id
		}
	}
	if t.unk != none {
		return nil
	}
	for b, id := range t.byteTok {
		needed := b == '\t' || b == '\n' || b >= ' ' && b < 0x7f || b >= 0x80 && b < 0xc0
		if needed && id == none {
			return s.errorf("tokens", "byte 0x%02x has no token, and there is no token for unknown text: not all text could be encoded", b)
		}
	}
	return nil
}

// indexSpecial builds the four matchers: with and without control tokens, before and after
// normalisation.
func (t *Tokenizer) indexSpecial(attrs map[int32]attr) {
	for k := range t.match {
		t.match[k] = newMatcher(attrs)
	}
	for i, text := range t.text {
		id, ty := int32(i), t.types[i]
		if ty != tokenkind.Control && ty != tokenkind.UserDefined && ty != tokenkind.Unknown {
			continue
		}
		stage := 0
		if attrs[id]&attrNormalized != 0 {
			stage = 1
			text = apply(t.normalize, text, false)
		}
		t.match[2*stage+1].add(text, id)
		if ty == tokenkind.UserDefined {
			t.match[2*stage].add(text, id)
		}
	}
}
