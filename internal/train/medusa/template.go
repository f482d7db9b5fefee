package medusa

import (
	"math"

	"github.com/grovellm/grove/internal/drafters/medusa"
	"github.com/grovellm/grove/internal/drafters/treebuild"
	"github.com/grovellm/grove/sample"
	"github.com/grovellm/grove/tree"
)

// fitTemplate returns the template of this many nodes that is accepted most often. ranks has, for many
// places of a text, the rank of the right token at each depth, negative if it was not ranked. A path's
// value is the share of places whose ranks begin with it. The best paths are added one by one, as in the
// paper (section 2.3.3); but the paper multiplies the heads' accuracies, while joint counts also capture
// that one head's success may predict the next one's. Ranks that were never right are not skipped (level).
func fitTemplate(ranks [][]int, nodes int) medusa.Template {
	f := &fitting{ranks: ranks, at: [][]int32{nil}}
	for i := range ranks {
		f.at[0] = append(f.at[0], int32(i))
	}
	var t tree.Tree
	t.Reset(0)
	(&treebuild.Builder{}).Build(&t, f, nodes+1)
	return medusa.Template(t.Parent[1:])
}

// fitting is a treebuild.Source made of ranks; its tokens are ranks.
type fitting struct {
	ranks [][]int
	at    [][]int32 // for each node, the places whose ranks begin with its path
}

func (f *fitting) Below(t *tree.Tree, node int) []sample.Candidate {
	depth := int(t.Depth[node])
	if node > 0 {
		var places []int32
		for _, i := range f.at[t.Parent[node]] {
			if f.ranks[i][depth-1] == int(t.Token[node]) {
				places = append(places, i)
			}
		}
		f.at = append(f.at, places)
	}
	var count []float64
	for _, i := range f.at[node] {
		if depth < len(f.ranks[i]) {
			for rank := f.ranks[i][depth]; rank >= len(count); {
				count = append(count, 0)
			}
			if rank := f.ranks[i][depth]; rank >= 0 {
				count[rank]++
			}
		}
	}
	level(count)
	list, all := make([]sample.Candidate, len(count)), float64(len(f.at[node]))
	for rank, n := range count {
		list[rank] = sample.Candidate{Token: int32(rank), LogProb: float32(math.Log(n / all))}
	}
	return list
}

// level replaces counts that rise by their means over the shortest runs with which the counts never
// rise. A template uses ranks in order: a rank that is rarely or never right is included for the
// sake of the ranks after it, and their counts are shared among them.
func level(count []float64) {
	var ends []int // of runs
	for i := range count {
		for ends = append(ends, i+1); len(ends) > 1; {
			n := len(ends)
			from, middle := 0, ends[n-2]
			if n > 2 {
				from = ends[n-3]
			}
			if count[from] >= count[middle] {
				break
			}
			mean := (count[from]*float64(middle-from) + count[middle]*float64(i+1-middle)) / float64(i+1-from)
			for j := from; j <= i; j++ {
				count[j] = mean
			}
			ends = append(ends[:n-2], i+1)
		}
	}
}
