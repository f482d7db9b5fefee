// Package synth makes random routers, for tests and checks of what must hold whatever a router says.
package synth

import (
	"math/rand/v2"

	"github.com/grovellm/grove/internal/drafters/shortlist"
	"github.com/grovellm/grove/internal/drafters/synthetic"
	"github.com/grovellm/grove/tensor"
)

// Write writes a random router for heads of a hidden size over a vocabulary, with matrices of type
// t. Its clusters cover all tokens except some that are always listed.
func Write(path string, rng *rand.Rand, vocab, hidden int, t tensor.Type) error {
	width := 1 + rng.IntN(40)
	if t == tensor.Q8_0 {
		width = 32 * (1 + rng.IntN(2)) // rows are a whole number of blocks
	}
	n := 1 + rng.IntN(min(40, (vocab+1)/2))
	r := &shortlist.Routing{Clusters: make([][]int32, n), Listed: 1 + rng.IntN(n)}
	for i, token := range rng.Perm(vocab) {
		switch c := rng.IntN(n + 1); {
		case i < n: // none is empty
			r.Clusters[i] = append(r.Clusters[i], int32(token))
		case c < n:
			r.Clusters[c] = append(r.Clusters[c], int32(token))
		default:
			r.Always = append(r.Always, int32(token))
		}
	}
	w := &synthetic.Weights{Type: t, Seed: rng.Uint64()}
	router, err := shortlist.NewRouter(shortlist.RouterConfig{Embed: hidden, Hidden: hidden, Width: width, Clusters: n,
		Output: rng.IntN(2) == 0}, w)
	if err != nil {
		return err
	}
	return r.Write(path, shortlist.RouterFile{Name: "random", Config: router.RouterConfig, Vocab: vocab}, w.Made)
}
