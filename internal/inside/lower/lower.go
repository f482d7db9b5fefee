// Package lower shows the parts of tokenizers, samplers and layouts of conversations that programs do not
// see. Packages tokenizer, sample and chat set its functions; a tok is a *tokenizer.Tokenizer.
package lower

// TokenKind says what a token is for, in the numbers of package tokenkind; 0 for an id outside the vocabulary.
var TokenKind func(tok any, id int32) int32

// Specials are what files and chat templates say of special tokens beside BOS and EOS.
type Specials struct {
	UNK    int32 // stands for text that has no token; -1: there is none
	PAD    int32 // fills batches; -1: there is none
	AddEOS bool  // EncodeOptions.AddSpecial ends the text with a token

	Suppressed []int32 // are never chosen, such as marks of images that only users send
}

// SourceOf is the file that a tokenizer was read from.
var SourceOf func(tok any) string

// SpecialsOf returns a tokenizer's.
var SpecialsOf func(tok any) Specials

// EncodeShielded encodes text that names control tokens, but for names in which shield stands: it is taken
// out before the rest is encoded. Package chat shields what users wrote with it.
var EncodeShielded func(tok any, text, shield string) []int32

// FindSplitter returns what cuts text into words for the pre-tokenizer of a name: a function that gives the
// length in bytes of the first word of a text that is not empty. Pre-tokenizers that cut in several stages
// have none.
var FindSplitter func(pre string) (func(string) int, error)

// AppendHighNoise appends the tokens of a vocabulary with the highest noise at a position, about n of them: so
// many are expected. See sample.Noise.
var AppendHighNoise func(dst []int32, seed uint64, position, vocab, n int) []int32

// SetLike makes a *sample.Sampler choose as another does, with scratch of its own: so a few samplers serve many
// options on many goroutines. Both must be for vocabularies of one size.
var SetLike func(sampler, other any)

// TemplateOf is the text of a *chat.Layout's template for conversations without tools.
var TemplateOf func(layout any) string
