package onepass

import (
	"math"
	"testing"

	"github.com/grovellm/grove/draft"

	"github.com/grovellm/grove/tree"
	"pgregory.net/rapid"
)

// budget is a guide for which a level pays as long as it brings at least least.
type budget struct {
	least    float32
	expected []float32
}

func (g *budget) Chance(_ int, logProb float32) float32 { return float32(math.Exp(float64(logProb))) }

func (g *budget) Value(chance float32) float32 { return chance }

func (g *budget) Deeper(expected, more float32) bool {
	g.expected = append(g.expected, expected)
	return more >= g.least
}

func (g *budget) Part(int) draft.Guide { return g }

// From trees of one kind a reach learns what each of their levels brings, and assumes of deeper
// levels that they bring what the last one does. From this it knows how many levels bring enough.
func TestReachLearnsItsLevels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chances := rapid.SliceOfN(rapid.Float32Range(0.1, 0.95), 1, 8).Draw(t, "chances") // of a chain's nodes
		tr, path := tree.New(0), []float32{1}
		var levels []float32
		for i, c := range chances {
			tr.Append(i, 1, 0)
			path = append(path, path[i]*c)
			levels = append(levels, path[i+1])
		}
		r := newReach(len(chances) + 3)
		for range 400 {
			r.learn(tr, path, len(chances))
		}
		for range 3 {
			levels = append(levels, levels[len(levels)-1]*chances[len(chances)-1])
		}
		least := rapid.Float32Range(0.001, 1).Draw(t, "least")
		for _, level := range levels {
			if math.Abs(float64(level/least-1)) < 0.01 {
				t.Skip("on the edge")
			}
		}
		want := 1
		for want < len(levels) && levels[want] > least {
			want++
		}
		g := &budget{least: least}
		if got := r.deepen(g, len(levels)); got != want {
			t.Fatalf("levels bring %v, at least %g is wanted: %d levels, want %d", levels, least, got, want)
		}
		sum := float32(0)
		for i, e := range g.expected {
			sum += levels[i]
			if math.Abs(float64(e-sum)) > 0.01*float64(sum) {
				t.Fatalf("before level %d %g is expected, want %g", i+2, e, sum)
			}
		}
	})
}
