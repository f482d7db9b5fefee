package tokenizer

import (
	"github.com/grovellm/grove/internal/files/tokenkind"
	"strings"
	"sync"
)

// A Tokenizer turns text into ids and back. Make one with FromGGUF, FromJSON or Parse.
type Tokenizer struct {
	source string
	model  model

	stages       []scanner    // cut the text, each the words of the one before
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
	eog                []int32 // sorted
	prefix, suffix     []int32
	templates          []template
	notes              []string

	pool sync.Pool // *scratch
}

// template is a chat template as the file has it.
type template struct{ name, text string }

// VocabSize is the number of ids, 0 … VocabSize()−1. A model's embedding may have more rows, never fewer.
func (t *Tokenizer) VocabSize() int { return len(t.text) }

// Source is the file that the tokenizer was read from.
func (t *Tokenizer) Source() string { return t.source }

// Notes are remarks about the file for its user: what it leaves out, and what was taken instead.
func (t *Tokenizer) Notes() []string { return t.notes }

// BOS, EOS, UNK and PAD return the ids of the model's special tokens, −1 for those it does not have.
func (t *Tokenizer) BOS() int32 { return t.bos }

// EOS is the token that ends a text.
func (t *Tokenizer) EOS() int32 { return t.eos }

// UNK stands for text that has no token.
func (t *Tokenizer) UNK() int32 { return t.unk }

// PAD fills batches.
func (t *Tokenizer) PAD() int32 { return t.pad }

// IsEOG reports whether a generation ends at id: the model's end of text or of turn.
func (t *Tokenizer) IsEOG(id int32) bool {
	for _, e := range t.eog {
		if e == id {
			return true
		}
	}
	return false
}

// AddBOS and AddEOS report what EncodeOptions.AddSpecial adds.
func (t *Tokenizer) AddBOS() bool { return len(t.prefix) > 0 }

// AddEOS reports whether AddSpecial ends the text with a token.
func (t *Tokenizer) AddEOS() bool { return len(t.suffix) > 0 }

// Templates are the file's chat templates by name. Most models have one, named "default". Package chat renders them.
func (t *Tokenizer) Templates() map[string]string {
	m := make(map[string]string, len(t.templates))
	for _, c := range t.templates {
		m[c.name] = c.text
	}
	return m
}

func (t *Tokenizer) has(id int32) bool { return id >= 0 && int(id) < len(t.text) }

// Type says what the token is for, in GGUF's numbers: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 a
// byte; 0 for an id outside the vocabulary.
func (t *Tokenizer) Type(id int32) int32 {
	if !t.has(id) {
		return 0
	}
	return t.types[id]
}

// IsSpecial reports whether id is a control token or the unknown token: one that Decode leaves out.
func (t *Tokenizer) IsSpecial(id int32) bool {
	return t.has(id) && (t.types[id] == tokenkind.Control || t.types[id] == tokenkind.Unknown)
}

// Piece returns the bytes that id stands for, which need not be whole characters. It is empty for an
// id outside the vocabulary. Special tokens have their name.
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

// Find returns the token with the given name (special tokens) or bytes (all others).
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
