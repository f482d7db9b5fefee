package train

import (
	"github.com/grovellm/grove/internal/train/bpe"
	"github.com/grovellm/grove/tokenizer"
)

// MaskToken is the token that stands for the tokens that a block drafts: the vocabulary's own mask
// token, or the last of its control tokens, which are rare in text, or the last token of all. Its
// row of the embedding is the target's, and is not trained.
func MaskToken(tok *tokenizer.Tokenizer) int32 {
	for _, name := range []string{bpe.Mask, "<mask>", "[MASK]"} {
		if id, ok := tok.Find(name); ok {
			return id
		}
	}
	last := int32(tok.VocabSize() - 1)
	for id := last; id >= 0; id-- {
		if tok.IsSpecial(id) && id != tok.EOS() && id != tok.BOS() {
			return id
		}
	}
	return last
}
