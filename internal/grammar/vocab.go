// The vocabulary of a tokenizer.

package grammar

import (
	"bytes"

	"github.com/grovellm/grove/internal/files/tokenkind"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/tokenizer"
)

// VocabOf returns the vocabulary of a model with size tokens.
func VocabOf(t *tokenizer.Tokenizer, size int) *Vocab { return NewVocab(pieces(t, size)) }

// pieces returns the texts that tokens add to an output, nil for those that add none or end it. The
// text of a control token is allowed only by a grammar that names it. A token that changes the text
// of the next token counts as adding none.
func pieces(t *tokenizer.Tokenizer, vocab int) [][]byte {
	spaced := int32(-1)
	list := make([][]byte, vocab)
	for id := range int32(min(t.VocabSize(), vocab)) {
		if t.IsEOG(id) {
			continue
		}
		if t.IsSpecial(id) {
			list[id] = ControlPiece(t.Text(id))
			continue
		}
		if piece := t.Piece(id); piece != "" {
			list[id] = []byte(piece)
		}
		if bytes.IndexByte(list[id], special) >= 0 { // reserved for the names of control tokens
			list[id] = nil
			continue
		}
		if kind := lower.TokenKind(t, id); spaced < 0 && kind == tokenkind.Normal && len(list[id]) > 1 && list[id][0] == ' ' {
			spaced = id
		}
	}
	for id, piece := range list {
		kind := lower.TokenKind(t, int32(id))
		if spaced < 0 || kind == tokenkind.Normal || kind == tokenkind.Byte || piece == nil || t.IsSpecial(int32(id)) {
			continue
		}
		text := t.Decode([]int32{int32(id), spaced}, tokenizer.DecodeOptions{Continue: true})
		if text != string(piece)+string(list[spaced]) {
			list[id] = nil
		}
	}
	return list
}
