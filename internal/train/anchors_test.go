package train

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Anchors are distinct, ascending and within bounds, and there are as many as requested if the text
// has so many. Without a share for repeats, none is where the text repeats itself by the definition.
func TestDrawAnchors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(rapid.Int32Range(0, 2), 4, 80).Draw(t, "text")
		if rapid.Bool().Draw(t, "repeats") {
			period := rapid.SliceOfN(rapid.Int32Range(0, 9), 1, 6).Draw(t, "period")
			for range rapid.IntRange(1, 12).Draw(t, "times") {
				text = append(text, period...)
			}
		}
		first := rapid.IntRange(1, len(text)-2).Draw(t, "first")
		last := rapid.IntRange(first, len(text)-2).Draw(t, "last")
		n, block := rapid.IntRange(1, 60).Draw(t, "anchors"), rapid.IntRange(2, 16).Draw(t, "block")
		seed := rapid.Uint64().Draw(t, "seed")
		a := DrawAnchors(seed, 1, text, first, last, block, n, 1)
		if len(a) != min(n, last-first+1) || a[0] < first || a[len(a)-1] > last || !slices.IsSorted(a) ||
			len(slices.Compact(slices.Clone(a))) != len(a) {
			t.Fatalf("%d anchors from %d to %d: %v", n, first, last, a)
		}
		// from one period before the anchor to the block's end, every token is as one period before
		repeated := func(at int) bool {
			end := min(at+block, len(text))
			for p := 1; p <= longestPeriod && 2*p <= at+1; p++ {
				if slices.Equal(text[at+1-p:end], text[at+1-2*p:end-p]) {
					return true
				}
			}
			return false
		}
		var fresh []int
		for at := first; at <= last; at++ {
			if !repeated(at) {
				fresh = append(fresh, at)
			}
		}
		got := DrawAnchors(seed, 1, text, first, last, block, len(text), 0)
		if len(fresh) > 0 && !slices.Equal(got, fresh) || len(got) == 0 {
			t.Fatalf("anchors outside repeats are %v, want %v", got, fresh)
		}
	})
}

// About the given share of the places in repeats may be drawn, and all other places. The draw
// depends on the seed and the number.
func TestRepeatsShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		period := rapid.IntRange(1, longestPeriod).Draw(t, "period")
		fresh := rapid.IntRange(10, 60).Draw(t, "fresh")
		var text []int32
		for i := range fresh + 2*period + 400 {
			if id := int32(i); i < fresh+period { // no token occurs twice
				text = append(text, id)
			} else {
				text = append(text, text[i-period])
			}
		}
		share := r.Float64()
		first := 1
		last := len(text) - 2
		block := rapid.IntRange(2, 16).Draw(t, "block")
		number := r.Uint64()
		a := DrawAnchors(7, number, text, first, last, block, len(text), share)
		if b := DrawAnchors(7, number, text, first, last, block, len(text), share); !slices.Equal(a, b) {
			t.Fatalf("anchors %v, and %v when drawn again", a, b)
		}
		// The text repeats itself if the tokens up to and including the anchor are two periods.
		begin := fresh + 2*period - 1
		before, _ := slices.BinarySearch(a, begin)
		if before != begin-first {
			t.Fatalf("%d of the %d places before the repeats are drawn: %v", before, begin-first, a)
		}
		in := float64(last - begin + 1)
		if got := float64(len(a) - before); math.Abs(got-share*in) > 6*math.Sqrt(share*(1-share)*in)+1 {
			t.Fatalf("%g of %g places in the repeats are drawn, want a share of %.2f", got, in, share)
		}
		if share > 0.1 && share < 0.9 { // at least 400 places: no two draws are the same
			if b := DrawAnchors(7, number+1, text, first, last, block, len(text), share); slices.Equal(a, b) {
				t.Fatal("another text has the same anchors")
			}
			if b := DrawAnchors(8, number, text, first, last, block, len(text), share); slices.Equal(a, b) {
				t.Fatal("another seed has the same anchors")
			}
		}
	})
}

// All places are equally likely to be anchors.
func TestAnchorsAreEven(t *testing.T) {
	text := make([]int32, 60)
	for i := range text {
		text[i] = int32(i)
	}
	const first, last, n, draws = 5, 54, 10, 20000
	var count [60]float64
	for i := range uint64(draws) {
		for _, a := range DrawAnchors(1, i, text, first, last, 16, n, 0.5) {
			count[a]++
		}
	}
	p := float64(n) / (last - first + 1)
	for a := first; a <= last; a++ {
		if math.Abs(count[a]-p*draws) > 5*math.Sqrt(p*(1-p)*draws) {
			t.Errorf("place %d is drawn %g times of %d, want about %g", a, count[a], draws, p*draws)
		}
	}
}
