package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"math/bits"
)

// Mix deals rows of several sets in proportion to their weights.
//
// Rows come in cycles of cycleRows: every cycle has the same number of rows from each set, spread
// evenly. So a set's n-th row is determined by the row's number. Within a set, rows are adjacent
// windows; an epoch reads all of them once, in its own order, and their borders differ in every
// epoch.
type Mix struct {
	sets   []*Set
	length int
	seed   uint64
	share  []uint64 // rows of a cycle, by set
	slots  []slot   // the rows of a cycle
}

// slot is a place in a cycle: its set, and how many earlier places have the same one.
type slot struct {
	set    int32
	before uint32
}

const cycleRows = 4096

// NewMix returns the mix of sets whose rows have length tokens, plus one more: the target of the
// last.
func NewMix(sets []*Set, length int, seed uint64) (*Mix, error) {
	if length < 1 || length > 1<<24 {
		return nil, fmt.Errorf("rows of %d tokens: want 1 to %d", length, 1<<24)
	}
	m := &Mix{length: length, seed: seed}
	total := 0.0
	for _, s := range sets {
		switch {
		case !(s.Weight >= 0) || math.IsInf(s.Weight, 0):
			return nil, fmt.Errorf("source %s: weight %g: want a number not below 0", s.Name, s.Weight)
		case s.Weight == 0:
			continue
		case s.Len() < length+1:
			return nil, fmt.Errorf("source %s: its %d tokens do not fill a row of %d: give it more text, or make the rows shorter", s.Name, s.Len(), length+1)
		}
		m.sets = append(m.sets, s)
		total += s.Weight
	}
	if len(m.sets) == 0 {
		return nil, fmt.Errorf("no source has a weight above 0")
	}
	if len(m.sets) > cycleRows/4 {
		return nil, fmt.Errorf("%d sources: want at most %d; join small ones", len(m.sets), cycleRows/4)
	}
	m.deal(total)
	return m, nil
}

// deal fills the cycle: each place goes to the set that is furthest behind its share.
func (m *Mix) deal(total float64) {
	m.share = make([]uint64, len(m.sets))
	for i := range uint64(cycleRows) {
		best, most := 0, math.Inf(-1)
		for s := range m.sets {
			if lag := float64(i+1)*(m.sets[s].Weight/total) - float64(m.share[s]); lag > most {
				best, most = s, lag
			}
		}
		m.slots = append(m.slots, slot{int32(best), uint32(m.share[best])})
		m.share[best]++
	}
}

// Length is the number of tokens in a row, without the last target.
func (m *Mix) Length() int { return m.length }

// Batch reads the rows of a step, numbered from step·rows on, one after another: Length()+1 tokens
// each.
func (m *Mix) Batch(step, rows int, dst []int32) {
	n := m.length + 1
	for i := range rows {
		m.Row(uint64(step)*uint64(rows)+uint64(i), dst[i*n:(i+1)*n])
	}
}

// Row reads row r: Length()+1 tokens. It is safe for concurrent use, for any r.
func (m *Mix) Row(r uint64, dst []int32) {
	s, at := m.locate(r)
	m.sets[s].Read(dst[:m.length+1], at)
}

// Source returns the name of the set from which row r comes.
func (m *Mix) Source(r uint64) string {
	set, _ := m.locate(r)
	return m.sets[set].Name
}

// locate finds a row's set and where the row begins in it.
func (m *Mix) locate(r uint64) (set, at int) {
	c := m.slots[r%cycleRows]
	n := r/cycleRows*m.share[c.set] + uint64(c.before) // rows of this set before r
	s := m.sets[c.set]
	windows := uint64(s.Len() / m.length)
	epoch := n / windows
	key := mix64(m.seed + mix64(uint64(c.set)+mix64(epoch)))
	w := permute(n%windows, windows, key)
	shift := uint64(0)
	if epoch > 0 {
		shift = mix64(key) % uint64(s.Len())
	}
	return int(c.set), int((w*uint64(m.length) + shift) % uint64(s.Len()))
}

// Fingerprint identifies the dealt rows: other text, weights, lengths or seeds have another one. A
// checkpoint stores it, so that no run continues with other data unnoticed.
func (m *Mix) Fingerprint() string {
	h := sha256.New()
	number := func(n uint64) { h.Write(binary.LittleEndian.AppendUint64(nil, n)) }
	number(m.seed)
	number(uint64(m.length))
	for i, s := range m.sets {
		io.WriteString(h, s.Name)
		number(m.share[i])
		number(uint64(len(s.data)))
		sum := sha256.Sum256(s.data)
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// permute maps 0 … n−1 onto itself, in an order determined by key: a Feistel network over the next
// even power of two, repeated until the value is below n (Black and Rogaway, 2002).
func permute(x, n, key uint64) uint64 {
	half := max(1, (bits.Len64(n-1)+1)/2)
	mask := uint64(1)<<half - 1
	for {
		l, r := x>>half, x&mask
		for round := range uint64(6) {
			l, r = r, l^mix64(key+r+round<<56)&mask
		}
		x = l<<half | r
		if x < n {
			return x
		}
	}
}

// mix64 is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
func mix64(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
