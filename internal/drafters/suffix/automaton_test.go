package suffix

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func genText(r *rapid.T, most int) []int32 {
	letters := rapid.Int32Range(0, rapid.SampledFrom([]int32{0, 1, 3, 20}).Draw(r, "alphabet"))
	n := rapid.IntRange(0, most).Draw(r, "length") // a slice of random length would nearly always be short
	return rapid.SliceOfN(letters, n, n).Draw(r, "text")
}

// ends returns the places in text where sub ends.
func ends(text, sub []int32) (at []int32) {
	for i := len(sub); i <= len(text); i++ {
		if slices.Equal(text[i-len(sub):i], sub) {
			at = append(at, int32(i))
		}
	}
	return at
}

// The automaton, compared with brute force: it spells exactly the substrings, counts the places
// where they end and knows the latest two, its links are right, and match finds the longest suffix.
func TestAutomaton(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		text := genText(r, 40) // below touchMost: every count is exact
		a := New()
		for _, token := range text {
			a.Extend(token)
		}
		if n := len(text); len(a.link) > max(2*n, 2) || len(a.edges) > max(3*n, 2) {
			r.Fatalf("%d states and %d edges for %d tokens", len(a.link), len(a.edges), n)
		}
		longest := make([]int32, len(a.link))
		for i := range text {
			for j := i + 1; j <= len(text); j++ {
				sub := text[i:j]
				s := int32(0)
				for _, token := range sub {
					s = a.Next(s, token)
					if s < 0 {
						r.Fatalf("%v is not spelled", sub)
					}
				}
				at := ends(text, sub)
				before := append([]int32{0}, at...)[len(at)-1]
				if int(a.count[s]) != len(at) || a.last[s] != at[len(at)-1] || a.before[s] != before {
					r.Fatalf("%v: counted %d, last at %d and %d, want %v", sub, a.count[s], a.before[s], a.last[s], at)
				}
				if l := a.link[s]; int(a.length[s]) < len(sub) || int(a.length[l]) >= len(sub) {
					r.Fatalf("%v of length %d is in a state of lengths %d to %d", sub, len(sub), a.length[l]+1, a.length[s])
				}
				longest[s] = max(longest[s], int32(len(sub)))
			}
		}
		for s := 1; s < len(a.link); s++ {
			if longest[s] != a.length[s] {
				r.Fatalf("state %d says %d, its longest string has %d", s, a.length[s], longest[s])
			}
		}
		for token := int32(0); token < 5; token++ {
			whole := append(slices.Clone(text), token)
			want := len(whole)
			for want > 0 && len(ends(text, whole[len(whole)-want:])) == 0 {
				want--
			}
			m := a.Match(a.End(), token)
			if int(m.Length) != want {
				r.Fatalf("match of %v: length %d, want %d", whole, m.Length, want)
			}
			if want > 0 && int(a.count[m.State]) != len(ends(text, whole[len(whole)-want:])) {
				r.Fatalf("match of %v is a wrong state", whole)
			}
		}
	})
}

func BenchmarkExtend(b *testing.B) {
	a := New()
	b.ReportAllocs()
	h := uint64(1)
	for i := 0; b.Loop(); i++ {
		if i%4096 == 0 {
			a = New()
		}
		h = h*6364136223846793005 + 1442695040888963407
		a.Extend(int32(h >> 56 & 63))
	}
}
