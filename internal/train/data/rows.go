package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Rows is texts of one length that are dealt whole: each once per epoch, in an order specific to
// the epoch.
type Rows struct {
	tokens []int32
	length int
	seed   uint64
}

// NewRows returns the texts of length tokens that tokens holds, one after another.
func NewRows(tokens []int32, length int, seed uint64) (*Rows, error) {
	if length < 1 || len(tokens) == 0 || len(tokens)%length != 0 {
		return nil, fmt.Errorf("%d tokens in texts of %d: want one text or more, and whole ones", len(tokens), length)
	}
	return &Rows{tokens, length, seed}, nil
}

// Len is the number of texts.
func (r *Rows) Len() int { return len(r.tokens) / r.length }

// Row reads the n-th row that is dealt. It is safe for concurrent use, for any n.
func (r *Rows) Row(n uint64, dst []int32) {
	texts := uint64(r.Len())
	epoch := n / texts
	at := int(permute(n%texts, texts, mix64(r.seed+mix64(epoch)))) * r.length
	copy(dst, r.tokens[at:at+r.length])
}

// Fingerprint identifies the dealt texts: other texts, lengths or seeds have another one.
func (r *Rows) Fingerprint() string {
	h := sha256.New()
	b := binary.LittleEndian.AppendUint64(nil, r.seed)
	b = binary.LittleEndian.AppendUint64(b, uint64(r.length))
	for _, id := range r.tokens {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
		if len(b) >= 1<<16 {
			h.Write(b)
			b = b[:0]
		}
	}
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil)[:16])
}
