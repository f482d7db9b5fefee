package shortlist

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/grovellm/grove/tokenizer"
)

// Fingerprint tells vocabularies apart by the bytes of all their tokens, up to the last that stands
// for anything; "" where t is nil.
func Fingerprint(t *tokenizer.Tokenizer) string {
	if t == nil {
		return ""
	}
	n := int32(t.VocabSize())
	for n > 0 && t.Type(n-1) == tokenizer.Unused {
		n--
	}
	h := sha256.New()
	var b []byte
	for id := range n {
		b = t.AppendPiece(append(b[:0], 0, 0, 0, 0), id)
		binary.LittleEndian.PutUint32(b, uint32(len(b)-4))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
