package data

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawRows draws different texts of one length.
func drawRows(t *rapid.T, most int) (tokens []int32, length int) {
	length = rapid.IntRange(1, 12).Draw(t, "length")
	for range rapid.IntRange(1, most).Draw(t, "texts") * length {
		tokens = append(tokens, int32(len(tokens)))
	}
	return tokens, length
}

// An epoch returns every text once and whole, in an order that depends on the seed and the epoch.
func TestRowsEpochs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens, length := drawRows(t, 80)
		seed := rapid.Uint64().Draw(t, "seed")
		r, err := NewRows(tokens, length, seed)
		if err != nil {
			t.Fatal(err)
		}
		again, err := NewRows(slices.Clone(tokens), length, seed)
		if err != nil {
			t.Fatal(err)
		}
		other, err := NewRows(tokens, length, seed+1)
		if err != nil {
			t.Fatal(err)
		}
		texts := len(tokens) / length
		if r.Len() != texts {
			t.Fatalf("%d texts, want %d", r.Len(), texts)
		}
		epoch := func(r *Rows, e int) (order []int32) { // first tokens, in order
			row := make([]int32, length)
			for i := range texts {
				r.Row(uint64(e*texts+i), row)
				for j, id := range row {
					if id != row[0]+int32(j) || int(row[0])%length != 0 {
						t.Fatalf("row %d of epoch %d is %v: no text of %d tokens", i, e, row, length)
					}
				}
				order = append(order, row[0])
			}
			return order
		}
		first := rapid.IntRange(0, 1000).Draw(t, "epoch")
		var orders [][]int32
		for e := first; e < first+3; e++ {
			order := epoch(r, e)
			if same := epoch(again, e); !slices.Equal(order, same) {
				t.Fatalf("epoch %d deals %v, and %v when dealt again", e, order, same)
			}
			sorted := slices.Sorted(slices.Values(order))
			for i, id := range sorted {
				if int(id) != i*length {
					t.Fatalf("epoch %d deals %v, not every text once", e, sorted)
				}
			}
			orders = append(orders, order)
		}
		orders = append(orders, epoch(other, first))
		if texts >= 20 { // two random orders are equal with a probability of 1 in 20!
			for i := range orders {
				for j := range i {
					if slices.Equal(orders[i], orders[j]) {
						t.Fatalf("another epoch or seed deals in the same order: %v", orders[i])
					}
				}
			}
		}
	})
}

// A fingerprint is the same for the same texts, length and seed, and different for others: here for
// two lists of texts that differ in at most one token.
func TestRowsFingerprint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens, length := drawRows(t, 4000)
		changed := slices.Clone(tokens)
		if rapid.Bool().Draw(t, "change a token") {
			changed[rapid.IntRange(0, len(tokens)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 30).Draw(t, "bit")
		}
		divisors := []int{length, 1, len(tokens)}
		otherLength := divisors[rapid.IntRange(0, 2).Draw(t, "other length")]
		seed, otherSeed := rapid.Uint64Range(0, 2).Draw(t, "seed"), rapid.Uint64Range(0, 2).Draw(t, "other seed")
		a, err := NewRows(tokens, length, seed)
		if err != nil {
			t.Fatal(err)
		}
		b, err := NewRows(changed, otherLength, otherSeed)
		if err != nil {
			t.Fatal(err)
		}
		same := slices.Equal(tokens, changed) && length == otherLength && seed == otherSeed
		if (a.Fingerprint() == b.Fingerprint()) != same {
			t.Fatalf("fingerprints %s and %s, of %d tokens in texts of %d and %d, seeds %d and %d, the same: %v",
				a.Fingerprint(), b.Fingerprint(), len(tokens), length, otherLength, seed, otherSeed, same)
		}
	})
}

// Tokens that are not whole texts are refused.
func TestRowsRefuse(t *testing.T) {
	for _, c := range []struct{ tokens, length int }{{0, 4}, {7, 4}, {3, 4}, {4, 0}, {4, -4}} {
		if r, err := NewRows(make([]int32, c.tokens), c.length, 1); err == nil {
			t.Errorf("%d tokens in texts of %d make %d rows, want an error", c.tokens, c.length, r.Len())
		}
	}
}
