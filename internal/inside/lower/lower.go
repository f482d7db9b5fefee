// Package lower exposes parts of tokenizers, samplers and layouts of conversations that programs do
// not see. Packages tokenizer, sample and chat set its functions; a tok is a *tokenizer.Tokenizer.
package lower

// TokenKind returns what a token is for, as a number of package tokenkind, or 0 for an id outside the vocabulary.
var TokenKind func(tok any, id int32) int32

// Specials are statements of files and chat templates about special tokens other than BOS and EOS.
type Specials struct {
	UNK    int32 // stands for text without a token; -1: there is none
	PAD    int32 // fills batches; -1: there is none
	AddEOS bool  // EncodeOptions.AddSpecial ends the text with a token

	Suppressed []int32 // are never sampled, such as marks of images that only users send
}

// SourceOf returns the file that a tokenizer was read from.
var SourceOf func(tok any) string

// SpecialsOf returns a tokenizer's Specials.
var SpecialsOf func(tok any) Specials

// LeastTokens returns a number of tokens that a text, in UTF-8, has at least. It does not make them.
var LeastTokens func(tok any, text string) int

// EncodeShielded encodes text in which control tokens are named, except names that contain shield,
// which is removed before the rest is encoded. Package chat shields the text of users with it.
var EncodeShielded func(tok any, text, shield string) []int32

// FindSplitter returns the function that splits text into words for the pre-tokenizer with a name:
// it returns the length in bytes of the first word of a non-empty text. Pre-tokenizers that split
// in several stages have none.
var FindSplitter func(pre string) (func(string) int, error)

// PreTokenizerName returns GGUF's name for the way in which a byte-level tokenizer of a tokenizer.json splits text into
// words, and "" for other tokenizers.
var PreTokenizerName func(tok any) (string, error)

// PreTokenizerSteps returns the steps of a tokenizer.json that split text like GGUF's pre-tokenizer with a name,
// the last of which writes bytes in GPT-2's letters, and the field ignore_merges of its model.
var PreTokenizerSteps func(name string) (steps []map[string]any, ignoreMerges bool, err error)

// PieceSteps returns the fields normalizer and decoder of a tokenizer.json for a BPE of SentencePiece's kind, which
// puts a space in front of a text or not.
var PieceSteps func(front bool) map[string]any

// MergesByScore lists every pair of pieces that makes a piece, by the piece's score, highest first. SentencePiece
// merges whichever neighbours make the piece with the best score; a list of merges in that order has the same effect.
var MergesByScore func(tok any, scores []float32) [][2]string

// TokenizerFile returns the name of the file that a folder's tokenizer is read from, or "" if the folder has none.
var TokenizerFile func(dir string) string

// TokenizerJSON returns a folder's tokenizer.json, or the one that is made of the file in its place.
var TokenizerJSON func(dir string) ([]byte, error)

// AppendHighNoise appends the tokens of a vocabulary with the highest noise at a position. The
// expected number is n. See sample.Noise.
var AppendHighNoise func(dst []int32, seed uint64, position, vocab, n int) []int32

// SetLike makes a *sample.Sampler sample as another does, with scratch of its own: so a few
// samplers serve many options on many goroutines. Both must have vocabularies of the same size.
var SetLike func(sampler, other any)

// TemplateOf returns the text of a *chat.Layout's template for conversations without tools.
var TemplateOf func(layout any) string
