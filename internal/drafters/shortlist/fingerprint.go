package shortlist

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/grovellm/grove/internal/files/tokenkind"
	"github.com/grovellm/grove/internal/inside/lower"
	"github.com/grovellm/grove/tokenizer"
)

// Fingerprint identifies a vocabulary by the bytes of all its tokens, up to the last one in use.
// It is "" if t is nil.
func Fingerprint(t *tokenizer.Tokenizer) string {
	if t == nil {
		return ""
	}
	n := int32(t.VocabSize())
	for n > 0 && lower.TokenKind(t, n-1) == tokenkind.Unused {
		n--
	}
	h := sha256.New()
	var b []byte
	for id := range n {
		b = append(append(b[:0], 0, 0, 0, 0), t.Piece(id)...)
		binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
