package tokenizer

import (
	"github.com/grovellm/grove/internal/files/tokenkind"
	"github.com/grovellm/grove/internal/inside/lower"
	"slices"
	"strings"
	"sync"
)

// A Tokenizer turns text into ids and back. Make one with FromGGUF, FromJSON or Parse.
type Tokenizer struct {
	source string
	model  model

	stages       []scanner    // cut the text, each the words of the one before
	cuts         []string     // the stages' patterns, where the file is a tokenizer.json
	normalize    []normalizer // applied to the text between special tokens
	escape       []normalizer // applied after that to the text between added tokens: spaces become ▁
	ignoreMerges bool
	fuseUnk      bool
	space        spaceRule

	text  []string // as the file writes it
	piece []string // the bytes it stands for
	types []int32
	words map[string]int32 // tokens that text is made of: bytes (byteBPE) or text
	names map[string]int32 // all other tokens by their text

	pairs   *pairTable
	lattice *lattice       // unigram
	byteSym [256]int32     // symbol of a byte (byteBPE)
	runeSym map[rune]int32 // symbol of a character (the other models)
	extra   []string       // texts of the symbols beyond the tokens
	byteTok [256]int32     // token of a byte, none where there is none

	match [4]*matcher // before normalisation: user-defined only, all; after: the same two

	bos, eos, unk, pad int32
	eog, suppressed    []int32 // the first sorted
	prefix, suffix     []int32
	templates          []template
	notes              []string

	reach int // see reachOf

	pool sync.Pool // *scratch
}

// template is a chat template as the file has it.
type template struct{ name, text string }

func init() {
	lower.TokenKind = func(tok any, id int32) int32 { return tok.(*Tokenizer).kind(id) }
	lower.SourceOf = func(tok any) string { return tok.(*Tokenizer).source }
	lower.SpecialsOf = func(tok any) lower.Specials {
		t := tok.(*Tokenizer)
		return lower.Specials{UNK: t.unk, PAD: t.pad, AddEOS: len(t.suffix) > 0, Suppressed: t.suppressed}
	}
	lower.EncodeShielded = func(tok any, text, shield string) []int32 {
		return tok.(*Tokenizer).Encode(text, EncodeOptions{ParseSpecial: true, shield: shield})
	}
	lower.FindSplitter = findSplitter
	lower.PreTokenizerName = func(tok any) (string, error) { return preName(tok.(*Tokenizer)) }
	lower.PreTokenizerSteps = preSteps
	lower.PieceSteps = pieceSteps
	lower.MergesByScore = mergesByScore
	lower.TokenizerFile = vocabFile
	lower.TokenizerJSON = func(dir string) ([]byte, error) {
		f, err := readFiles(dir)
		if err == nil && f.Tokenizer == nil {
			err = f.makeJSON()
		}
		if err != nil {
			return nil, err
		}
		return f.Tokenizer, nil
	}
	lower.LeastTokens = func(tok any, text string) int { return tok.(*Tokenizer).least(text) }
}

// VocabSize is the number of ids, 0 … VocabSize()−1. A model's embedding may have more rows, never fewer.
func (t *Tokenizer) VocabSize() int { return len(t.text) }

// Notes are remarks for the user about the file: what is missing from it, and what is used instead.
func (t *Tokenizer) Notes() []string { return t.notes }

// BOS is the token that begins a text, −1 where the model has none.
func (t *Tokenizer) BOS() int32 { return t.bos }

// EOS is the token that ends a text, −1 where the model has none.
func (t *Tokenizer) EOS() int32 { return t.eos }

// IsEOG reports whether a generation ends at id: the model's end of text or of turn.
func (t *Tokenizer) IsEOG(id int32) bool { return slices.Contains(t.eog, id) }

// AddBOS reports whether EncodeOptions.AddSpecial puts BOS before the text.
func (t *Tokenizer) AddBOS() bool { return len(t.prefix) > 0 }

// Templates are the file's chat templates by name. Most models have one, named "default". Package chat renders them.
func (t *Tokenizer) Templates() map[string]string {
	m := make(map[string]string, len(t.templates))
	for _, c := range t.templates {
		m[c.name] = c.text
	}
	return m
}

func (t *Tokenizer) has(id int32) bool { return id >= 0 && int(id) < len(t.text) }

// kind says what the token is for; 0 for an id outside the vocabulary.
func (t *Tokenizer) kind(id int32) int32 {
	if !t.has(id) {
		return 0
	}
	return t.types[id]
}

// IsSpecial reports whether id is a control token or the unknown token: one that Decode leaves out.
func (t *Tokenizer) IsSpecial(id int32) bool {
	return t.has(id) && (t.types[id] == tokenkind.Control || t.types[id] == tokenkind.Unknown)
}

// Piece returns the bytes that id stands for, which may not be whole characters. It is empty for an
// id outside the vocabulary. For a special token it is the token's name.
func (t *Tokenizer) Piece(id int32) string {
	if !t.has(id) {
		return ""
	}
	return t.piece[id]
}

// Text returns the token as the file writes it (Ġthe, ▁the, <0x0A>), for tables and messages.
func (t *Tokenizer) Text(id int32) string {
	if !t.has(id) {
		return ""
	}
	return t.text[id]
}

// Find returns the token with a name (special tokens), or a Piece (all others; of byte tokens the Text, as <0x0A>).
func (t *Tokenizer) Find(text string) (id int32, ok bool) {
	id, ok = t.names[text]
	if ok {
		return id, true
	}
	id, ok = t.words[text]
	if ok {
		return id, true
	}
	if t.model != byteBPE {
		id, ok = t.words[strings.ReplaceAll(text, " ", "▁")]
	}
	return id, ok
}
