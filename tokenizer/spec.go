package tokenizer

// spec is what a file says about a tokenizer, whichever format said it; build makes the tokenizer.

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

type model uint8

const (
	byteBPE       model = iota // merges over bytes, text in GPT-2's alphabet
	charBPE                    // merges over characters, bytes as fallback
	sentencePiece              // the same by scores
)

// Type says what a token is for. The numbers are GGUF's.
type Type int32

const (
	Normal      Type = 1
	Unknown     Type = 2 // stands for text that has no token
	Control     Type = 3 // steers the model; never comes from plain text
	UserDefined Type = 4 // added to the vocabulary; found in text before everything else
	Unused      Type = 5
	Byte        Type = 6 // <0xXX>
)

// none is the id of a token that the model does not have.
const none int32 = -1

// spaceRule says where SentencePiece's leading space is put at encoding and taken away at decoding.
type spaceRule uint8

const (
	spaceNever    spaceRule = iota
	spaceSegments           // at the start of every stretch of text between special tokens
	spaceFirst              // only where the whole text begins
)

// maxTokens bounds the vocabulary; ids must fit where the engine packs them.
const maxTokens = 1 << 24

type spec struct {
	source string // the file, for messages
	keys   func(field string) string

	model        model
	stages       []scanner
	normalize    []normalizer
	escape       []normalizer
	ignoreMerges bool
	fuseUnk      bool
	exactTypes   bool // types are beyond doubt: no token becomes Control by its name
	space        spaceRule

	tokens []string
	types  []Type    // nil: all Normal
	scores []float32 // sentencePiece
	merges [][2]string
	attrs  map[int32]attr

	bos, eos, unk, pad int32
	eog                []int32
	prefix, suffix     []int32 // what EncodeOptions.AddSpecial puts around the text
	templates          []Template
	notes              []string
}

// errorf names the file and the field, as the file's format calls it.
func (s *spec) errorf(field, format string, args ...any) error {
	return fmt.Errorf("%s: %s: %s", s.source, s.keys(field), fmt.Sprintf(format, args...))
}

func (s *spec) check() error {
	n := len(s.tokens)
	switch {
	case n == 0:
		return s.errorf("tokens", "the vocabulary is empty")
	case n > maxTokens:
		return s.errorf("tokens", "%d tokens, more than the %d that grove takes", n, maxTokens)
	case s.types != nil && len(s.types) != n:
		return s.errorf("types", "%d entries for %d tokens", len(s.types), n)
	case s.model == sentencePiece && len(s.scores) != n:
		return s.errorf("scores", "%d entries for %d tokens", len(s.scores), n)
	case len(s.merges) > math.MaxInt32-1:
		return s.errorf("merges", "%d entries are too many", len(s.merges))
	}
	for i, x := range s.scores {
		if x != x {
			return s.errorf("scores", "entry %d is not a number", i)
		}
	}
	for _, id := range slices.Concat([]int32{s.bos, s.eos, s.unk, s.pad}, s.eog, s.prefix, s.suffix) {
		if id != none && (id < 0 || int(id) >= n) {
			return s.errorf("special", "token id %d is outside the vocabulary of %d tokens", id, n)
		}
	}
	return nil
}

