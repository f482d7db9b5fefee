package textrank

import (
	"math"
	"slices"
	"testing"

	"github.com/grovellm/grove/internal/testing/cases"
	"github.com/grovellm/grove/sample"
	"pgregory.net/rapid"
)

// followers returns the tokens that followed the occurrences of sub in text, in text order. root
// follows the text.
func followers(text, sub []int32, root int32) (out []int32) {
	for end := len(sub); end <= len(text); end++ {
		if slices.Equal(text[end-len(sub):end], sub) {
			out = append(out, append(text[end:len(text):len(text)], root)[0])
		}
	}
	return out
}

// What the text says of a node, compared with brute force: the longest suffix of text and path that
// occurs in the text, what followed its latest occurrences, and how often.
func TestFeaturesOfTheText(t *testing.T) {
	cases.Check(t, 40, func(r *rapid.T) {
		token := rapid.Int32Range(0, int32(rapid.IntRange(0, 3).Draw(r, "alphabet")))
		n := rapid.IntRange(1, 40).Draw(r, "length")
		text := rapid.SliceOfN(token, n, n).Draw(r, "text")
		path := rapid.SliceOfN(token, 1, 6).Draw(r, "path") // the root first
		s := NewText(&sample.Params{}, NewModel(), nil)
		s.learn(text)
		at := s.End()
		for _, token := range path {
			at = s.Match(at, token)
		}
		x, list := s.gather(path[0], at, s.contextAlong(path), &Row{}, false, nil, nil)

		whole := slices.Concat(text, path)
		length := len(whole)
		for length > 0 && len(followers(text, whole[len(whole)-length:], path[0])) == 0 {
			length--
		}
		if x.class != matchClass(int32(length)) || x.hasRow {
			r.Fatalf("%v, %v: class %d, the longest match has %d", text, path, x.class, length)
		}
		if length == 0 {
			if len(list) > 0 {
				r.Fatalf("%v without a match", list)
			}
			return
		}
		after := followers(text, whole[len(whole)-length:], path[0])
		for i := range list {
			c := &list[i]
			if slices.IndexFunc(list, func(d features) bool { return d.token == c.token }) != i {
				r.Fatalf("%v: token %d twice", list, c.token)
			}
			n := len(after)
			if latest := after[n-1] == c.token; c.latest != latest ||
				c.lastTwice != (latest && n > 1 && after[n-2] == c.token) {
				r.Fatalf("%v, %v: %+v, followed by %v", text, path, *c, after)
			}
			followed := slices.Contains(after, c.token)
			if followed == c.shorter || followed && c.class != x.class {
				r.Fatalf("%v, %v: %+v, followed by %v", text, path, *c, after)
			}
			seen := 0
			for _, token := range followers(text, whole[len(whole)-length:], -1) {
				if token == c.token {
					seen++
				}
			}
			if want := math.Log(float64(max(seen, 1)) / float64(n)); followed &&
				math.Abs(float64(c.share)-want) > 1e-5 {
				r.Fatalf("%v, %v: %+v, followed by %v: want a share of %g", text, path, *c, after, want)
			}
		}
		for _, token := range after {
			if !slices.ContainsFunc(list, func(c features) bool { return c.token == token }) {
				r.Fatalf("%v, %v: no features of %d", text, path, token)
			}
		}
	})
}

// Probabilities are in order, add up to less than 1, and are those of the most probable tokens that
// have features.
func TestProbabilities(t *testing.T) {
	cases.Check(t, 40, func(r *rapid.T) {
		w := neutral(rapid.Bool().Draw(r, "warm"))
		x := nodeFeatures{depth: rapid.IntRange(1, 30).Draw(r, "depth"), hasRow: rapid.Bool().Draw(r, "headed"),
			offTop: rapid.Bool().Draw(r, "off top"),
			class:  int8(rapid.IntRange(0, matchClasses-1).Draw(r, "class")),
			beyond: -rapid.Float32Range(0, 16).Draw(r, "beyond"),
			last:   rapid.Float32Range(-15, 5).Draw(r, "last")}
		var list []features
		for token := range int32(rapid.IntRange(1, 40).Draw(r, "tokens")) {
			c := features{token: token, drafter: -rapid.Float32Range(0, 15).Draw(r, "head"),
				class: int8(rapid.IntRange(0, int(x.class)).Draw(r, "own"))}
			if c.class > 0 {
				c.share = -rapid.Float32Range(0, 3).Draw(r, "share")
			}
			list = append(list, c)
		}
		all, _ := w.probabilities(&x, list, make([]sample.Candidate, 0, 40), nil)
		some, _ := w.probabilities(&x, list, make([]sample.Candidate, 0, 8), nil)
		sum := 0.0
		for i, c := range all {
			sum += math.Exp(float64(c.LogProb))
			if i > 0 && c.LogProb > all[i-1].LogProb || i < len(some) && some[i] != c {
				r.Fatalf("%v, %v", all, some)
			}
		}
		if sum > 1+1e-5 || !(sum > 0) || len(all) != len(list) || len(some) != min(len(list), 8) {
			r.Fatalf("%d of %d, %d: sum %g", len(all), len(list), len(some), sum)
		}
	})
}
