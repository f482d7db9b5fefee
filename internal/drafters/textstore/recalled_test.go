package textstore

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/grovellm/grove/draft"
)

// listed is a memory with given matches.
type listed []draft.Match

func (l listed) matches(dst []draft.Match, _ []int32, _, most int) []draft.Match {
	return append(dst, l[:min(len(l), most)]...)
}

// Along any path below the end of a text, the continuations are exactly those of the matches that
// continue as the path does.
func TestRecalled(t *testing.T) {
	token := rapid.Int32Range(0, 2)
	rapid.Check(t, func(t *rapid.T) {
		var all listed
		for range rapid.IntRange(0, 20).Draw(t, "matches") {
			all = append(all, draft.Match{Length: rapid.IntRange(3, 32).Draw(t, "length"),
				Next: rapid.SliceOfN(token, 0, 6).Draw(t, "next")})
		}
		slices.SortStableFunc(all, func(a, b draft.Match) int { return b.Length - a.Length })
		var r Recalled
		alive := r.Find(all.matches, nil)
		path := rapid.SliceOfN(token, 0, 5).Draw(t, "path")
		for i, x := range path {
			alive = r.Follow(alive, i+1, x)
		}
		want := map[int32]int{}
		length := 0
		matches := 0
		first := int32(-1)
		for _, m := range all[:min(len(all), recalledMost)] {
			if len(m.Next) <= len(path) || !slices.Equal(m.Next[:len(path)], path) {
				continue
			}
			matches++
			if matches == 1 {
				length, first = m.Length+len(path), m.Next[len(path)]
			}
			want[m.Next[len(path)]]++
		}
		got, gotLength, gotMatches := r.Next(nil, alive, len(path)+1)
		if gotLength != length || gotMatches != matches || len(got) != len(want) {
			t.Fatalf("%d matches of %d tokens, want %d of %d; %v, want %v", gotMatches, gotLength, matches, length, got, want)
		}
		for _, c := range got {
			if want[c.Token] != c.Count || c.First != (c.Token == first) {
				t.Fatalf("%+v, want %d of it, and %d first", c, want[c.Token], first)
			}
		}
		if none := (*Recalled)(&Recalled{}); none.Find(nil, nil) != 0 {
			t.Fatal("matches without a memory")
		}
	})
}
