package tokenizer

// spec is what a file says about a tokenizer, whichever format said it; build makes the tokenizer.

import (
	"fmt"
	"github.com/grovellm/grove/internal/files/tokenkind"
	"math"
	"slices"
	"strings"
)

type model uint8

const (
	byteBPE       model = iota // merges over bytes, text in GPT-2's alphabet
	charBPE                    // merges over characters, bytes as fallback
	sentencePiece              // the same by scores
	unigram                    // the pieces whose scores have the highest sum
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

const (
	maxTokens  = 1 << 24 // in a vocabulary; ids must fit where the engine packs them
	maxSpecial = 1 << 10 // bytes of a special or added token: finding one takes that many steps for each byte of a text
	maxMessage = 1 << 10 // bytes of an error's text: a file's words may be long
)

type spec struct {
	source string // the file, for messages
	keys   func(field string) string

	model        model
	stages       []scanner
	cuts         []string // of a tokenizer.json: the pattern of each stage, "" if presets have none
	normalize    []normalizer
	escape       []normalizer
	growth       float64 // how many times as long normalize can make a text
	drops        bool    // normalize or escape may leave text out, or make it much shorter
	ignoreMerges bool
	fuseUnk      bool
	exactTypes   bool // types are beyond doubt: no token becomes Control by its name
	space        spaceRule

	tokens []string
	types  []int32   // nil: all Normal
	scores []float64 // sentencePiece, unigram
	lowest float64   // score of a piece (unigram)
	merges [][2]string
	attrs  map[int32]attr

	bos, eos, unk, pad int32
	eog                []int32
	suppressed         []int64 // as the file has them
	prefix, suffix     []int32 // what EncodeOptions.AddSpecial puts around the text
	templates          []template
	notes              []string
}

// errorf names the file and the field, as the file's format calls it.
func (s *spec) errorf(field, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	return fmt.Errorf("%s: %s: %s", s.source, s.keys(field), text)
}

func (s *spec) check() error {
	n := len(s.tokens)
	switch {
	case n == 0:
		return s.errorf("tokens", "the vocabulary is empty")
	case n > maxTokens:
		return s.errorf("tokens", "%d tokens, more than grove's limit of %d", n, maxTokens)
	case s.types != nil && len(s.types) != n:
		return s.errorf("types", "%d entries for %d tokens", len(s.types), n)
	case (s.model == sentencePiece || s.model == unigram) && len(s.scores) != n:
		return s.errorf("scores", "%d entries for %d tokens", len(s.scores), n)
	case len(s.merges) > math.MaxInt32-1:
		return s.errorf("merges", "%d entries are too many", len(s.merges))
	}
	for i, x := range s.scores {
		if x != x || s.model == unigram && math.IsInf(x, 1) {
			return s.errorf("scores", "entry %d is %g: want a number", i, x)
		}
	}
	for i, ty := range s.types {
		if special := ty == tokenkind.Control || ty == tokenkind.UserDefined || ty == tokenkind.Unknown; special &&
			len(s.tokens[i]) > maxSpecial {
			return s.errorf("tokens", "the special token %d has %d bytes: want at most %d", i, len(s.tokens[i]), maxSpecial)
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
		s.types = slices.Repeat([]int32{tokenkind.Normal}, len(s.tokens))
	}
	t := &Tokenizer{
		source: s.source, model: s.model, stages: s.stages, cuts: s.cuts,
		normalize: s.normalize, escape: s.escape, space: s.space, ignoreMerges: s.ignoreMerges, fuseUnk: s.fuseUnk,
		text: s.tokens, types: s.types,
		bos: s.bos, eos: s.eos, unk: s.unk, pad: s.pad, prefix: s.prefix, suffix: s.suffix,
		words: make(map[string]int32, len(s.tokens)), names: map[string]int32{},
		templates: s.templates, notes: s.notes,
	}
	t.pool.New = newScratch
	t.findEOG(s.eog, s.exactTypes)
	for _, id := range s.suppressed {
		if id >= 0 && id < int64(len(s.tokens)) { // no other could be chosen
			t.suppressed = append(t.suppressed, int32(id))
		}
	}
	if t.unk != none && t.types[t.unk] != tokenkind.Unknown {
		t.unk = none // GPT-2's relatives name <|endoftext|> here: not what unknown text should become
	}
	t.indexTokens()
	index := t.indexMerges
	if t.model == unigram {
		index = t.indexPieces
	}
	if err := index(s); err != nil {
		return nil, err
	}
	if err := t.indexBytes(s); err != nil {
		return nil, err
	}
	t.splitAtSpaces()
	t.indexSpecial(s.attrs)
	t.reach = t.reachOf(s)
	return t, nil
}