func build(s *spec) (*Tokenizer, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.types == nil {
		s.types = slices.Repeat([]Type{Normal}, len(s.tokens))
	}
	t := &Tokenizer{
		source: s.source, model: s.model, stages: s.stages, normalize: s.normalize, escape: s.escape, space: s.space,
		ignoreMerges: s.ignoreMerges, fuseUnk: s.fuseUnk,
		text: s.tokens, types: s.types,
		bos: s.bos, eos: s.eos, unk: s.unk, pad: s.pad, prefix: s.prefix, suffix: s.suffix,
		words: make(map[string]int32, len(s.tokens)), names: map[string]int32{},
		templates: s.templates, notes: s.notes,
	}
	t.pool.New = newScratch
	t.findEOG(s.eog, s.exactTypes)
	if t.unk != none && t.types[t.unk] != Unknown {
		t.unk = none // GPT-2's relatives name <|endoftext|> here: not what unknown text should become
	}
	t.indexTokens()
	if err := t.indexMerges(s); err != nil {
		return nil, err
	}
	if err := t.indexBytes(s); err != nil {
		return nil, err
	}
	t.splitAtSpaces()
	t.indexSpecial(s.attrs)
	return t, nil
}

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
		case t.types[i] == Byte:
			if b, ok := fallbackByte(w); ok {
				arena = append(arena, b)
			}
		case t.types[i] == Normal && t.model == byteBPE:
			start := len(arena)
			if arena, inWords[i] = alphabetBytes(arena, w); !inWords[i] {
				arena = append(arena[:start], w...)
			}
		case t.types[i] == Normal:
			arena = append(arena, strings.ReplaceAll(w, "▁", " ")...)
			inWords[i] = true
		case t.types[i] != Unused:
			arena = append(arena, w...)
			inWords[i] = t.types[i] == UserDefined && t.model != byteBPE
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
	if t.model == sentencePiece {
		t.scoreMerges(s.scores, symbol)
	} else if err := t.listMerges(s, symbol); err != nil {
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

// scoreMerges lists, for every piece, the pairs of pieces or characters that make it. Its rank is
// that of its score among all scores, highest first.
func (t *Tokenizer) scoreMerges(scores []float32, symbol func([]byte) int32) {
	order := slices.Clone(scores)
	slices.Sort(order)
	order = slices.Compact(order)
	rank := make(map[float32]int32, len(order))
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
		for cut := char(text); cut < len(text); cut += char(text[cut:]) {
			if known(text[:cut]) && known(text[cut:]) {
				pairs = append(pairs, pair{symbol([]byte(text[:cut])), symbol([]byte(text[cut:])), rank[scores[id]], int32(id)})
			}
		}
	}
	t.pairs = newPairTable(len(pairs))
	for _, p := range pairs {
		t.pairs.add(p.left, p.right, p.rank, p.out)
	}
}

// splitAtSpaces adds a last cut before every ▁ that follows another character, where no merge reaches
// across one: the words it makes are merged on their own with the same result, and are found in the
// cache.
func (t *Tokenizer) splitAtSpaces() {
	if t.model == byteBPE || t.ignoreMerges {
		return
	}
	for _, p := range t.pairs.slots {
		if p.key != 0 && crossesSpace(t.symbolText(p.out)) {
			return
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

// indexBytes finds the token of every byte. Many vocabularies have none for bytes that UTF-8 never
// uses, and some none for control characters; with no token for unknown text either, the first become
// U+FFFD and the second nothing, as elsewhere. A vocabulary that could not spell ordinary text is
// refused.
func (t *Tokenizer) indexBytes(s *spec) error {
	for b := range t.byteTok {
		t.byteTok[b] = none
		if t.model == byteBPE {
			if id := t.byteSym[b]; int(id) < len(t.text) {
				t.byteTok[b] = id
			}
		} else if id, ok := t.names[fmt.Sprintf("<0x%02X>", b)]; ok && t.types[id] == Byte {
			t.byteTok[b] = id
		}
	}
	if t.unk != none {
		return nil
	}
	for b, id := range t.byteTok {
		needed := b == '\t' || b == '\n' || b >= ' ' && b < 0x7f || b >= 0x80 && b < 0xc0 || b == 0xef // U+FFFD is ef bf bd
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
		if ty != Control && ty != UserDefined && ty != Unknown {
			continue
		}
		stage := 0
		if attrs[id]&attrNormalized != 0 && len(t.normalize) > 0 {
			stage = 1
			text = apply(t.normalize, text, false)
		}
		t.match[2*stage+1].add(text, id)
		if ty == UserDefined {
			t.match[2*stage].add(text, id)
		}
	}
}
