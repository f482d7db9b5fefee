package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Rows is texts of one length that are dealt whole: each once per epoch, in an order of the epoch's own.
type Rows struct {
	tokens []int32
	length int
	seed   uint64
}

// NewRows returns the texts of length tokens that tokens holds, one after the other.
func NewRows(tokens []int32, length int, seed uint64) (*Rows, error) {
	if length < 1 || len(tokens) == 0 || len(tokens)%length != 0 {
		return nil, fmt.Errorf("%d tokens in texts of %d: want one text or more, and whole ones", len(tokens), length)
	}
	return &Rows{tokens, length, seed}, nil
}

// Len is the number of texts, Length the tokens of each.
func (r *Rows) Len() int    { return len(r.tokens) / r.length }
func (r *Rows) Length() int { return r.length }

// Text is the i-th text.
func (r *Rows) Text(i int) []int32 { return r.tokens[i*r.length : (i+1)*r.length] }

// Row reads the n-th row that is dealt. It may be called from any goroutine, for any n.
func (r *Rows) Row(n uint64, dst []int32) {
	texts := uint64(r.Len())
	epoch := n / texts
	copy(dst, r.Text(int(permute(n%texts, texts, mix64(r.seed+mix64(epoch))))))
}

// Fingerprint tells what is dealt apart from what other texts, lengths or seeds give.
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
