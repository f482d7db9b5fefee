package nn

import (
	"math"
	"slices"

	"github.com/grovellm/grove/internal/kernels/simd"
)

// routing records which experts each row of a pass uses. A row and one of its experts are a pair;
// pairs are sorted by expert, and by row within each. The layers of a plan share it: they use the
// same number of experts per row.
type routing struct {
	of      *Experts
	scores  Mat       // rows × experts, and Rule.room
	chosen  []int32   // rows × Used, best first
	weights []float32 // of the chosen experts
	place   []int32   // for each chosen expert, the number of the pair
	groups  []expertGroup
	starts  []int32
}

// expertGroup is the pairs [from, to) of an expert.
type expertGroup struct{ expert, from, to int }

func (r *routing) reset(of *Experts, scores Mat) {
	n := scores.Rows * of.Used
	r.of, r.scores = of, scores
	r.chosen, r.weights = grow(r.chosen, n), grow(r.weights, n)
	r.place, r.starts = grow(r.place, n), grow(r.starts, len(of.MLPs)+1)
}

// chooseJob chooses the experts of a row and their weights.
type chooseJob routing

func (r *chooseJob) Do(_, i int) {
	k := r.of.Used
	n := len(r.of.MLPs)
	scores, room := r.scores.Row(i)[:n], r.scores.Row(i)[n:]
	chosen := r.chosen[i*k : (i+1)*k]
	weights := r.weights[i*k : (i+1)*k]
	rule := &r.of.Rule
	switch {
	case rule.Mixer > 0:
		simd.TopK(scores, chosen, weights)
		rule.mix(scores, room, chosen, weights)
	case !rule.All && !rule.Sigmoid:
		simd.TopK(scores, chosen, weights)
		simd.Softmax(weights, 1)
	case rule.Sigmoid:
		Sigmoid(scores)
		rule.choose(scores, room, chosen, weights)
	default:
		simd.TopK(scores, chosen, weights) // in the order of scores, whose differences may vanish in the weights
		simd.Softmax(scores, 1)
		rule.choose(scores, room, chosen, weights)
	}
	rule.finish(chosen, weights)
}

// group sorts the pairs by expert.
func (r *routing) group() {
	clear(r.starts)
	for _, expert := range r.chosen {
		r.starts[expert+1]++
	}
	r.groups = r.groups[:0]
	for expert := range r.of.MLPs {
		from, n := int(r.starts[expert]), int(r.starts[expert+1])
		if n > 0 {
			r.groups = append(r.groups, expertGroup{expert, from, from + n})
		}
		r.starts[expert+1] += int32(from)
	}
	for i, expert := range r.chosen {
		r.place[i] = r.starts[expert]
		r.starts[expert]++
	}
}

// room is how many numbers per row a rule needs for the given number of experts.
func (r *Rule) room(experts int) int {
	if r.Bias != nil || r.Groups > 1 || r.Mixer > 0 {
		return 2 * experts
	}
	return experts
}

// choose takes the weights of the chosen experts from the weights of all. With a bias, groups, or σ
// instead of a softmax, it chooses the experts first.
func (r *Rule) choose(all, room []float32, chosen []int32, weights []float32) {
	switch {
	case len(room) > 0:
		copy(room, all)
		if r.Bias != nil {
			simd.Add(room, r.Bias)
		}
		r.dropGroups(room)
		simd.TopK(room, chosen, weights)
	case r.Sigmoid:
		simd.TopK(all, chosen, weights)
	}
	for t, expert := range chosen {
		weights[t] = all[expert]
	}
}

// mix is Mixer's rule. It uses scores up.
func (r *Rule) mix(scores, room []float32, chosen []int32, weights []float32) {
	none := float32(math.Inf(-1))
	for t, expert := range chosen {
		best := scores[expert]
		for i, s := range scores {
			room[i] = s
			if (best-s)/max(s, -s, best) > 2*r.Mixer {
				room[i] = none
			}
		}
		simd.Softmax(room, 1)
		weights[t] = room[expert]
		scores[expert] = none
	}
}

// dropGroups ranks the experts of groups that are not chosen last.
func (r *Rule) dropGroups(scores []float32) {
	if r.Groups <= 1 {
		return
	}
	size := len(scores) / r.Groups
	sums, kept := make([]float32, r.Groups), make([]int32, r.Chosen)
	var two [2]float32
	var at [2]int32
	for g := range sums {
		for _, x := range two[:simd.TopK(scores[g*size:(g+1)*size], at[:], two[:])] {
			sums[g] += x
		}
	}
	simd.TopK(sums, kept, make([]float32, r.Chosen))
	for g := range sums {
		if !slices.Contains(kept, int32(g)) {
			for i := range size {
				scores[g*size+i] = float32(math.Inf(-1))
			}
		}
	}
}

// finish turns weights into the factors of the experts' results.
func (r *Rule) finish(chosen []int32, weights []float32) {
	if r.Norm {
		sum := float32(1e-20)
		for _, w := range weights {
			sum += w
		}
		for t := range weights {
			weights[t] /= sum
		}
	}
	if r.Scale != 0 {
		simd.Scale(weights, r.Scale)
	}
	if r.Each != nil {
		for t, expert := range chosen {
			weights[t] *= r.Each[expert]
		}
	}
}

// Sigmoid replaces x with σ(x).
func Sigmoid(x []float32) {
	simd.Scale(x, -1)
	simd.Exp(x, x)
	for i, e := range x {
		x[i] = 1 / (1 + e)
	}
}
